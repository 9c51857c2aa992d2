//! Bits, exponent and shape of a tensor.
//!
//! A tensor is integer mantissas `m` with one exponent `e`: each value is `m · 2^−e`. A tensor of `b` bits holds
//! `|m| ≤ 2^(b−1) − 1`; the range is symmetric so that negation stays inside it.

use std::fmt;

use alloy_primitives::{B256, U256};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Largest number of dimensions of a tensor.
pub const MAX_RANK: usize = 4;

/// Largest number of elements of a tensor; keeps every byte offset below 2^40 and every leaf index below 2^32.
pub const MAX_ELEMENTS: u64 = 1 << 37;

/// Largest magnitude of an exponent.
pub const MAX_EXPONENT: i16 = 256;

/// Storage width of an element: the smallest of these that holds the tensor's bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Width {
    /// One byte.
    I8,
    /// Two bytes.
    I16,
    /// Four bytes.
    I32,
    /// Eight bytes.
    I64,
}

impl Width {
    /// Bytes an element takes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::I16 => 2,
            Self::I32 => 4,
            Self::I64 => 8,
        }
    }
}

/// Why a tensor type was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum TypeError {
    /// Bits outside 2..=64.
    #[error("a tensor of {0} bits: choose 2 to 64")]
    Bits(u8),
    /// Exponent outside ±[`MAX_EXPONENT`].
    #[error("exponent {0} is outside ±{MAX_EXPONENT}")]
    Exponent(i16),
    /// No dimension, or more than [`MAX_RANK`].
    #[error("{0} dimensions: a tensor has 1 to {MAX_RANK}")]
    Rank(usize),
    /// A dimension of length zero.
    #[error("dimension {0} has length 0")]
    EmptyDimension(usize),
    /// More elements than [`MAX_ELEMENTS`].
    #[error("more than {MAX_ELEMENTS} elements")]
    TooLarge,
    /// The word has bits set that no tensor type sets.
    #[error("{0} does not encode a tensor type")]
    Word(B256),
}

/// Type of a tensor: bits, exponent, shape. Valid by construction.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawTensorType", into = "RawTensorType")]
pub struct TensorType {
    bits: u8,
    exponent: i16,
    rank: u8,
    dims: [u32; MAX_RANK],
}

/// Serialised form, checked on the way in.
#[derive(Serialize, Deserialize)]
struct RawTensorType {
    bits: u8,
    exponent: i16,
    dims: Vec<u32>,
}

impl TryFrom<RawTensorType> for TensorType {
    type Error = TypeError;

    fn try_from(raw: RawTensorType) -> Result<Self, TypeError> {
        Self::new(raw.bits, raw.exponent, &raw.dims)
    }
}

impl From<TensorType> for RawTensorType {
    fn from(ty: TensorType) -> Self {
        Self { bits: ty.bits, exponent: ty.exponent, dims: ty.dims().to_vec() }
    }
}

impl TensorType {
    /// Checks and builds a type; `dims` are outermost first (row-major).
    pub fn new(bits: u8, exponent: i16, dims: &[u32]) -> Result<Self, TypeError> {
        if !(2..=64).contains(&bits) {
            return Err(TypeError::Bits(bits));
        }
        if exponent.unsigned_abs() > MAX_EXPONENT.unsigned_abs() {
            return Err(TypeError::Exponent(exponent));
        }
        if dims.is_empty() || dims.len() > MAX_RANK {
            return Err(TypeError::Rank(dims.len()));
        }
        let mut padded = [0u32; MAX_RANK];
        let mut elements: u64 = 1;
        for (axis, (slot, &dim)) in padded.iter_mut().zip(dims).enumerate() {
            if dim == 0 {
                return Err(TypeError::EmptyDimension(axis));
            }
            elements =
                elements.checked_mul(u64::from(dim)).filter(|n| *n <= MAX_ELEMENTS).ok_or(TypeError::TooLarge)?;
            *slot = dim;
        }
        // SAFETY of the cast: the rank is at most MAX_RANK.
        Ok(Self { bits, exponent, rank: dims.len() as u8, dims: padded })
    }

    /// Bits of the mantissas, sign included.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// Exponent `e`: values are mantissas times `2^−e`.
    pub const fn exponent(&self) -> i16 {
        self.exponent
    }

    /// Lengths of the dimensions, outermost first.
    pub fn dims(&self) -> &[u32] {
        self.dims.get(..usize::from(self.rank)).unwrap_or(&self.dims)
    }

    /// Largest mantissa: `2^(bits−1) − 1`.
    pub const fn limit(&self) -> i64 {
        ((1u64 << (self.bits - 1)) - 1) as i64
    }

    /// Storage width.
    pub const fn width(&self) -> Width {
        match self.bits {
            0..=8 => Width::I8,
            9..=16 => Width::I16,
            17..=32 => Width::I32,
            _ => Width::I64,
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.dims().iter().map(|d| u64::from(*d)).product()
    }

    /// Length of a row: the innermost dimension.
    pub fn row(&self) -> u64 {
        self.dims().last().map_or(1, |d| u64::from(*d))
    }

    /// Number of rows: elements divided by the row length.
    pub fn rows(&self) -> u64 {
        self.elements() / self.row()
    }

    /// Bytes of the canonical encoding: row-major, little-endian two's complement.
    pub fn byte_len(&self) -> u64 {
        self.elements() * self.width().bytes() as u64
    }

    /// The same type with other bits and exponent.
    pub fn with_precision(&self, bits: u8, exponent: i16) -> Result<Self, TypeError> {
        Self::new(bits, exponent, self.dims())
    }

    /// One-word encoding, as the contracts read it: from the top, bits (8), exponent (16, two's complement),
    /// rank (8), 96 zero bits, then four dimensions of 32 bits (absent ones 0).
    pub fn to_word(&self) -> U256 {
        let head =
            (u128::from(self.bits) << 120) | (u128::from(self.exponent as u16) << 104) | (u128::from(self.rank) << 96);
        let dims = self.dims.iter().fold(0u128, |word, dim| (word << 32) | u128::from(*dim));
        (U256::from(head) << 128) | U256::from(dims)
    }

    /// Decodes [`Self::to_word`]; refuses every word that it cannot have written.
    pub fn from_word(word: U256) -> Result<Self, TypeError> {
        let bytes: [u8; 32] = word.to_be_bytes();
        let bad = || TypeError::Word(B256::from(bytes));
        let [bits, e0, e1, rank, _, _, _, _, _, _, _, _, _, _, _, _, dims @ ..] = bytes;
        let dims: Vec<u32> = dims.chunks_exact(4).filter_map(|c| c.try_into().ok().map(u32::from_be_bytes)).collect();
        let used = dims.get(..usize::from(rank)).ok_or_else(bad)?;
        let ty = Self::new(bits, i16::from_be_bytes([e0, e1]), used)?;
        if ty.to_word() == word { Ok(ty) } else { Err(bad()) }
    }
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "i{}e{}{:?}", self.bits, self.exponent, self.dims())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_round_trips() {
        for (bits, exponent, dims) in
            [(8, 7, vec![3, 5]), (64, -256, vec![1]), (26, 24, vec![2, 3, 4, u32::from(u16::MAX)])]
        {
            let ty = TensorType::new(bits, exponent, &dims).unwrap();
            assert_eq!(TensorType::from_word(ty.to_word()).unwrap(), ty);
        }
    }

    #[test]
    fn refuses_words_with_stray_bits() {
        let word = TensorType::new(8, 0, &[4]).unwrap().to_word();
        // A second dimension that the rank does not count, and a bit in the gap.
        for stray in [U256::from(1), U256::from(1) << 130] {
            assert!(matches!(TensorType::from_word(word | stray), Err(TypeError::Word(_))));
        }
    }

    #[test]
    fn refuses_bad_shapes() {
        assert_eq!(TensorType::new(1, 0, &[1]), Err(TypeError::Bits(1)));
        assert_eq!(TensorType::new(8, 0, &[]), Err(TypeError::Rank(0)));
        assert_eq!(TensorType::new(8, 0, &[3, 0]), Err(TypeError::EmptyDimension(1)));
        assert_eq!(TensorType::new(8, 0, &[u32::MAX, u32::MAX]), Err(TypeError::TooLarge));
        assert_eq!(TensorType::new(8, 999, &[1]), Err(TypeError::Exponent(999)));
    }
}
