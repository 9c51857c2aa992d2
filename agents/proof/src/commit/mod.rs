//! What is committed and signed, struct by struct.
//!
//! | module | rules |
//! |---|---|
//! | [`program`] | program root (C-5) |
//! | [`programs`] | programs of a serving stage by length (C-13) |
//! | [`logs`] | boundary logs and their root (C-8) |
//! | [`mod@receipt`] | receipts (C-12) |
//! | [`digest`] | EIP-712 digests, claim ids, claim records, job keys (C-9 to C-11) |
//! | [`mod@sign`] | signatures (C-9) |
//!
//! State (C-6) and trace (C-7) are plain lists of tensor roots.

pub mod digest;
pub mod logs;
pub mod program;
pub mod programs;
pub mod receipt;
pub mod sign;

use alloy_primitives::B256;
use tensorlink_types::TensorRoot;

pub use self::digest::{Contracts, job_key, record_hash, seal};
pub use self::logs::{
    Boundary, BoundaryLists, LogBuilder, LogError, LogShape, Logs, SenderSignatures, edge_log, io_root,
};
pub use self::program::{ProgramCommitment, operator_hash, program_hash, wired, wiring_place};
pub use self::programs::ProgramList;
pub use self::receipt::{Crossed, epoch_record, is_receipt, receipt, receipt_list, receipt_statement};
pub use self::sign::{SIGNATURE_BYTES, SignatureError, recover, sign, verify_signer};
use crate::merkle::{List, list_root};
pub use crate::merkle::{tensor_root, tensor_roots};

/// Root of a stage's state: its tensor roots in registered order (C-6).
pub fn state_root(tensors: &[TensorRoot]) -> B256 {
    list_root(tensors.iter().copied())
}

/// Root of a step's trace: the tensor roots of all operator outputs in program order (C-7).
pub fn trace_root(outputs: &[TensorRoot]) -> B256 {
    list_root(outputs.iter().copied())
}

/// A list of tensor roots with its tree, for memberships in a state, a trace or a log.
pub fn tensor_list(tensors: &[TensorRoot]) -> List {
    List::new(tensors.iter().copied())
}
