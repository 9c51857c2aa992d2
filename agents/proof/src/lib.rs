//! Commitments, their openings, and the proofs that convict. Pure: no I/O, clock or randomness.
//!
//! `SPEC.md` in this folder is the specification, rules C-*n*; `contracts/libraries/Merkle.sol` and `contracts/core` are the
//! other side of it.
//!
//! | module | what lives there |
//! |---|---|
//! | [`keccak`] | keccak-256 of many equal messages at once |
//! | [`merkle`] | trees over tensors and lists, openings, their verification |
//! | [`commit`] | roots of programs, states, traces and logs; digests; signatures |
//! | [`audit`] | from a worker's answers and one's own re-execution to the fault, if there is one |
//! | [`challenge`] | what a silent worker is asked on chain, and what it answers |
//! | [`custody`] | what a demand for data is answered with |
//! | [`sortition`] | which validators are drawn to answer for a claim, and how they seal it |
//! | [`fraud`] | from a fault to the proof that the contract accepts, and the contract's checks in Rust |
//!
//! No input makes this crate panic.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        reason = "a test that panics fails, as it should"
    )
)]

pub mod audit;
pub mod challenge;
pub mod commit;
pub mod custody;
pub mod fraud;
pub mod keccak;
pub mod merkle;
pub mod sortition;
