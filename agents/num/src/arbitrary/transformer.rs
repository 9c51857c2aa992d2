//! How to draw the operators of transformers: N-25 to N-30.

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, TensorType};

use super::pieces::{Drawn, build, dim, exponent, reduced_shape, shift, ty};
use super::{CaseError, Dice};
use crate::checked::{EPSILON_BOUND, MAX_BIAS_SHIFT, MAX_ROPE_EXPONENT, NORM_INPUT_BITS, norm_exponent};
use crate::tensor::Tensor;

/// Bits of two factors of the same storage width.
fn factor_bits(dice: &mut Dice) -> (i64, i64) {
    if dice.once_in(2) { (2, 8) } else { (9, 16) }
}

/// The length of a dot product, 4096 once in a while, and the bound of the other dimensions.
fn depth(dice: &mut Dice, size: u32) -> (u32, u32) {
    if dice.once_in(40) { (MAX_REDUCTION as u32, 2) } else { (dim(dice, size.saturating_mul(4)), size) }
}

/// What N-25 and N-51 multiply: types of a and b, the offset, and how many binary places sums of products take.
pub(super) fn rows_to_multiply(dice: &mut Dice, size: u32) -> Result<(TensorType, TensorType, i64, i64), CaseError> {
    let bits = factor_bits(dice);
    let narrower = if dice.once_in(3) { (2, 8) } else { bits };
    let (depth, outer) = depth(dice, size);
    let (m, n, more) = (dim(dice, outer), dim(dice, outer), dice.range(0, size.into()));
    let offset = match dice.range(0, 3) {
        0 => 0,
        1 => more,
        _ => dice.range(0, more),
    };
    let (ea, eb) = (exponent(dice), exponent(dice));
    // SAFETY of the cast: at most MAX_SIZE.
    let a = ty(dice, bits, ea, &[m, depth + more as u32])?;
    let b = ty(dice, narrower, eb, &[n, depth])?;
    // Magnitudes of b bits are below 2^(b − 1): these sum to 62 binary places at most.
    let places = i64::from(a.bits()) + i64::from(b.bits()) - 2 + i64::from(depth.next_power_of_two().ilog2());
    Ok((a, b, offset, places))
}

pub(super) fn scaled_mat_mul(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (a, b, offset, places) = rows_to_multiply(dice, size)?;
    let (er, ec, shift) = (exponent(dice), exponent(dice), shift(dice));
    let (m, n) = (rows_of(&a), rows_of(&b));
    let r = ty(dice, (2, 62 - places), er, &[m])?;
    let c = ty(dice, (2, 64 - places - i64::from(r.bits())), ec, &[n])?;
    let y = ty(dice, (2, 64), i64::from(a.exponent()) + i64::from(b.exponent()) + er + ec - shift, &[m, n])?;
    let operands = vec![dice.tensor(&a)?, dice.tensor(&b)?, dice.tensor(&r)?, dice.tensor(&c)?];
    Ok(build(Opcode::ScaledMatMul, operands, vec![offset, shift], y))
}

/// Rows of a matrix that was drawn here.
pub(super) fn rows_of(ty: &TensorType) -> u32 {
    // SAFETY of the cast: a drawn matrix is small.
    ty.rows() as u32
}

/// Heads and the key/value heads they share, the second dividing the first.
pub(super) fn heads(dice: &mut Dice) -> (u32, u32) {
    let kv_heads = dim(dice, 3);
    (kv_heads * dim(dice, 3), kv_heads)
}

pub(super) fn head_scores(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let bits = factor_bits(dice);
    let (width, outer) = depth(dice, size);
    let (heads, kv_heads) = heads(dice);
    let (tokens, keys) = (dim(dice, outer), dim(dice, outer));
    let (eq, ek, shift) = (exponent(dice), exponent(dice), shift(dice));
    let q = ty(dice, bits, eq, &[tokens, heads * width])?;
    let k = ty(dice, bits, ek, &[keys, kv_heads * width])?;
    let y = ty(dice, (2, 64), eq + ek - shift, &[heads, tokens, keys])?;
    Ok(build(Opcode::HeadScores, vec![dice.tensor(&q)?, dice.tensor(&k)?], vec![heads.into(), shift], y))
}

pub(super) fn head_mix(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let bits = factor_bits(dice);
    let (keys, outer) = depth(dice, size);
    let (heads, kv_heads) = heads(dice);
    let (tokens, width) = (dim(dice, outer), dim(dice, outer));
    let (ep, ev, shift) = (exponent(dice), exponent(dice), shift(dice));
    let p = ty(dice, bits, ep, &[heads, tokens, keys])?;
    let v = ty(dice, bits, ev, &[kv_heads * width, keys])?;
    let y = ty(dice, (2, 64), ep + ev - shift, &[tokens, heads * width])?;
    Ok(build(Opcode::HeadMix, vec![dice.tensor(&p)?, dice.tensor(&v)?], vec![heads.into(), shift], y))
}

pub(super) fn norm(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (dims, ex, eg, t) = (reduced_shape(dice, size), exponent(dice), exponent(dice), dice.range(0, MAX_BIAS_SHIFT));
    let x = ty(dice, (2, NORM_INPUT_BITS.into()), ex, &dims)?;
    let accumulator = norm_exponent(x.bits()) + eg;
    // SAFETY of the cast: a drawn row has at most 4096 elements.
    let row = x.row() as u32;
    // Sometimes several runs of a row, each normalised by itself.
    let runs = if row.is_multiple_of(3) && dice.once_in(2) { 3 } else { 1 };
    let row = [row / runs];
    let gain = ty(dice, (2, 16), eg, &row)?;
    let bias = ty(dice, (2, 16), accumulator - t, &row)?;
    let epsilon = match dice.range(0, 5) {
        0 => 1,
        1 => EPSILON_BOUND - 1,
        2 => dice.range(1, EPSILON_BOUND - 1),
        _ => 1 + (dice.range(0, EPSILON_BOUND - 2) >> dice.range(20, 59)),
    };
    let shift = if dice.once_in(5) { dice.range(-63, 63) } else { dice.range(0, 36) };
    let y = ty(dice, (2, 64), accumulator - shift, &dims)?;
    let rows = rows(dice, &x);
    let operands = vec![Tensor::from_wide(x, &rows)?, dice.tensor(&gain)?, dice.tensor(&bias)?];
    let attributes = vec![dice.range(0, 1), epsilon, t, shift];
    Ok(build(Opcode::Norm, operands, attributes, y))
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

pub(super) fn rope(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (heads, width) = (dim(dice, 4), 1 + dim(dice, size));
    let rotating = 2 * dim(dice, width / 2);
    let (tokens, more) = (dim(dice, size), dim(dice, 3) - 1);
    let (ex, f, shift) = (exponent(dice), dice.range(0, MAX_ROPE_EXPONENT.into()), shift(dice));
    let row = heads * width;
    let dims = if dice.once_in(4) { vec![1, tokens, row] } else { vec![tokens, row] };
    let x = ty(dice, (2, 16), ex, &dims)?;
    let table = ty(dice, (2, 16), f, &[tokens + more, rotating])?;
    let y = ty(dice, (2, 64), ex + f - shift, &dims)?;
    Ok(build(Opcode::Rope, vec![dice.tensor(&x)?, dice.tensor(&table)?], vec![heads.into(), shift], y))
}

pub(super) fn gather(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
    let (entries, width, tokens, more) = (dim(dice, 40), dim(dice, size), dim(dice, size), dim(dice, 4) - 1);
    let (et, es, shift) = (exponent(dice), exponent(dice), shift(dice));
    let table = ty(dice, (2, 62), et, &[entries, width])?;
    let scale = ty(dice, (2, (64 - i64::from(table.bits())).max(2)), es, &[entries + more])?;
    let ids = ids(dice, tokens + more, entries)?;
    let y = ty(dice, (2, 64), et + es - shift, &[tokens, width])?;
    let operands = vec![dice.tensor(&table)?, dice.tensor(&scale)?, ids];
    Ok(build(Opcode::Gather, operands, vec![shift], y))
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
