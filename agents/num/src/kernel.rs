//! The rules an operator must obey before anything is computed: parsed once into a `Kernel`, whose existence is the
//! proof that rules N-6 and N-7 hold.

use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, Operator, TensorType, Width};

use crate::error::{OpError, Place};
use crate::fixed::MAX_SHIFT;

/// Accumulators stay below this (rule N-6).
pub const ACCUMULATOR_BOUND: u128 = 1 << 62;
/// Coefficients and offsets of Combine, Scale, Lookup and OneHotSub stay below this.
pub const COEFFICIENT_BOUND: i64 = 1 << 40;
/// Entries of the exponential table (rule N-20).
pub const EXP_TABLE_LEN: u64 = 257;
/// Exponent of the exponential table and of ExpNeg's output (rule N-20).
pub const EXP_EXPONENT: i16 = 24;
/// Bits of ExpNeg's output (rule N-20): the least that hold `2^24`.
pub const EXP_BITS: u8 = 26;
/// Largest fixed-point argument of ExpNeg (rule N-20): beyond it the result is zero anyway.
pub const EXP_ARGUMENT_MAX: i64 = 40 << 16;
/// Most rows of a data set (rule N-24).
pub const MAX_POPULATION: u64 = 1 << 31;
/// Largest `p` of a Lookup table of `2^p + 1` entries (rule N-18).
pub const MAX_TABLE_LOG: u32 = 12;

/// An accepted operator: opcode with its attributes and the lengths its loops need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kernel {
    MatMul { columns: u64, depth: u64, shift: i64 },
    Transpose { rows: u64, columns: u64 },
    Combine { ca: i64, cb: i64, period: u64, shift: i64 },
    Scale { c: i64, shift: i64 },
    Mul { period: u64, shift: i64 },
    Relu,
    ReluGrad,
    Lookup(Lookup),
    RowMax { depth: u64 },
    ExpNeg { depth: u64, multiplier: i64, input_shift: i64 },
    RowSum { depth: u64, shift: i64 },
    Normalize { depth: u64, bits: u32 },
    OneHotSub { depth: u64, one: i64, shift: i64 },
    Sample { population: u64, width: u64, first_row: u32 },
}

/// Attributes of rule N-18; the table has `2^log + 1` entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lookup {
    pub(crate) input_shift: i64,
    pub(crate) low: i64,
    pub(crate) fraction_bits: u32,
    pub(crate) log: u32,
    pub(crate) shift: i64,
}

/// Checks an operator by itself: counts, shapes, widths, attribute ranges, accumulator bounds (rules N-6, N-7, N-11 to
/// N-24). Whether its operands exist is the program checker's business.
///
/// # Errors
/// The first rule it breaks, and what to change.
pub fn check_operator(operator: &Operator) -> Result<(), OpError> {
    Kernel::new(operator).map(drop)
}

impl Kernel {
    pub(crate) fn new(op: &Operator) -> Result<Self, OpError> {
        let opcode = op.opcode;
        if op.operands.len() != opcode.operands() {
            return Err(OpError::OperandCount { opcode, expected: opcode.operands(), actual: op.operands.len() });
        }
        let expected = opcode.attributes().len();
        if op.attributes.len() != expected {
            return Err(OpError::AttributeCount { opcode, expected, actual: op.attributes.len() });
        }
        let check = Check(op);
        match opcode {
            Opcode::MatMul => check.mat_mul(),
            Opcode::Transpose => check.transpose(),
            Opcode::Combine => check.combine(),
            Opcode::Scale => check.scale(),
            Opcode::Mul => check.mul(),
            Opcode::Relu => check.relu(),
            Opcode::ReluGrad => check.relu_grad(),
            Opcode::Lookup => check.lookup(),
            Opcode::RowMax => check.row_max(),
            Opcode::ExpNeg => check.exp_neg(),
            Opcode::RowSum => check.row_sum(),
            Opcode::Normalize => check.normalize(),
            Opcode::OneHotSub => check.one_hot_sub(),
            Opcode::Sample => check.sample(),
        }
    }
}

/// Largest magnitude a tensor's mantissa can have.
fn magnitude(ty: &TensorType) -> u128 {
    u128::from(ty.limit().unsigned_abs())
}

fn exponent(ty: &TensorType) -> i64 {
    i64::from(ty.exponent())
}

const OUT: Place = Place::Output;
const A: Place = Place::Operand(0);
const B: Place = Place::Operand(1);
const C: Place = Place::Operand(2);

/// An operator whose counts are right.
struct Check<'a>(&'a Operator);

impl Check<'_> {
    fn ty(&self, place: Place) -> &TensorType {
        match place {
            // Counts were checked: the fallback is never taken.
            Place::Operand(i) => self.0.operands.get(i).map_or(&self.0.output, |o| &o.ty),
            Place::Output => &self.0.output,
        }
    }

    fn require(&self, place: Place, holds: bool, requirement: &'static str) -> Result<(), OpError> {
        if holds {
            return Ok(());
        }
        Err(OpError::Type { opcode: self.0.opcode, place, actual: self.ty(place).clone(), requirement })
    }

    fn same_shape(&self, place: Place, as_place: Place) -> Result<(), OpError> {
        let requirement = "of the same shape as the first operand";
        self.require(place, self.ty(place).dims() == self.ty(as_place).dims(), requirement)
    }

    fn same_precision(&self) -> Result<(), OpError> {
        let (a, y) = (self.ty(A), self.ty(OUT));
        let holds = a.bits() == y.bits() && a.exponent() == y.exponent();
        self.require(OUT, holds, "of the same bits and exponent as the first operand")
    }

    fn one_per_row(&self, place: Place) -> Result<(), OpError> {
        let holds = self.ty(place).elements() == self.ty(A).rows();
        self.require(place, holds, "one element for each row of the first operand")
    }

    /// The period of a second operand that is repeated along the first.
    fn period(&self) -> Result<u64, OpError> {
        let (a, b) = (self.ty(A).elements(), self.ty(B).elements());
        self.require(B, a.checked_rem(b) == Some(0), "as many elements as divide the first operand's count")?;
        Ok(b)
    }

    fn attribute(&self, index: usize, min: i64, max: i64) -> Result<i64, OpError> {
        let opcode = self.0.opcode;
        let value = self.0.attributes.get(index).copied().unwrap_or_default();
        if (min..=max).contains(&value) {
            return Ok(value);
        }
        Err(OpError::Attribute { opcode, name: self.attribute_name(index), value, min, max })
    }

    fn attribute_name(&self, index: usize) -> &'static str {
        self.0.opcode.attributes().get(index).copied().unwrap_or_default()
    }

    fn coefficient(&self, index: usize) -> Result<i64, OpError> {
        self.attribute(index, 1 - COEFFICIENT_BOUND, COEFFICIENT_BOUND - 1)
    }

    fn shift(&self, index: usize) -> Result<i64, OpError> {
        self.attribute(index, -MAX_SHIFT, MAX_SHIFT)
    }

    /// A shift that rule N-7 binds to the exponent of the accumulator.
    fn bound_shift(&self, index: usize, accumulator_exponent: i64) -> Result<i64, OpError> {
        let actual = self.shift(index)?;
        let expected = accumulator_exponent.saturating_sub(exponent(self.ty(OUT)));
        if actual == expected {
            return Ok(actual);
        }
        Err(OpError::Precision { opcode: self.0.opcode, name: self.attribute_name(index), expected, actual })
    }

    fn accumulator(&self, bound: u128) -> Result<(), OpError> {
        if bound < ACCUMULATOR_BOUND {
            return Ok(());
        }
        Err(OpError::Bound { opcode: self.0.opcode, bound })
    }

    fn reduction(&self, length: u64) -> Result<u64, OpError> {
        if length <= MAX_REDUCTION {
            return Ok(length);
        }
        Err(OpError::Reduction { opcode: self.0.opcode, length })
    }

    fn mat_mul(&self) -> Result<Kernel, OpError> {
        let (a, b) = (self.ty(A), self.ty(B));
        for (place, ty) in [(A, a), (B, b)] {
            let holds = ty.dims().len() == 2 && matches!(ty.width(), Width::I8 | Width::I16);
            self.require(place, holds, "of rank 2 and at most 16 bits")?;
        }
        self.require(B, a.width() == b.width(), "stored as wide as the first operand")?;
        self.require(B, a.row() == b.row(), "of rows as long as the first operand's")?;
        let shape = [a.rows(), b.rows()];
        let holds = self.ty(OUT).dims().iter().map(|d| u64::from(*d)).eq(shape);
        self.require(OUT, holds, "rows of the first operand by rows of the second")?;
        let depth = self.reduction(a.row())?;
        self.accumulator(magnitude(a).saturating_mul(magnitude(b)).saturating_mul(u128::from(depth)))?;
        let shift = self.bound_shift(0, exponent(a).saturating_add(exponent(b)))?;
        Ok(Kernel::MatMul { columns: b.rows(), depth, shift })
    }

    fn transpose(&self) -> Result<Kernel, OpError> {
        let a = self.ty(A);
        self.require(A, a.dims().len() == 2, "of rank 2")?;
        let holds = self.ty(OUT).dims().iter().eq(a.dims().iter().rev());
        self.require(OUT, holds, "the first operand's shape reversed")?;
        self.same_precision()?;
        Ok(Kernel::Transpose { rows: a.rows(), columns: a.row() })
    }

    fn combine(&self) -> Result<Kernel, OpError> {
        self.same_shape(OUT, A)?;
        let period = self.period()?;
        let (ca, cb) = (self.coefficient(0)?, self.coefficient(1)?);
        let term = |c: i64, place| u128::from(c.unsigned_abs()).saturating_mul(magnitude(self.ty(place)));
        self.accumulator(term(ca, A).saturating_add(term(cb, B)))?;
        Ok(Kernel::Combine { ca, cb, period, shift: self.shift(2)? })
    }

    fn scale(&self) -> Result<Kernel, OpError> {
        self.same_shape(OUT, A)?;
        let c = self.coefficient(0)?;
        self.accumulator(u128::from(c.unsigned_abs()).saturating_mul(magnitude(self.ty(A))))?;
        Ok(Kernel::Scale { c, shift: self.shift(1)? })
    }

    fn mul(&self) -> Result<Kernel, OpError> {
        let (a, b) = (self.ty(A), self.ty(B));
        self.same_shape(OUT, A)?;
        let period = self.period()?;
        self.accumulator(magnitude(a).saturating_mul(magnitude(b)))?;
        Ok(Kernel::Mul { period, shift: self.bound_shift(0, exponent(a).saturating_add(exponent(b)))? })
    }

    fn relu(&self) -> Result<Kernel, OpError> {
        self.same_shape(OUT, A)?;
        self.same_precision()?;
        Ok(Kernel::Relu)
    }

    fn relu_grad(&self) -> Result<Kernel, OpError> {
        self.same_shape(B, A)?;
        self.same_shape(OUT, A)?;
        self.same_precision()?;
        Ok(Kernel::ReluGrad)
    }

    fn lookup(&self) -> Result<Kernel, OpError> {
        let table = self.ty(B);
        self.same_shape(OUT, A)?;
        let cells = table.elements().saturating_sub(1);
        let log = cells.checked_ilog2().unwrap_or(u32::MAX);
        let holds = cells.is_power_of_two() && log <= MAX_TABLE_LOG && table.bits() <= 32;
        self.require(B, holds, "2^p + 1 entries of at most 32 bits, p at most 12")?;
        let input_shift = self.shift(0)?;
        let low = self.coefficient(1)?;
        let fraction = self.attribute(2, 1, 16)?;
        self.accumulator(magnitude(self.ty(A)))?;
        let shift = self.bound_shift(3, exponent(table).saturating_add(fraction))?;
        // SAFETY of the cast: between 1 and 16.
        Ok(Kernel::Lookup(Lookup { input_shift, low, fraction_bits: fraction as u32, log, shift }))
    }

    fn row_max(&self) -> Result<Kernel, OpError> {
        self.one_per_row(OUT)?;
        self.same_precision()?;
        Ok(Kernel::RowMax { depth: self.reduction(self.ty(A).row())? })
    }

    fn exp_neg(&self) -> Result<Kernel, OpError> {
        let (a, max, table, y) = (self.ty(A), self.ty(B), self.ty(C), self.ty(OUT));
        self.same_shape(OUT, A)?;
        self.one_per_row(B)?;
        self.require(B, max.exponent() == a.exponent(), "of the first operand's exponent")?;
        let holds = table.elements() == EXP_TABLE_LEN && table.exponent() == EXP_EXPONENT && table.bits() <= 32;
        self.require(C, holds, "257 entries of at most 32 bits, exponent 24")?;
        self.require(OUT, y.bits() == EXP_BITS && y.exponent() == EXP_EXPONENT, "of 26 bits and exponent 24")?;
        let multiplier = self.attribute(0, 1, (1 << 24) - 1)?;
        let reach = magnitude(a).saturating_add(magnitude(max));
        self.accumulator(reach.saturating_mul(u128::from(multiplier.unsigned_abs())))?;
        Ok(Kernel::ExpNeg { depth: a.row(), multiplier, input_shift: self.shift(1)? })
    }

    fn row_sum(&self) -> Result<Kernel, OpError> {
        let a = self.ty(A);
        self.one_per_row(OUT)?;
        let depth = self.reduction(a.row())?;
        self.accumulator(magnitude(a).saturating_mul(u128::from(depth)))?;
        Ok(Kernel::RowSum { depth, shift: self.bound_shift(0, exponent(a))? })
    }

    fn normalize(&self) -> Result<Kernel, OpError> {
        let (p, z, y) = (self.ty(A), self.ty(B), self.ty(OUT));
        self.same_shape(OUT, A)?;
        self.one_per_row(B)?;
        let bits = self.attribute(0, 0, 32)?;
        // SAFETY of the cast: between 0 and 32. The dividend of rule N-3 is 2·p·2^bits + z.
        let twice = magnitude(p).saturating_mul(2u128.wrapping_shl(bits as u32));
        self.accumulator(twice.saturating_add(magnitude(z)))?;
        let expected = exponent(p).saturating_sub(exponent(z)).saturating_add(bits);
        self.require(OUT, exponent(y) == expected, "of exponent e_p − e_z + bits")?;
        Ok(Kernel::Normalize { depth: p.row(), bits: bits as u32 })
    }

    fn one_hot_sub(&self) -> Result<Kernel, OpError> {
        let p = self.ty(A);
        self.same_shape(OUT, A)?;
        self.one_per_row(B)?;
        let one = self.attribute(0, 0, COEFFICIENT_BOUND - 1)?;
        self.accumulator(magnitude(p).saturating_add(u128::from(one.unsigned_abs())))?;
        Ok(Kernel::OneHotSub { depth: p.row(), one, shift: self.bound_shift(1, exponent(p))? })
    }

    fn sample(&self) -> Result<Kernel, OpError> {
        let (data, y) = (self.ty(A), self.ty(OUT));
        let (population, width) = match *data.dims() {
            [rows] => (rows, 1),
            [rows, width] => (rows, width),
            _ => (u32::MAX, 0),
        };
        let holds = width > 0 && u64::from(population) <= MAX_POPULATION;
        self.require(A, holds, "at most 2^31 rows, of rank 1 or 2")?;
        let batch = match (data.dims(), y.dims()) {
            ([_], [batch]) => Some(*batch),
            ([_, width], [batch, same]) if width == same => Some(*batch),
            _ => None,
        };
        self.require(OUT, batch.is_some(), "rows like the data set's")?;
        self.same_precision()?;
        // Row numbers are 32-bit counter words.
        let last = i64::from(u32::MAX).saturating_sub(i64::from(batch.unwrap_or(1))).saturating_add(1);
        let first_row = self.attribute(0, 0, last)?;
        // SAFETY of the cast: between 0 and 2^32 − 1.
        Ok(Kernel::Sample { population: population.into(), width: width.into(), first_row: first_row as u32 })
    }
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
