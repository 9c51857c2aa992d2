//! Which workers compute a model, in which order, and which layers each of them holds.
//!
//! | module | what lives there |
//! |---|---|
//! | [`node`], [`proximity`], [`fleet`] | what is known of workers and of the links between them |
//! | [`model`] | what a model's layers ask of whoever computes them |
//! | [`number`] | which numbers are refused |
//! | [`generate`], [`draw`] | fleets and models for figures and tests, each a function of a seed |
//!
//! Nothing here performs I/O, reads a clock or draws randomness of its own.

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

pub mod draw;
pub mod fleet;
pub mod generate;
pub mod model;
pub mod node;
pub mod number;
pub mod proximity;
