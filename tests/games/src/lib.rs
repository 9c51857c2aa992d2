//! Challenges played out: the worker's and the challenger's code on one side, the compiled contracts in revm on
//! the other.
//!
//! | module | what lives there |
//! |---|---|
//! | [`world`] | the contracts with a job that runs, and calls on them |
//! | [`scenario`] | random programs, their execution, and lies about it |
//! | [`play`] | one game from its opening to its verdict |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a game that cannot be played fails its test"
)]

pub mod play;
pub mod scenario;
pub mod world;
