//! What rules ask of an operator's types, attributes, shifts and accumulators.

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Operator, TensorType, Width};

use crate::bounds::{ACCUMULATOR_BOUND, COEFFICIENT_BOUND};
use crate::error::{OpError, Place};
use crate::fixed::MAX_SHIFT;

/// Largest magnitude a tensor's mantissa can have.
pub(super) fn magnitude(ty: &TensorType) -> u128 {
    u128::from(ty.limit().unsigned_abs())
}

pub(super) fn exponent(ty: &TensorType) -> i64 {
    i64::from(ty.exponent())
}

pub(super) const OUT: Place = Place::Output;
pub(super) const A: Place = Place::Operand(0);
pub(super) const B: Place = Place::Operand(1);
pub(super) const C: Place = Place::Operand(2);
pub(super) const D: Place = Place::Operand(3);
pub(super) const E: Place = Place::Operand(4);

/// Rule N-8: what of its row an element sees, everything, or the tokens of one sequence up to its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Visible(Option<u64>);

impl Visible {
    /// Everything.
    pub(crate) const ALL: Self = Self(None);

    /// Whether later tokens are hidden.
    pub const fn is_causal(self) -> bool {
        self.0.is_some()
    }

    /// How many of the first elements of row `m`, `depth` long, are visible: at least 1.
    pub(crate) fn of_row(self, m: u64, depth: u64) -> u64 {
        // The tokens are a dimension, so never 0.
        self.0.map_or(depth, |tokens| m.checked_rem(tokens).unwrap_or_default().saturating_add(1).min(depth))
    }
}

/// An operator whose counts are right.
pub(crate) struct Check<'a>(&'a Operator);

impl<'a> Check<'a> {
    pub(super) const fn new(operator: &'a Operator) -> Self {
        Self(operator)
    }

    pub(super) fn ty(&self, place: Place) -> &TensorType {
        match place {
            // Counts were checked: the fallback is never taken.
            Place::Operand(i) => self.0.operands.get(i).map_or(&self.0.output, |o| &o.ty),
            Place::Output => &self.0.output,
        }
    }

    pub(super) fn require(&self, place: Place, holds: bool, requirement: &'static str) -> Result<(), OpError> {
        if holds {
            return Ok(());
        }
        Err(OpError::Type { opcode: self.0.opcode, place, actual: self.ty(place).clone(), requirement })
    }

    pub(super) fn same_shape(&self, place: Place, as_place: Place) -> Result<(), OpError> {
        let requirement = "of the same shape as the first operand";
        self.require(place, self.ty(place).dims() == self.ty(as_place).dims(), requirement)
    }

    pub(super) fn same_precision(&self) -> Result<(), OpError> {
        let (a, y) = (self.ty(A), self.ty(OUT));
        let holds = a.bits() == y.bits() && a.exponent() == y.exponent();
        self.require(OUT, holds, "of the same bits and exponent as the first operand")
    }

    pub(super) fn one_per_row(&self, place: Place) -> Result<(), OpError> {
        let holds = self.ty(place).elements() == self.ty(A).rows();
        self.require(place, holds, "one element for each row of the first operand")
    }

    /// The length of the equal parts of the first operand's rows, each of which one element stands for.
    pub(super) fn equal_parts(&self, place: Place) -> Result<u64, OpError> {
        let (a, y) = (self.ty(A), self.ty(place));
        let run = a.elements().checked_div(y.elements()).unwrap_or(0);
        let whole = run.checked_mul(y.elements()) == Some(a.elements()) && a.row().checked_rem(run) == Some(0);
        let requirement = "one element for each row of the first operand, or for each equal part of its rows";
        self.require(place, whole, requirement)?;
        Ok(run)
    }

    /// The attribute at `index`, a word of a counter.
    pub(super) fn word(&self, index: usize) -> Result<u32, OpError> {
        // SAFETY of the cast: between 0 and 2^32 − 1.
        Ok(self.attribute(index, 0, u32::MAX.into())? as u32)
    }

    /// How many elements of the first operand each of the second stands for.
    pub(super) fn run(&self) -> Result<u64, OpError> {
        Ok(self.ty(A).elements().checked_div(self.period()?).unwrap_or(1))
    }

    /// An even exponent, which is halved under a root.
    pub(super) fn even_exponent(&self, place: Place) -> Result<i64, OpError> {
        let exponent = exponent(self.ty(place));
        self.require(place, exponent & 1 == 0, "of an even exponent")?;
        Ok(exponent.wrapping_shr(1))
    }

    /// The period of a second operand that is repeated along the first.
    pub(super) fn period(&self) -> Result<u64, OpError> {
        let (a, b) = (self.ty(A).elements(), self.ty(B).elements());
        self.require(B, a.checked_rem(b) == Some(0), "as many elements as divide the first operand's count")?;
        Ok(b)
    }

    pub(super) fn attribute(&self, index: usize, min: i64, max: i64) -> Result<i64, OpError> {
        let opcode = self.0.opcode;
        let value = self.0.attributes.get(index).copied().unwrap_or_default();
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        Err(OpError::Attribute { opcode, name: self.attribute_name(index), value, min, max })
    }

    pub(super) fn attribute_name(&self, index: usize) -> &'static str {
        self.0.opcode.attributes().get(index).copied().unwrap_or_default()
    }

    pub(super) fn coefficient(&self, index: usize) -> Result<i64, OpError> {
        self.attribute(index, 1 - COEFFICIENT_BOUND, COEFFICIENT_BOUND - 1)
    }

    pub(super) fn shift(&self, index: usize) -> Result<i64, OpError> {
        self.attribute(index, -MAX_SHIFT, MAX_SHIFT)
    }

    /// An attribute from 0 to below 2^40.
    pub(super) fn step(&self, index: usize) -> Result<i64, OpError> {
        self.attribute(index, 0, COEFFICIENT_BOUND - 1)
    }

    /// A shift that rule N-7 binds to the exponent of the accumulator.
    pub(super) fn bound_shift(&self, index: usize, accumulator_exponent: i64) -> Result<i64, OpError> {
        let actual = self.shift(index)?;
        self.bound(index, actual, accumulator_exponent.saturating_sub(exponent(self.ty(OUT))))
    }

    /// An attribute that rule N-7 binds to a difference of exponents.
    pub(super) fn bound(&self, index: usize, actual: i64, expected: i64) -> Result<i64, OpError> {
        if actual == expected {
            return Ok(actual);
        }
        Err(OpError::Precision { opcode: self.0.opcode, name: self.attribute_name(index), expected, actual })
    }

    pub(super) fn accumulator(&self, bound: u128) -> Result<(), OpError> {
        if bound < ACCUMULATOR_BOUND {
            return Ok(());
        }
        Err(OpError::Bound { opcode: self.0.opcode, bound })
    }

    pub(super) fn reduction(&self, length: u64) -> Result<u64, OpError> {
        if length <= MAX_REDUCTION {
            return Ok(length);
        }
        Err(OpError::Reduction { opcode: self.0.opcode, length })
    }

    /// The given tensors must be of these ranks and at most 16 bits, stored as wide as each other: what products of
    /// rows are taken of.
    pub(super) fn factors(&self, ranks: [(Place, usize); 2]) -> Result<(), OpError> {
        self.each_factor(ranks)?;
        self.require(B, self.ty(A).width() == self.ty(B).width(), "stored as wide as the first operand")
    }

    /// The same, but the second operand may be stored narrower than the first.
    pub(super) fn mixed_factors(&self, ranks: [(Place, usize); 2]) -> Result<(), OpError> {
        self.each_factor(ranks)?;
        self.require(
            B,
            self.ty(B).width().bytes() <= self.ty(A).width().bytes(),
            "stored no wider than the first operand",
        )
    }

    fn each_factor(&self, ranks: [(Place, usize); 2]) -> Result<(), OpError> {
        for (place, rank) in ranks {
            let ty = self.ty(place);
            let holds = ty.dims().len() == rank && matches!(ty.width(), Width::I8 | Width::I16);
            let requirement = if rank == 2 { "of rank 2 and at most 16 bits" } else { "of rank 3 and at most 16 bits" };
            self.require(place, holds, requirement)?;
        }
        Ok(())
    }

    /// The output's dimensions must be these.
    pub(super) fn output_dims(&self, dims: &[u64], requirement: &'static str) -> Result<(), OpError> {
        let holds = self.ty(OUT).dims().iter().map(|d| u64::from(*d)).eq(dims.iter().copied());
        self.require(OUT, holds, requirement)
    }

    /// The attribute `heads`, at most `row`, and the elements of a head in such a row, rounded down.
    pub(super) fn heads(&self, row: u64) -> Result<(u64, u64), OpError> {
        // SAFETY of the casts: a row has fewer than 2^32 elements; heads are positive.
        let heads = self.attribute(0, 1, row as i64)? as u64;
        Ok((heads, row.checked_div(heads).unwrap_or_default()))
    }

    /// At most 16 bits, so that the sums of Norm and Rope are bounded.
    pub(super) fn at_most_16_bits(&self, place: Place) -> Result<(), OpError> {
        self.require(place, self.ty(place).bits() <= 16, "of at most 16 bits")
    }

    /// Rule N-8, given by the attribute at `index` and bound to the first operand.
    pub(super) fn visible(&self, index: usize) -> Result<Visible, OpError> {
        if self.attribute(index, 0, 1)? == 0 {
            return Ok(Visible::ALL);
        }
        let tokens = self.ty(A).dims().iter().rev().nth(1);
        self.require(A, tokens.is_some(), "of at least two dimensions, being causal")?;
        Ok(Visible(tokens.map(|t| u64::from(*t))))
    }
}
