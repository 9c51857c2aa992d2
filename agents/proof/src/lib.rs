//! Commitments, their openings, and the proofs that convict. Pure: no I/O, clock or randomness.
//!
//! `SPEC.md` in this folder is the specification, rules C-*n*; `contracts/libraries/proofs/Merkle.sol` and
//! `contracts/core` are the other side of it.
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
//! A worker signs a tensor's root. Later a few leaves are opened against it, and no other bytes pass:
//!
//! ```
//! use tensorlink_num::Tensor;
//! use tensorlink_proof::merkle::{TensorTree, tensor::leaf_count, verify_range};
//! use tensorlink_types::TensorType;
//!
//! let ty = TensorType::new(8, 0, &[64, 64])?;
//! let tensor = Tensor::zeros(ty.clone());
//! let tree = TensorTree::new(&tensor);
//!
//! let mut opened = tree.open_elements(1000, 8)?;
//! assert_eq!(opened.leaves.len(), 256, "eight elements lie in one leaf");
//! verify_range(tree.data_root(), leaf_count(&ty), &opened)?;
//!
//! opened.leaves = vec![1; 256].into();
//! assert!(verify_range(tree.data_root(), leaf_count(&ty), &opened).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
