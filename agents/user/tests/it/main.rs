//! The user's role over doubles of the ports.

mod heard;
mod market;
mod offers;
mod serving;
#[path = "../../../node/tests/support/mod.rs"]
mod support;
mod world;
