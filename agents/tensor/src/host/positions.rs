//! Rope: pairs of elements turned by angles of their token (rule N-29).

use tensorlink_num::operators;
use tensorlink_program::EngineError;

use super::block::{Accumulator, Precision, rescale};
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut};

/// Rounds any `i32` to `2^shift`, half to even, and clamps (rule N-2); `1 ≤ shift`.
#[inline(always)]
fn rescale_full(block: &mut [i32], shift: i32, limit: i64) {
    if shift >= 32 {
        // At most half a unit, which is even at 0.
        block.fill(0);
        return;
    }
    let limit = limit.min(i64::from(i32::MAX)) as i32;
    let (by, mask) = (shift as u32, (1u32 << shift) - 1);
    let below_half = mask >> 1;
    for x in block {
        let floor = *x >> by;
        let rest = *x as u32 & mask;
        let up = (rest + below_half + (floor & 1) as u32) >> by;
        *x = (floor + up as i32).clamp(-limit, limit);
    }
}

/// `(x·c − y·s, y·c + x·s)` over halves, and `x·2^f` past them; two products of 15 bits each fit `i32`.
#[inline(always)]
fn turn<A: Accumulator>(row: &mut [A], depth: usize, table: &[A], fraction: u32) {
    let half = table.len() / 2;
    let (cosines, sines) = table.split_at(half);
    for head in row.chunks_exact_mut(depth) {
        let (turned, rest) = head.split_at_mut(2 * half);
        let (low, high) = turned.split_at_mut(half);
        for (((x, y), c), s) in low.iter_mut().zip(high).zip(cosines).zip(sines) {
            (*x, *y) = (*x * *c - *y * *s, *y * *c + *x * *s);
        }
        for x in rest {
            *x = *x << fraction;
        }
    }
}

multiversion! {
    fn turn_narrow(row: &mut [i32], depth: usize, table: &[i32], fraction: u32, to: Precision) {
        turn(row, depth, table, fraction);
        rescale_full(row, to.shift, to.limit);
    }
}

multiversion! {
    fn turn_wide(row: &mut [i64], depth: usize, table: &[i64], fraction: u32, to: Precision) {
        turn(row, depth, table, fraction);
        rescale(row, to.shift, to.limit);
    }
}

/// Lengths of rule N-29.
#[derive(Clone, Copy)]
pub(crate) struct Rope {
    /// Elements of a token.
    pub(crate) row: usize,
    /// Elements of a head.
    pub(crate) depth: usize,
    /// Elements of a row of the table.
    pub(crate) turned: usize,
    /// Exponent of the table.
    pub(crate) fraction: u32,
}

/// Rule N-29.
pub(crate) fn rope(
    simd: Simd,
    (x, table): (Slice<'_>, Slice<'_>),
    lengths: &Rope,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    if to.shift > 0 {
        each_token(simd, (x, table), lengths, out, |row, table| {
            turn_narrow(simd, row, lengths.depth, table, lengths.fraction, to);
        });
    } else {
        each_token(simd, (x, table), lengths, out, |row, table| {
            turn_wide(simd, row, lengths.depth, table, lengths.fraction, to);
        });
    }
}

fn each_token<A: Accumulator>(
    simd: Simd,
    (x, table): (Slice<'_>, Slice<'_>),
    lengths: &Rope,
    out: &mut SliceMut<'_>,
    mut compute: impl FnMut(&mut [A], &[A]),
) {
    let (mut row, mut angles) = (vec![A::ZERO; lengths.row], vec![A::ZERO; lengths.turned]);
    for token in 0..x.len() / lengths.row {
        x.load(simd, token * lengths.row, &mut row);
        table.load(simd, token * lengths.turned, &mut angles);
        compute(&mut row, &angles);
        out.store(simd, token * lengths.row, &row);
    }
}

impl OnHost for operators::Rope {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let lengths = Rope {
            row: self.row as usize,
            depth: self.width as usize,
            turned: 2 * self.half as usize,
            fraction: self.exponent,
        };
        rope(on.simd, (on.operand(0)?, on.operand(1)?), &lengths, on.to(self.shift), out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_i32_is_rounded_as_in_64_bits() {
        let edges = (0..31).flat_map(|b| [-1, 0, 1].map(|d| (1i64 << b) + d)).chain([i64::from(i32::MAX)]);
        let edges: Vec<i64> = edges.flat_map(|x| [x, -x]).chain([i64::from(i32::MIN)]).collect();
        for shift in 1..=40 {
            for limit in [1, 127, 32767, i64::from(i32::MAX), i64::MAX] {
                let (mut narrow, mut wide): (Vec<i32>, _) = (edges.iter().map(|x| *x as i32).collect(), edges.clone());
                rescale_full(&mut narrow, shift, limit);
                rescale(&mut wide, shift, limit);
                assert!(narrow.iter().zip(&wide).all(|(x, y)| i64::from(*x) == *y), "{shift} {limit}");
            }
        }
    }
}
