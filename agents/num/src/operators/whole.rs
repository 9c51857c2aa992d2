//! A whole output: operands, rows of them, and rounding in `i64`.

use std::iter;

use tensorlink_types::Operator;

use crate::context::StepContext;
use crate::error::OpError;
use crate::fixed::limit;
use crate::tensor::Tensor;

/// An accepted operator with its operands, which are of the types it names.
pub(crate) struct Whole<'a> {
    pub(super) operator: &'a Operator,
    operands: &'a [&'a Tensor],
    pub(super) context: &'a StepContext,
}

impl<'a> Whole<'a> {
    /// # Errors
    /// [`OpError::OperandCount`]; [`OpError::OperandType`].
    pub(crate) fn new(
        operator: &'a Operator,
        operands: &'a [&'a Tensor],
        context: &'a StepContext,
    ) -> Result<Self, OpError> {
        let whole = Self { operator, operands, context };
        if operator.operands.len() != operands.len() {
            return Err(whole.count(operator.operands.len()));
        }
        for (operand, (named, tensor)) in operator.operands.iter().zip(operands).enumerate() {
            if named.ty != *tensor.ty() {
                return Err(OpError::OperandType { operand, expected: named.ty.clone(), actual: tensor.ty().clone() });
            }
        }
        Ok(whole)
    }

    fn count(&self, expected: usize) -> OpError {
        OpError::OperandCount { opcode: self.operator.opcode, expected, actual: self.operands.len() }
    }

    /// All operands.
    pub(super) fn operands<const N: usize>(&self) -> Result<[&'a Tensor; N], OpError> {
        <[&Tensor; N]>::try_from(self.operands).map_err(|_| self.count(N))
    }

    /// The mantissas of all operands.
    pub(super) fn wide<const N: usize>(&self) -> Result<[Vec<i64>; N], OpError> {
        Ok(self.operands()?.map(wide))
    }

    /// Rule N-2 to the output.
    pub(super) fn rescale(&self, shift: i64) -> Rescale {
        Rescale { shift, limit: self.limit() }
    }

    /// Largest mantissa of the output.
    pub(super) fn limit(&self) -> i64 {
        limit(self.operator.output.bits())
    }

    /// Collects as many values as the output has elements.
    pub(super) fn collect(&self, values: impl Iterator<Item = i64>) -> Result<Vec<i64>, OpError> {
        let elements = self.operator.output.elements();
        let mut out = Vec::new();
        usize::try_from(elements).ok().and_then(|n| out.try_reserve_exact(n).ok()).ok_or(OpError::Memory(elements))?;
        out.extend(values);
        Ok(out)
    }
}

/// A tensor's mantissas.
pub(super) fn wide(tensor: &Tensor) -> Vec<i64> {
    tensor.mantissas().to_vec()
}

/// A length that the checker found in a tensor's type, for slices; at least 1.
pub(super) fn length(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX).max(1)
}

pub(super) fn rows<T>(values: &[T], depth: u64) -> std::slice::ChunksExact<'_, T> {
    values.chunks_exact(length(depth))
}

/// The `row`-th row of `depth` elements; the checker keeps it inside.
pub(super) fn nth_row<T>(values: &[T], row: u64, depth: u64) -> &[T] {
    let nth = usize::try_from(row).ok().and_then(|row| rows(values, depth).nth(row));
    nth.unwrap_or_default()
}

/// The place of the first element that none exceeds.
pub(super) fn first_largest(row: &[i64]) -> usize {
    let before = |best: (usize, i64), next: (usize, i64)| if next.1 > best.1 { next } else { best };
    row.iter().copied().enumerate().reduce(before).map_or(0, |(place, _)| place)
}

/// `table[j]·(2^f − r) + table[j+1]·r`: at most 2^31 · 2^16.
pub(super) fn blend(table: &[i64], j: i64, rest: i64, fraction_bits: u32) -> i64 {
    let mut entries = iter::successors(usize::try_from(j).ok(), |j| j.checked_add(1)).map(|j| table.get(j).copied());
    let mut next = || entries.next().flatten().unwrap_or_default();
    let (low, high) = (next(), next());
    let unit = 1i64.wrapping_shl(fraction_bits);
    low.wrapping_mul(unit.wrapping_sub(rest)).wrapping_add(high.wrapping_mul(rest))
}

/// Rule N-2 for a fixed shift and output, on accumulators below 2^62.
#[derive(Clone, Copy)]
pub(super) struct Rescale {
    pub(super) shift: i64,
    pub(super) limit: i64,
}

impl Rescale {
    pub(super) fn apply(&self, x: i64) -> i64 {
        // SAFETY of the cast: the checker keeps |shift| ≤ 63 (ExpNeg's n + 8 ≤ 48, Norm's 30 + f − j ≥ 0).
        let places = self.shift.unsigned_abs() as u32;
        if self.shift > 0 {
            let quotient = x.wrapping_shr(places);
            let rest = (x as u64) & u64::MAX.wrapping_shr(64u32.wrapping_sub(places));
            let half = 1u64.wrapping_shl(places.wrapping_sub(1));
            let up = rest > half || (rest == half && quotient & 1 == 1);
            return quotient.wrapping_add(i64::from(up)).clamp(self.limit.wrapping_neg(), self.limit);
        }
        // Comparing before shifting: x·2^n exceeds the limit exactly if x exceeds ⌊limit / 2^n⌋.
        let reach = self.limit.wrapping_shr(places);
        match x {
            x if x > reach => self.limit,
            x if x < reach.wrapping_neg() => self.limit.wrapping_neg(),
            x => x.wrapping_shl(places),
        }
    }
}
