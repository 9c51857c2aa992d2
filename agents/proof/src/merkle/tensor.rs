//! The tree over a tensor's canonical bytes.

use std::borrow::Cow;

use alloy_primitives::{B256, Bytes};
use rayon::prelude::*;
use tensorlink_num::Tensor;
use tensorlink_num::tensor::Mantissas;
use tensorlink_types::abi::LeafRange;
use tensorlink_types::{TensorRoot, TensorType};

use super::{LEAF, LEAF_BYTES, Levels, OpeningError, TENSOR, depth, parents};
use crate::keccak::{Digest, hash_many, hash_one};

/// Leaves of the subtrees that are hashed as one piece of work: 128 KiB, which stays in a core's cache.
const PIECE: usize = 512;
/// Fewest bytes that are worth handing to other threads.
const PARALLEL: usize = 1 << 20;

/// Number of leaves of a tensor of this type.
pub fn leaf_count(ty: &TensorType) -> u64 {
    ty.byte_len().div_ceil(LEAF_BYTES as u64)
}

/// A tensor's canonical bytes without padding (C-1); borrowed where memory is little-endian already.
pub fn canonical_bytes(tensor: &Tensor) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "big") {
        return Cow::Owned(tensor.to_bytes());
    }
    Cow::Borrowed(match tensor.mantissas() {
        Mantissas::I8(m) => bytemuck::cast_slice(m),
        Mantissas::I16(m) => bytemuck::cast_slice(m),
        Mantissas::I32(m) => bytemuck::cast_slice(m),
        Mantissas::I64(m) => bytemuck::cast_slice(m),
    })
}

/// Merkle root of canonical bytes (C-2), given without padding. Parallel on rayon's current pool when it pays. No bytes
/// at all give the zero digest, which no tensor has.
pub fn data_root(bytes: &[u8]) -> B256 {
    let piece_height = depth(PIECE as u64);
    let height = depth(bytes.len().div_ceil(LEAF_BYTES) as u64);
    if height <= piece_height {
        return climb(leaves(bytes), 0, height).into();
    }
    let pieces = bytes.par_chunks(PIECE * LEAF_BYTES);
    let pieces = if bytes.len() < PARALLEL { pieces.with_min_len(usize::MAX) } else { pieces.with_min_len(1) };
    let subtrees: Vec<Digest> = pieces.map(|piece| climb(leaves(piece), 0, piece_height)).collect();
    climb(subtrees, piece_height, height).into()
}

/// `H(0x02 ‖ type word ‖ data root)` (C-2).
pub fn root_from_data(ty: &TensorType, data_root: B256) -> TensorRoot {
    let word: Digest = ty.to_word().to_be_bytes();
    TensorRoot(hash_one(TENSOR, [word, data_root.0].as_flattened()).into())
}

/// Commitment of a tensor (C-2).
pub fn tensor_root(tensor: &Tensor) -> TensorRoot {
    root_from_data(tensor.ty(), data_root(&canonical_bytes(tensor)))
}

/// Hashes of all leaves of unpadded bytes.
fn leaves(bytes: &[u8]) -> Vec<Digest> {
    let mut out = vec![[0u8; 32]; bytes.len().div_ceil(LEAF_BYTES)];
    let (_, rest) = bytes.as_chunks::<LEAF_BYTES>();
    hash_many(LEAF, bytes, LEAF_BYTES, &mut out);
    if let (false, Some(last)) = (rest.is_empty(), out.last_mut()) {
        *last = hash_one(LEAF, &padded(rest));
    }
    out
}

/// The last leaf: the remaining bytes and zeros.
fn padded(rest: &[u8]) -> [u8; LEAF_BYTES] {
    let mut leaf = [0u8; LEAF_BYTES];
    for (to, from) in leaf.iter_mut().zip(rest) {
        *to = *from;
    }
    leaf
}

/// The single node at height `to` over the nodes of a level at height `from`.
fn climb(mut level: Vec<Digest>, from: u32, to: u32) -> Digest {
    for height in from..to {
        level = parents(&level, height);
    }
    level.first().copied().unwrap_or_default()
}

/// A tensor's bytes with every level of their tree: an eighth more memory, and openings without hashing.
///
/// Over bytes rather than a [`Tensor`], because what a liar committed need not be one: mantissas may exceed their bits,
/// and padding may not be zero.
#[derive(Clone, Debug)]
pub struct TensorTree<'a> {
    ty: TensorType,
    /// Canonical bytes, with or without padding.
    bytes: Cow<'a, [u8]>,
    levels: Levels,
}

impl<'a> TensorTree<'a> {
    /// Hashes the whole tree of a tensor.
    pub fn new(tensor: &'a Tensor) -> Self {
        Self::hashed(tensor.ty().clone(), canonical_bytes(tensor))
    }

    /// Hashes the whole tree of bytes that claim to be a tensor of this type, with their padding or without.
    ///
    /// # Errors
    /// [`OpeningError::Length`] if they are neither as long as the type says nor that rounded up to whole leaves.
    pub fn from_bytes(ty: TensorType, bytes: &'a [u8]) -> Result<Self, OpeningError> {
        let actual = bytes.len() as u64;
        if actual != ty.byte_len() && actual != leaf_count(&ty).saturating_mul(LEAF_BYTES as u64) {
            return Err(OpeningError::Length { expected: ty.byte_len(), actual });
        }
        Ok(Self::hashed(ty, Cow::Borrowed(bytes)))
    }

    fn hashed(ty: TensorType, bytes: Cow<'a, [u8]>) -> Self {
        let leaves: Vec<Digest> =
            bytes.par_chunks(PIECE * LEAF_BYTES).map(leaves).collect::<Vec<_>>().into_iter().flatten().collect();
        Self { ty, bytes, levels: Levels::new(leaves) }
    }

    /// The tensor's type.
    pub const fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The bytes the tree stands over, as given.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Merkle root of the bytes.
    pub fn data_root(&self) -> B256 {
        self.levels.root()
    }

    /// Commitment of the tensor.
    pub fn root(&self) -> TensorRoot {
        root_from_data(&self.ty, self.data_root())
    }

    /// Opens the leaves `[first, first + count)` (C-3).
    ///
    /// # Errors
    /// [`OpeningError::Empty`], [`OpeningError::OutOfRange`].
    pub fn open(&self, first: u64, count: u64) -> Result<LeafRange, OpeningError> {
        let total = leaf_count(&self.ty);
        let out_of_range = OpeningError::OutOfRange { first, count, total };
        let end = first.checked_add(count).filter(|end| *end <= total).ok_or(out_of_range.clone())?;
        if count == 0 {
            return Err(OpeningError::Empty);
        }
        let mut siblings = Vec::new();
        let (mut left, mut right) = (first, end - 1);
        for height in 0..depth(total) {
            let at = |index: u64| self.levels.node(height, index);
            if left % 2 == 1 {
                siblings.push(at(left - 1));
            }
            if right % 2 == 0 {
                siblings.push(at(right + 1));
            }
            (left, right) = (left / 2, right / 2);
        }
        let first_leaf = u32::try_from(first).map_err(|_| out_of_range)?;
        Ok(LeafRange { firstLeaf: first_leaf, leaves: Bytes::from(self.leaves(first, end)), siblings })
    }

    /// The bytes of the leaves `[first, end)`, as far as they are there, padded to whole leaves.
    pub fn leaves(&self, first: u64, end: u64) -> Vec<u8> {
        let offset = |leaf: u64| usize::try_from(leaf).map_or(usize::MAX, |l| l.saturating_mul(LEAF_BYTES));
        let mut opened = self.bytes.get(offset(first)..offset(end).min(self.bytes.len())).unwrap_or_default().to_vec();
        opened.resize(opened.len().next_multiple_of(LEAF_BYTES), 0);
        opened
    }

    /// Every level of the tree.
    pub const fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Opens the leaves that hold the elements `[first, first + count)`.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_elements(&self, first: u64, count: u64) -> Result<LeafRange, OpeningError> {
        let (from, to) = leaves_of(&self.ty, first, count)?;
        self.open(from, to - from)
    }
}

/// The leaves `[from, to)` that hold the elements `[first, first + count)`.
///
/// # Errors
/// [`OpeningError::Empty`], [`OpeningError::OutOfRange`] (in elements).
pub fn leaves_of(ty: &TensorType, first: u64, count: u64) -> Result<(u64, u64), OpeningError> {
    let total = ty.elements();
    let end = first.checked_add(count).filter(|end| *end <= total);
    let end = end.ok_or(OpeningError::OutOfRange { first, count, total })?;
    if count == 0 {
        return Err(OpeningError::Empty);
    }
    let per_leaf = (LEAF_BYTES / ty.width().bytes()) as u64;
    Ok((first / per_leaf, end.div_ceil(per_leaf)))
}
