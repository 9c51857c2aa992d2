//! Which elements of its operands an element is computed from.

use super::{Read, Site};
use crate::checked::{CONTROLS, CheckedOperator, Norm};
use crate::error::OpError;

const fn one(operand: usize, first: u64) -> Read {
    Read { operand, first, count: 1 }
}

const fn run(operand: usize, first: u64, count: u64) -> Read {
    Read { operand, first, count }
}

/// Row m of the controls.
const fn controls(operand: usize, m: u64) -> Read {
    run(operand, m.saturating_mul(CONTROLS), CONTROLS)
}

impl<F: Fn(usize, u64) -> Option<i64>> Site<'_, F> {
    pub(super) fn reads(&self) -> Result<Vec<Read>, OpError> {
        let i = self.index;
        let row = |row: u64, depth: u64, count| run(0, row.saturating_mul(depth), count);
        Ok(match self.checked {
            CheckedOperator::MatMul { .. } | CheckedOperator::HeadScores(_) | CheckedOperator::HeadMix(_) => {
                let runs = self.runs();
                vec![run(0, runs.a, runs.count), run(1, runs.b, runs.count)]
            }
            CheckedOperator::ScaledMatMul(product) | CheckedOperator::ShiftedMatMul(product) => {
                let (runs, (m, n)) = (self.runs(), self.split(product.columns));
                vec![run(0, runs.a, runs.count), run(1, runs.b, runs.count), one(2, m), one(3, n)]
            }
            CheckedOperator::Transpose { .. }
            | CheckedOperator::Sample { .. }
            | CheckedOperator::AtStep { .. }
            | CheckedOperator::Slice { .. } => {
                vec![one(0, self.moved())]
            }
            CheckedOperator::Combine { period, .. } | CheckedOperator::Mul { period, .. } => {
                vec![one(0, i), one(1, self.split(period).1)]
            }
            CheckedOperator::RowCombine { run, .. } | CheckedOperator::RowMul { run, .. } => {
                vec![one(0, i), one(1, self.split(run).0)]
            }
            CheckedOperator::Scale { .. } | CheckedOperator::Relu | CheckedOperator::Shrink { .. } => vec![one(0, i)],
            CheckedOperator::ReluGrad | CheckedOperator::Ratio { .. } => vec![one(0, i), one(1, i)],
            CheckedOperator::Lookup(lookup) => vec![one(0, i), run(1, self.lookup_cell(&lookup)?.entry, 2)],
            CheckedOperator::RowMax { depth, visible } => vec![row(i, depth, visible.of_row(i, depth))],
            CheckedOperator::InverseNorm(Norm { depth, .. })
            | CheckedOperator::RowAbsMax { depth }
            | CheckedOperator::RowSum { depth, .. }
            | CheckedOperator::RowArgMax { depth }
            | CheckedOperator::RowShift { depth, .. } => {
                vec![row(i, depth, depth)]
            }
            CheckedOperator::ExpNeg { depth, multiplier, input_shift, visible } => {
                let (m, k) = self.split(depth);
                if k >= visible.of_row(m, depth) {
                    return Ok(Vec::new());
                }
                let cell = self.exp_cell(depth, multiplier, input_shift)?;
                vec![one(0, i), one(1, m), run(2, cell.entry, 2)]
            }
            CheckedOperator::Normalize { depth, .. }
            | CheckedOperator::OneHotSub { depth, .. }
            | CheckedOperator::Dither { depth, .. }
            | CheckedOperator::ShiftRows { depth } => {
                vec![one(0, i), one(1, self.split(depth).0)]
            }
            CheckedOperator::Norm(norm) => {
                let (m, k) = self.split(norm.depth);
                vec![row(m, norm.depth, norm.depth), one(1, k), one(2, k)]
            }
            CheckedOperator::Rope(rope) => match self.turn(&rope) {
                None => vec![one(0, i)],
                Some(turn) => vec![one(0, turn.low), one(0, turn.high), one(1, turn.cosine), one(1, turn.sine)],
            },
            CheckedOperator::Gather { entries, width, .. } => {
                let (t, k) = self.split(width);
                let entry = self.entry(2, entries, t)?;
                vec![one(0, entry.saturating_mul(width).saturating_add(k)), one(1, entry), one(2, t)]
            }
            CheckedOperator::RowPick { depth } => vec![one(0, self.picked(depth)?), one(1, i)],
            CheckedOperator::TailSum(tail) => {
                let part = |operand| run(operand, i.saturating_mul(tail.depth), tail.depth);
                let weights = tail.weighted.then(|| part(1));
                let t = one(2, self.split(tail.parts).0);
                [part(0)].into_iter().chain(weights).chain([t]).collect()
            }
            CheckedOperator::Threshold { parts, .. } => {
                let sums = [1, 2, 3].map(|operand| run(operand, i.saturating_mul(parts), parts));
                [one(0, i)].into_iter().chain(sums).chain([controls(4, i)]).collect()
            }
            CheckedOperator::Perturb(perturb) => {
                let m = self.split(perturb.row).0;
                let cell = self.perturb_cell(&perturb)?.map(|cell| run(3, cell.entry, 2));
                [one(0, i), one(1, m), controls(2, m)].into_iter().chain(cell).collect()
            }
            CheckedOperator::Choose { parts, .. } => {
                let [place, best] = [0, 1].map(|operand| run(operand, i.saturating_mul(parts), parts));
                vec![place, best, controls(2, i)]
            }
            CheckedOperator::GatherGrad { tokens, width, .. } => {
                vec![row(self.split(width).1, tokens, tokens), run(1, 0, tokens)]
            }
            CheckedOperator::GroupSum(heads) => self.group_places(&heads).map(|place| one(0, place)).collect(),
            CheckedOperator::Dropout { keep, stream, .. } if self.is_kept(keep, stream) => vec![one(0, i)],
            CheckedOperator::Dropout { .. } => Vec::new(),
        })
    }
}
