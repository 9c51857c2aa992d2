//! Trees over tensors (rules C-1 to C-3) and over lists of digests (C-4).
//!
//! | module | what lives there |
//! |---|---|
//! | [`tensor`] | data root and tensor root; [`TensorTree`], which keeps all levels to open leaves |
//! | [`range`] | checking opened leaves, as the contract does |
//! | [`list`] | [`List`]: operators, state, traces, boundary logs |
//! | [`levels`] | [`Levels`]: all nodes of a tree |

pub mod batch;
pub mod levels;
pub mod list;
pub mod range;
pub mod tensor;

use std::sync::LazyLock;

use alloy_primitives::B256;
use rayon::prelude::*;
use thiserror::Error;

pub use self::batch::tensor_roots;
pub use self::levels::Levels;
pub use self::list::{Entries, List, list_root, list_root_over, verify_membership};
pub use self::range::{range_root, verify_range};
pub use self::tensor::{TensorTree, data_root, root_from_data, tensor_root};
use crate::keccak::{Digest, hash_many, hash_one};

/// Bytes of a tensor's leaf.
pub const LEAF_BYTES: usize = 256;

/// Domain byte of a tensor's leaf (C-2).
pub const LEAF: u8 = 0;
/// Domain byte of an inner node of any tree (C-2, C-4).
pub const NODE: u8 = 1;
/// Domain byte that binds a data root to its type (C-2).
pub const TENSOR: u8 = 2;
/// Domain byte of a list's leaf (C-4).
pub const ITEM: u8 = 3;

/// Deepest tree: tensors have fewer than 2^32 leaves or just as many (`MAX_ELEMENTS` of 8 bytes).
pub const MAX_DEPTH: u32 = 32;

/// Why an opening was refused or cannot be made. Refuse the proof; no retry can make it valid.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum OpeningError {
    /// A position beyond the end of the tree.
    #[error("{first} + {count} exceeds the {total} leaves of the tree")]
    OutOfRange {
        /// First leaf.
        first: u64,
        /// Leaves from there.
        count: u64,
        /// Leaves of the tree.
        total: u64,
    },
    /// An opening of no leaf.
    #[error("an opening holds at least one leaf")]
    Empty,
    /// Opened bytes that are not whole leaves.
    #[error("{0} opened bytes are not whole leaves of {LEAF_BYTES}")]
    Misaligned(usize),
    /// Bytes that are not a tensor of the type.
    #[error("{actual} bytes where the type has {expected}")]
    Length {
        /// What the type says.
        expected: u64,
        /// What was given.
        actual: u64,
    },
    /// Too few or too many siblings for the tree's depth.
    #[error("{actual} siblings where the tree needs {expected}")]
    Siblings {
        /// What the position and the depth ask for.
        expected: usize,
        /// What the proof holds.
        actual: usize,
    },
    /// The path leads to another root.
    #[error("opening leads to {actual}, not to {expected}")]
    Root {
        /// The commitment.
        expected: B256,
        /// Where the path leads.
        actual: B256,
    },
}

/// Least depth of a binary tree that holds `leaves`.
pub const fn depth(leaves: u64) -> u32 {
    if leaves <= 1 { 0 } else { (leaves - 1).ilog2() + 1 }
}

/// `H(0x01 ‖ left ‖ right)`.
pub(crate) fn node(left: &Digest, right: &Digest) -> Digest {
    hash_one(NODE, [*left, *right].as_flattened())
}

/// Root of a subtree of that height without any leaf: a zero digest at the bottom, hashed upwards like any other (C-2).
fn empty_subtree(height: u32) -> Digest {
    static LADDER: LazyLock<[Digest; MAX_DEPTH as usize + 1]> = LazyLock::new(|| {
        let mut below = [0u8; 32];
        let mut ladder = [below; MAX_DEPTH as usize + 1];
        for digest in ladder.iter_mut().skip(1) {
            below = node(&below, &below);
            *digest = below;
        }
        ladder
    });
    LADDER.get(height as usize).copied().unwrap_or_default()
}

/// Nodes that one piece of parallel work makes, from twice as many below.
const NODES: usize = 1024;

/// The level above `level`, which stands at `height`; an odd end is joined with an empty subtree.
fn parents(level: &[Digest], height: u32) -> Vec<Digest> {
    let mut above = vec![[0u8; 32]; level.len().div_ceil(2)];
    let pieces = above.par_chunks_mut(NODES).zip(level.par_chunks(2 * NODES));
    pieces.for_each(|(above, below)| hash_many(NODE, below.as_flattened(), 64, above));
    if let ([.., odd], Some(last)) = (level, above.last_mut())
        && level.len() % 2 == 1
    {
        *last = node(odd, &empty_subtree(height));
    }
    above
}
