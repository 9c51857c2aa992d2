//! Where in the operands the elements lie that an element is computed from.

use super::Site;
use crate::checked::{CheckedOperator, Rope};
use crate::error::OpError;
use crate::philox;

/// Two runs of as many elements: of operand 0 from `a`, of operand 1 from `b`.
pub(super) struct Runs {
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) count: u64,
}

/// Two elements of a row that rotate together, and what they rotate by.
pub(super) struct Turn {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) cosine: u64,
    pub(super) sine: u64,
}

impl<F: Fn(usize, u64) -> Option<i64>> Site<'_, F> {
    /// The runs whose dot product an element of N-11, N-25 to N-27 or N-51 is; none for other operators.
    pub(super) fn runs(&self) -> Runs {
        let at = |row: u64, length: u64, first: u64| row.saturating_mul(length).saturating_add(first);
        match self.checked {
            CheckedOperator::MatMul { columns, depth, .. } => {
                let (m, n) = self.split(columns);
                Runs { a: at(m, depth, 0), b: at(n, depth, 0), count: depth }
            }
            CheckedOperator::ScaledMatMul(product) | CheckedOperator::ShiftedMatMul(product) => {
                let (m, n) = self.split(product.columns);
                Runs { a: at(m, product.row, product.offset), b: at(n, product.depth, 0), count: product.depth }
            }
            CheckedOperator::HeadScores(heads) => {
                let (row, s) = self.split(heads.keys);
                let (h, t) = quotient(row, heads.tokens);
                let (q_row, k_row) =
                    (heads.heads.saturating_mul(heads.width), heads.kv_heads.saturating_mul(heads.width));
                let (a, b) = (h.saturating_mul(heads.width), heads.kv_head(h).saturating_mul(heads.width));
                Runs { a: at(t, q_row, a), b: at(s, k_row, b), count: heads.width }
            }
            CheckedOperator::HeadMix(heads) => {
                let (t, column) = self.split(heads.heads.saturating_mul(heads.width));
                let (h, d) = quotient(column, heads.width);
                let (p_row, v_row) = (at(h, heads.tokens, t), at(heads.kv_head(h), heads.width, d));
                Runs { a: at(p_row, heads.keys, 0), b: at(v_row, heads.keys, 0), count: heads.keys }
            }
            _ => Runs { a: 0, b: 0, count: 0 },
        }
    }

    /// The pair that an element of Rope rotates with; none where it lies beyond the rotating part of its head.
    pub(super) fn turn(&self, rope: &Rope) -> Option<Turn> {
        let (t, column) = self.split(rope.row);
        let i = column.checked_rem(rope.width)?;
        let rotating = rope.half.saturating_mul(2);
        if i >= rotating {
            return None;
        }
        let j = i.checked_rem(rope.half)?;
        let low = self.index.saturating_sub(i).saturating_add(j);
        let cosine = t.saturating_mul(rotating).saturating_add(j);
        Some(Turn { low, high: low.saturating_add(rope.half), cosine, sine: cosine.saturating_add(rope.half) })
    }

    /// The row that Gather takes for token `t`, whose id is in the operand `ids`.
    pub(super) fn entry(&self, ids: usize, entries: u64, t: u64) -> Result<u64, OpError> {
        // SAFETY of the cast: clamped between 0 and a length.
        Ok(self.get(ids, t)?.clamp(0, i128::from(entries).saturating_sub(1).max(0)) as u64)
    }

    /// The index in operand 0 of an element that is only moved.
    pub(super) fn moved(&self) -> u64 {
        match self.checked {
            CheckedOperator::Transpose { rows, columns } => {
                let (matrix, within) = self.split(rows.saturating_mul(columns));
                let (n, m) = quotient(within, rows);
                let first = matrix.saturating_mul(rows).saturating_mul(columns);
                first.saturating_add(m.saturating_mul(columns)).saturating_add(n)
            }
            CheckedOperator::AtStep { rows, width } => {
                let row = u64::from(self.context.step).min(rows.saturating_sub(1));
                row.saturating_mul(width).saturating_add(self.index)
            }
            CheckedOperator::Slice { row, width, offset } => {
                let (m, k) = self.split(width);
                m.saturating_mul(row).saturating_add(offset).saturating_add(k)
            }
            CheckedOperator::Sample { population, width, first_row } => {
                let (row, column) = self.split(width);
                // SAFETY of the cast: the checker keeps first_row + row below 2^32.
                let draw = philox::draw_below(
                    &self.context.job_key,
                    first_row.wrapping_add(row as u32),
                    self.context.step,
                    population,
                );
                draw.saturating_mul(width).saturating_add(column)
            }
            _ => self.index,
        }
    }
}

pub(super) fn quotient(x: u64, length: u64) -> (u64, u64) {
    (x.checked_div(length).unwrap_or(0), x.checked_rem(length).unwrap_or(0))
}
