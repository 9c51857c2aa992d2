//! What several benches have in common.
#![allow(dead_code, reason = "no bench has use for all of it")]

pub(crate) mod line;
pub(crate) mod nodes;
