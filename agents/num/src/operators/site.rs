//! One output element and the few elements that it is computed from: what a validator proves and the contract
//! recomputes.

use tensorlink_types::Operator;

use crate::context::StepContext;
use crate::error::OpError;
use crate::fixed::{clamp, limit, rescale};
use crate::philox::draw_element;

/// Consecutive elements of one operand that an output element is computed from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Read {
    /// Position of the operand.
    pub operand: usize,
    /// Row-major index of the first element.
    pub first: u64,
    /// How many, at least 1.
    pub count: u64,
}

/// One element of an operand.
pub(super) const fn one(operand: usize, first: u64) -> Read {
    Read { operand, first, count: 1 }
}

/// Elements of an operand, one after another.
pub(super) const fn run(operand: usize, first: u64, count: u64) -> Read {
    Read { operand, first, count }
}

/// Two runs of as many elements, whose dot product is summed: of operand 0 from `a`, of operand 1 from `b`.
pub(super) struct Runs {
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) count: u64,
}

impl Runs {
    pub(super) fn reads(&self) -> [Read; 2] {
        [run(0, self.a, self.count), run(1, self.b, self.count)]
    }
}

/// Where in a table an element interpolates: between entries `entry` and `entry + 1`, `rest` units past the first.
pub(super) struct Cell {
    pub(super) entry: u64,
    pub(super) rest: i128,
}

/// An element of an accepted operator, with access to mantissas of its operands.
pub(crate) struct Site<'a> {
    operator: &'a Operator,
    get: &'a dyn Fn(usize, u64) -> Option<i64>,
    /// Row-major index of the element.
    pub(super) index: u64,
    pub(super) context: &'a StepContext,
}

impl<'a> Site<'a> {
    /// # Errors
    /// [`OpError::NoSuchElement`].
    pub(crate) fn new(
        operator: &'a Operator,
        get: &'a dyn Fn(usize, u64) -> Option<i64>,
        index: u64,
        context: &'a StepContext,
    ) -> Result<Self, OpError> {
        let elements = operator.output.elements();
        if index >= elements {
            return Err(OpError::NoSuchElement { index, elements });
        }
        Ok(Self { operator, get, index, context })
    }

    /// The mantissa of an operand's element.
    pub(super) fn get(&self, operand: usize, element: u64) -> Result<i128, OpError> {
        let missing = OpError::Missing { operand, element };
        let Some(ty) = self.operator.operands.get(operand).map(|o| &o.ty) else { return Err(missing) };
        let value = (self.get)(operand, element).ok_or(missing)?;
        if value.unsigned_abs() > ty.limit().unsigned_abs() {
            return Err(OpError::Range { operand, element, value, ty: ty.clone() });
        }
        Ok(value.into())
    }

    /// The operand's element in the same place.
    pub(super) fn here(&self, operand: usize) -> Result<i128, OpError> {
        self.get(operand, self.index)
    }

    /// Bits of the output.
    pub(super) fn bits(&self) -> u8 {
        self.operator.output.bits()
    }

    /// The accumulator, rounded and clamped to the output's bits (rule N-2).
    pub(super) fn rescale(&self, x: i128, shift: i64) -> i64 {
        rescale(x, shift, self.bits())
    }

    /// The number, clamped to the output's bits.
    pub(super) fn clamp(&self, x: i128) -> i64 {
        clamp(x, limit(self.bits()))
    }

    /// Quotient and remainder of the index by a length that the operator holds (never 0).
    pub(super) fn split(&self, length: u64) -> (u64, u64) {
        quotient(self.index, length)
    }

    /// The first `count` elements of the first operand's row that this element stands for, folded.
    pub(super) fn reduce(
        &self,
        depth: u64,
        count: u64,
        start: i128,
        fold: impl Fn(i128, i128) -> i128,
    ) -> Result<i128, OpError> {
        let first = self.index.saturating_mul(depth);
        (0..count).try_fold(start, |so_far, k| Ok(fold(so_far, self.get(0, first.saturating_add(k))?)))
    }

    /// Elements of an operand, one after another, summed.
    pub(super) fn sum(&self, operand: usize, first: u64, count: u64) -> Result<i128, OpError> {
        (0..count).try_fold(0i128, |sum, k| Ok(sum.saturating_add(self.get(operand, first.saturating_add(k))?)))
    }

    /// `Σ_k a[…]·b[…]` over the runs of a product.
    pub(super) fn dot(&self, runs: &Runs) -> Result<i128, OpError> {
        (0..runs.count).try_fold(0i128, |sum, k| {
            let (a, b) = (runs.a.saturating_add(k), runs.b.saturating_add(k));
            Ok(sum.saturating_add(self.get(0, a)?.saturating_mul(self.get(1, b)?)))
        })
    }

    /// `table[j]·(2^f − r) + table[j+1]·r`.
    pub(super) fn interpolate(&self, table: usize, cell: &Cell, fraction_bits: u32) -> Result<i128, OpError> {
        let (low, high) = (self.get(table, cell.entry)?, self.get(table, cell.entry.saturating_add(1))?);
        let unit = 1i128.wrapping_shl(fraction_bits);
        Ok(low.saturating_mul(unit.saturating_sub(cell.rest)).saturating_add(high.saturating_mul(cell.rest)))
    }

    /// The place of the first largest of `count` elements of an operand from `first` on.
    pub(super) fn first_largest(&self, operand: usize, first: u64, count: u64) -> Result<u64, OpError> {
        let (mut place, mut largest) = (0, i128::MIN);
        for k in 0..count {
            let x = self.get(operand, first.saturating_add(k))?;
            if x > largest {
                (place, largest) = (k, x);
            }
        }
        Ok(place)
    }

    /// The entry of a table that token `t` stands for, whose id is in the operand `ids`.
    pub(super) fn entry(&self, ids: usize, entries: u64, t: u64) -> Result<u64, OpError> {
        // SAFETY of the cast: clamped between 0 and a length.
        Ok(self.get(ids, t)?.clamp(0, i128::from(entries).saturating_sub(1).max(0)) as u64)
    }

    /// What Philox draws for the element, of a stream.
    pub(super) fn word(&self, stream: u32, draws: u32) -> u32 {
        draw_element(&self.context.job_key, self.index, self.context.step, stream, draws)
    }
}

/// Quotient and remainder; 0 where there is none.
pub(super) fn quotient(x: u64, length: u64) -> (u64, u64) {
    (x.checked_div(length).unwrap_or(0), x.checked_rem(length).unwrap_or(0))
}
