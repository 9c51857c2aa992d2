//! Checking opened leaves (C-3), statement for statement as `contracts/libraries/proofs` does it.

use alloy_primitives::B256;
use tensorlink_types::abi::LeafRange;

use super::{LEAF, LEAF_BYTES, NODE, OpeningError, depth};
use crate::keccak::{Digest, hash_many};

/// Number of siblings that an opening of the leaves `[first, first + count)` has in a tree of that depth.
pub fn sibling_count(first: u64, count: u64, depth: u32) -> usize {
    let last = first.saturating_add(count).saturating_sub(1);
    (0..depth).map(|h| usize::from((first >> h) % 2 == 1) + usize::from((last >> h).is_multiple_of(2))).sum()
}

/// Checks leaves against the data root of a tensor with `leaf_count` leaves.
///
/// # Errors
/// [`OpeningError`], whose variant says what is wrong with the opening.
pub fn verify_range(data_root: B256, leaf_count: u64, range: &LeafRange) -> Result<(), OpeningError> {
    let actual = range_root(leaf_count, range)?;
    if actual == data_root { Ok(()) } else { Err(OpeningError::Root { expected: data_root, actual }) }
}

/// Data root of a tensor with `leaf_count` leaves of which these are some, and these the siblings.
///
/// # Errors
/// [`OpeningError`] if no tensor has such.
pub fn range_root(leaf_count: u64, range: &LeafRange) -> Result<B256, OpeningError> {
    let (whole, rest) = range.leaves.as_chunks::<LEAF_BYTES>();
    if !rest.is_empty() {
        return Err(OpeningError::Misaligned(range.leaves.len()));
    }
    let (first, count) = (u64::from(range.firstLeaf), whole.len() as u64);
    if count == 0 {
        return Err(OpeningError::Empty);
    }
    // INVARIANT: the index is below the leaf count, so padding is never taken for data.
    if first.checked_add(count).is_none_or(|end| end > leaf_count) {
        return Err(OpeningError::OutOfRange { first, count, total: leaf_count });
    }
    // INVARIANT: the depth follows from the type, never from the proof.
    let depth = depth(leaf_count);
    let (expected, actual) = (sibling_count(first, count, depth), range.siblings.len());
    if expected != actual {
        return Err(OpeningError::Siblings { expected, actual });
    }
    let mut nodes = vec![[0u8; 32]; whole.len()];
    hash_many(LEAF, &range.leaves, LEAF_BYTES, &mut nodes);
    let mut siblings = range.siblings.iter().map(|s| s.0);
    let mut left = first;
    for _ in 0..depth {
        let mut level: Vec<Digest> = Vec::with_capacity(nodes.len() + 2);
        if left % 2 == 1 {
            level.extend(siblings.next());
        }
        level.append(&mut nodes);
        if level.len() % 2 == 1 {
            level.extend(siblings.next());
        }
        nodes = vec![[0u8; 32]; level.len() / 2];
        hash_many(NODE, level.as_flattened(), 64, &mut nodes);
        left /= 2;
    }
    Ok(nodes.first().copied().unwrap_or_default().into())
}
