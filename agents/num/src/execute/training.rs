//! Rules N-38, N-39, N-41, N-44, N-45 and N-47.

use std::iter;

use tensorlink_types::Operator;

use super::{Rescale, collect, length, nth_row, rows, wide};
use crate::checked::Heads;
use crate::context::StepContext;
use crate::error::OpError;
use crate::tensor::Tensor;

type Values = Result<Vec<i64>, OpError>;

/// Each element of a with the one of b that stands for its run.
fn runs<'a>(a: &'a [i64], b: &'a [i64], run: u64) -> impl Iterator<Item = (i64, i64)> + 'a {
    rows(a, run).zip(b).flat_map(|(run, b)| run.iter().copied().zip(iter::repeat(*b)))
}

pub(super) fn row_combine(op: &Operator, a: &Tensor, b: &Tensor, run: u64, (ca, cb, shift): (i64, i64, i64)) -> Values {
    let (round, a, b) = (Rescale::new(shift, op), wide(a), wide(b));
    collect(op, runs(&a, &b, run).map(|(a, b)| round.apply(a.wrapping_mul(ca).wrapping_add(b.wrapping_mul(cb)))))
}

pub(super) fn row_mul(op: &Operator, a: &Tensor, b: &Tensor, run: u64, shift: i64) -> Values {
    let (round, a, b) = (Rescale::new(shift, op), wide(a), wide(b));
    collect(op, runs(&a, &b, run).map(|(a, b)| round.apply(a.wrapping_mul(b))))
}

/// `lengths` are the tokens and the elements of a row of the output.
pub(super) fn gather_grad(op: &Operator, g: &Tensor, ids: &Tensor, lengths: (u64, u64), shift: i64) -> Values {
    let (round, g, (tokens, width)) = (Rescale::new(shift, op), wide(g), lengths);
    let last = op.output.rows().saturating_sub(1);
    let entry = |t| u64::try_from(ids.get(t).unwrap_or_default()).unwrap_or(0).min(last);
    let firsts: Vec<u64> = (0..tokens).map(|t| entry(t).saturating_mul(width)).collect();
    let mut sums = collect(op, iter::repeat_n(0, length(op.output.elements())))?;
    for (k, row) in (0u64..).zip(rows(&g, tokens)) {
        for (g, first) in row.iter().zip(&firsts) {
            let place = usize::try_from(first.saturating_add(k)).ok().and_then(|place| sums.get_mut(place));
            place.into_iter().for_each(|sum| *sum = sum.wrapping_add(*g));
        }
    }
    sums.iter_mut().for_each(|sum| *sum = round.apply(*sum));
    Ok(sums)
}

pub(super) fn at_step(op: &Operator, table: &Tensor, context: &StepContext, entries: u64, width: u64) -> Values {
    let first = u64::from(context.step).min(entries.saturating_sub(1)).saturating_mul(width);
    collect(op, (0..width).map(|k| table.get(first.saturating_add(k)).unwrap_or_default()))
}

pub(super) fn group_sum(op: &Operator, a: &Tensor, heads: &Heads) -> Values {
    let (round, a) = (Rescale::new(heads.shift, op), wide(a));
    // A group's heads lie side by side.
    let group = |heads_of: &[i64]| -> Vec<i64> {
        let mut sums = nth_row(heads_of, 0, heads.width).to_vec();
        for head in rows(heads_of, heads.width).skip(1) {
            sums.iter_mut().zip(head).for_each(|(sum, a)| *sum = sum.wrapping_add(*a));
        }
        sums
    };
    let groups = rows(&a, heads.keys.saturating_mul(heads.width));
    collect(op, groups.flat_map(group).map(|sum| round.apply(sum)))
}

pub(super) fn slice(op: &Operator, a: &Tensor, row: u64, width: u64, offset: u64) -> Values {
    let (a, offset) = (wide(a), usize::try_from(offset).unwrap_or(usize::MAX));
    collect(op, rows(&a, row).flat_map(|row| row.iter().skip(offset).take(length(width)).copied()))
}
