//! What cases are drawn of: shapes, types and attributes of any operator.

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType, TypeError};

use super::{CaseError, Dice};
use crate::bounds::COEFFICIENT_BOUND;
use crate::tensor::Tensor;

/// Elements beyond which shapes are not drawn (longest reductions excepted).
const MAX_ELEMENTS: u32 = 600;

pub(super) type Drawn = (Operator, Vec<Tensor>);

pub(super) fn build(opcode: Opcode, operands: Vec<Tensor>, attributes: Vec<i64>, output: TensorType) -> Drawn {
    let named = (0u32..).zip(&operands).map(|(i, t)| Operand { source: Source::State(i), ty: t.ty().clone() });
    (Operator { opcode, operands: named.collect(), attributes, output }, operands)
}

pub(super) fn dim(dice: &mut Dice, max: u32) -> u32 {
    // SAFETY of the cast: between 1 and max.
    dice.range(1, max.into()) as u32
}

pub(super) fn shape(dice: &mut Dice, size: u32) -> Vec<u32> {
    let rank = dice.range(1, 4);
    let mut room = MAX_ELEMENTS;
    (0..rank)
        .map(|_| {
            let dim = dim(dice, size.min(room));
            room = room.checked_div(dim).unwrap_or(1).max(1);
            dim
        })
        .collect()
}

/// A shape whose rows are reduced: 4096 long once in a while.
pub(super) fn reduced_shape(dice: &mut Dice, size: u32) -> Vec<u32> {
    if dice.once_in(40) {
        return vec![dim(dice, 2), MAX_REDUCTION as u32];
    }
    shape(dice, size)
}

/// One element for each row of a shape.
pub(super) fn per_row(dims: &[u32]) -> Vec<u32> {
    match dims {
        [outer @ .., _] if !outer.is_empty() => outer.to_vec(),
        _ => vec![1],
    }
}

/// One element for each row, sometimes for each half of a row.
pub(super) fn parts(dice: &mut Dice, a: &TensorType) -> Vec<u32> {
    // SAFETY of the cast: what is drawn has few rows.
    let rows = a.rows() as u32;
    if a.row().is_multiple_of(2) && dice.once_in(3) { vec![rows, 2] } else { vec![rows] }
}

/// A shape whose element count divides that of `dims`.
pub(super) fn divisor_shape(dice: &mut Dice, dims: &[u32]) -> Vec<u32> {
    let keep = dice.range(0, dims.len() as i64) as usize;
    match dims.get(dims.len().saturating_sub(keep)..) {
        Some(tail) if !tail.is_empty() => tail.to_vec(),
        _ => vec![1],
    }
}

pub(super) fn ty(dice: &mut Dice, bits: (i64, i64), exponent: i64, dims: &[u32]) -> Result<TensorType, TypeError> {
    // SAFETY of the casts: bits are at most 64, exponents stay within ±256.
    TensorType::new(dice.range(bits.0, bits.1) as u8, exponent as i16, dims)
}

pub(super) fn exponent(dice: &mut Dice) -> i64 {
    dice.range(-30, 40)
}

/// A shift that mostly leaves something to see.
pub(super) fn shift(dice: &mut Dice) -> i64 {
    if dice.once_in(5) { dice.range(-63, 63) } else { dice.range(-2, 20) }
}

/// A factor that keeps products with `limit` below 2^61.
pub(super) fn coefficient(dice: &mut Dice, limit: i64) -> i64 {
    let room = (1i64 << 61).saturating_sub(1).checked_div(limit).unwrap_or(0).min(COEFFICIENT_BOUND - 1);
    let magnitude = room.checked_shr(dice.range(0, 40) as u32).unwrap_or(0);
    dice.mantissa(magnitude)
}

/// The attribute of rule N-8, where the shape allows it.
pub(super) fn causal(dice: &mut Dice, dims: &[u32]) -> i64 {
    i64::from(dims.len() >= 2 && dice.once_in(2))
}

/// Bits of two factors of the same storage width.
pub(super) fn factor_bits(dice: &mut Dice) -> (i64, i64) {
    if dice.once_in(2) { (2, 8) } else { (9, 16) }
}

/// The length of a dot product, 4096 once in a while, and the bound of the other dimensions.
pub(super) fn depth(dice: &mut Dice, size: u32) -> (u32, u32) {
    if dice.once_in(40) { (MAX_REDUCTION as u32, 2) } else { (dim(dice, size.saturating_mul(4)), size) }
}

/// Heads and the key/value heads they share, the second dividing the first.
pub(super) fn heads(dice: &mut Dice) -> (u32, u32) {
    let kv_heads = dim(dice, 3);
    (kv_heads * dim(dice, 3), kv_heads)
}

/// Mantissas whose rows are drawn, sometimes zero, constant, or zero but for one element.
pub(super) fn rows(dice: &mut Dice, ty: &TensorType) -> Vec<i64> {
    let mut values = Vec::new();
    for _ in 0..ty.rows() {
        let (kind, constant) = (dice.range(0, 8), dice.mantissa(ty.limit()));
        for k in 0..ty.row() {
            values.push(match kind {
                0 => 0,
                1 => constant,
                2 if k > 0 => 0,
                _ => dice.mantissa(ty.limit()),
            });
        }
    }
    values
}

/// Numbers of entries, some of them beyond the last; of rank 1 or 2.
pub(super) fn ids(dice: &mut Dice, count: u32, entries: u32) -> Result<Tensor, CaseError> {
    let dims: &[u32] = if dice.once_in(3) { &[1, count] } else { &[count] };
    let ids = ty(dice, (2, 64), 0, dims)?;
    let last = i64::from(entries) - 1;
    let drawn: Vec<i64> = (0..ids.elements())
        .map(|_| match dice.range(0, 9) {
            0 => -1,
            1 => last + 1,
            2 => dice.mantissa(ids.limit()),
            _ => dice.range(0, last),
        })
        .map(|id| id.clamp(-ids.limit(), ids.limit()))
        .collect();
    Ok(Tensor::from_wide(ids, &drawn)?)
}
