//! The fewest leaves that hold what an element is computed from.

use tensorlink_num::Read;
use tensorlink_types::TensorType;
use tensorlink_types::abi::LeafRange;

use crate::merkle::tensor::leaves_of;
use crate::merkle::{LEAF_BYTES, OpeningError, TensorTree};

/// Leaves `[from, to)` that hold the reads of one operand, sorted, overlapping and adjacent ones joined: one range
/// costs fewer siblings than two.
///
/// # Errors
/// [`OpeningError::OutOfRange`] for reads beyond the type.
pub fn ranges(ty: &TensorType, reads: &[Read], operand: usize) -> Result<Vec<(u64, u64)>, OpeningError> {
    let of_operand = reads.iter().filter(|read| read.operand == operand);
    let mut leaves = of_operand.map(|read| leaves_of(ty, read.first, read.count)).collect::<Result<Vec<_>, _>>()?;
    leaves.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(leaves.len());
    for (from, to) in leaves {
        match joined.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => joined.push((from, to)),
        }
    }
    Ok(joined)
}

/// Opens ranges of leaves of a tensor.
///
/// # Errors
/// [`OpeningError`] for leaves beyond the tensor.
pub fn open(tree: &TensorTree<'_>, ranges: &[(u64, u64)]) -> Result<Vec<LeafRange>, OpeningError> {
    ranges.iter().map(|(from, to)| tree.open(*from, to.saturating_sub(*from))).collect()
}

/// Mantissa of an element, if one of the ranges holds it; as stored, so it may be one that the type forbids.
pub fn mantissa(ranges: &[LeafRange], ty: &TensorType, element: u64) -> Option<i64> {
    let width = ty.width().bytes() as u64;
    let position = element.checked_mul(width)?;
    ranges.iter().find_map(|range| {
        let offset = position.checked_sub(u64::from(range.firstLeaf).checked_mul(LEAF_BYTES as u64)?)?;
        let (from, to) = (usize::try_from(offset).ok()?, usize::try_from(offset.checked_add(width)?).ok()?);
        sign_extended(range.leaves.get(from..to)?)
    })
}

/// A little-endian two's complement number of 1 to 8 bytes.
pub(crate) fn sign_extended(bytes: &[u8]) -> Option<i64> {
    let mut word = if bytes.last()? & 0x80 == 0 { [0u8; 8] } else { [0xff; 8] };
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(word))
}
