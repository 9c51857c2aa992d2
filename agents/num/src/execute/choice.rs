//! Rules N-24, N-29 and N-30.

use tensorlink_types::Operator;

use super::{Rescale, collect, nth_row, rows, wide};
use crate::checked::Rope;
use crate::context::StepContext;
use crate::error::OpError;
use crate::philox;
use crate::tensor::Tensor;

type Values = Result<Vec<i64>, OpError>;

/// `lengths` are the rows of the data set and their width.
pub(super) fn sample(
    op: &Operator,
    data: &Tensor,
    context: &StepContext,
    lengths: (u64, u64),
    first_row: u32,
) -> Values {
    let (population, width) = lengths;
    let batch = op.output.elements().checked_div(width).unwrap_or_default();
    let row = |i: u64| {
        // SAFETY of the cast: the checker keeps first_row + i below 2^32.
        let row = first_row.wrapping_add(i as u32);
        let drawn = philox::draw_below(&context.job_key, row, context.step, population);
        (0..width).map(move |f| data.get(drawn.saturating_mul(width).saturating_add(f)).unwrap_or(0))
    };
    collect(op, (0..batch).flat_map(row))
}

/// `lengths` are the entries of the table and their width.
pub(super) fn gather(op: &Operator, [table, scale, ids]: [&Tensor; 3], lengths: (u64, u64), shift: i64) -> Values {
    let (entries, width) = lengths;
    let round = Rescale::new(shift, op);
    let tokens = op.output.elements().checked_div(width).unwrap_or_default();
    let row = |t: u64| {
        let id = u64::try_from(ids.get(t).unwrap_or_default()).unwrap_or(0);
        let entry = id.min(entries.saturating_sub(1));
        let (first, scale) = (entry.saturating_mul(width), scale.get(entry).unwrap_or_default());
        let mantissa = move |k| table.get(first.saturating_add(k)).unwrap_or_default();
        (0..width).map(move |k| round.apply(mantissa(k).wrapping_mul(scale)))
    };
    collect(op, (0..tokens).flat_map(row))
}

pub(super) fn rope(op: &Operator, x: &Tensor, table: &Tensor, rope: &Rope) -> Values {
    let (round, x, table) = (Rescale::new(rope.shift, op), wide(x), wide(table));
    let half = usize::try_from(rope.half).unwrap_or(usize::MAX);
    let head = |head: &[i64], cosines: &[i64], sines: &[i64]| -> Vec<i64> {
        let (low, rest) = head.split_at_checked(half).unwrap_or_default();
        let (high, rest) = rest.split_at_checked(half).unwrap_or_default();
        let turns = || low.iter().zip(high).zip(cosines.iter().zip(sines));
        let lows = turns().map(|((l, h), (c, s))| l.wrapping_mul(*c).wrapping_sub(h.wrapping_mul(*s)));
        let highs = turns().map(|((l, h), (c, s))| h.wrapping_mul(*c).wrapping_add(l.wrapping_mul(*s)));
        lows.chain(highs).chain(rest.iter().map(|x| x.wrapping_shl(rope.exponent))).collect()
    };
    let row = |(row, turns)| {
        let (cosines, sines) = (nth_row(turns, 0, rope.half), nth_row(turns, 1, rope.half));
        rows(row, rope.width).flat_map(move |x| head(x, cosines, sines))
    };
    let pairs = rows(&x, rope.row).zip(rows(&table, rope.half.saturating_mul(2)));
    collect(op, pairs.flat_map(row).map(|x| round.apply(x)))
}
