//! One output element, from only the elements it reads: what a validator proves and the contract recomputes.
//!
//! Written as the rules are, over `i128`, without regard to speed; `execute` is measured against it.

use tensorlink_types::Operator;

use crate::context::StepContext;
use crate::error::OpError;
use crate::fixed::{clamp, div, limit, rescale};
use crate::kernel::{EXP_ARGUMENT_MAX, Kernel, Lookup};
use crate::philox;
use crate::tensor::Tensor;

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

/// An accessor for [`element`] and [`reads`] over whole tensors.
pub fn accessor<'a>(operands: &'a [&'a Tensor]) -> impl Fn(usize, u64) -> Option<i64> + 'a {
    move |operand, index| operands.get(operand)?.get(index)
}

/// The mantissa of output element `index` (row-major). `get(operand, element)` gives an operand's mantissa, or none
/// where it was not opened; only the elements named by [`reads`] are asked for.
///
/// # Errors
/// A rule the operator breaks; [`OpError::NoSuchElement`]; [`OpError::Missing`] where `get` gives none;
/// [`OpError::Range`] where it gives a mantissa beyond its type.
pub fn element(
    operator: &Operator,
    get: impl Fn(usize, u64) -> Option<i64>,
    index: u64,
    context: &StepContext,
) -> Result<i64, OpError> {
    Site::new(operator, get, index, context)?.value()
}

/// The elements that output element `index` is computed from, ordered by operand, each operand once. Where they depend on
/// data (Lookup, ExpNeg), `get` is asked for the data that decides, never for table entries.
///
/// # Errors
/// As [`element`].
pub fn reads(
    operator: &Operator,
    get: impl Fn(usize, u64) -> Option<i64>,
    index: u64,
    context: &StepContext,
) -> Result<Vec<Read>, OpError> {
    Site::new(operator, get, index, context)?.reads()
}

/// Where in its table a Lookup or ExpNeg interpolates: between entries `entry` and `entry + 1`, `rest` units past the
/// first.
struct Cell {
    entry: u64,
    rest: i128,
    /// Binary places by which the result is shifted on top (ExpNeg's `n`).
    octaves: i64,
}

/// One element of one accepted operator.
struct Site<'a, F> {
    operator: &'a Operator,
    kernel: Kernel,
    get: F,
    index: u64,
    context: &'a StepContext,
}

impl<'a, F: Fn(usize, u64) -> Option<i64>> Site<'a, F> {
    fn new(operator: &'a Operator, get: F, index: u64, context: &'a StepContext) -> Result<Self, OpError> {
        let kernel = Kernel::new(operator)?;
        let elements = operator.output.elements();
        if index >= elements {
            return Err(OpError::NoSuchElement { index, elements });
        }
        Ok(Self { operator, kernel, get, index, context })
    }

    fn get(&self, operand: usize, element: u64) -> Result<i128, OpError> {
        let missing = OpError::Missing { operand, element };
        let Some(ty) = self.operator.operands.get(operand).map(|o| &o.ty) else { return Err(missing) };
        let value = (self.get)(operand, element).ok_or(missing)?;
        if value.unsigned_abs() > ty.limit().unsigned_abs() {
            return Err(OpError::Range { operand, element, value, ty: ty.clone() });
        }
        Ok(value.into())
    }

    fn sum(&self, count: u64, term: impl Fn(u64) -> Result<i128, OpError>) -> Result<i128, OpError> {
        (0..count).try_fold(0i128, |sum, k| Ok(sum.saturating_add(term(k)?)))
    }

    /// Quotient and remainder of the index by a length that the kernel holds (never 0).
    fn split(&self, length: u64) -> (u64, u64) {
        (self.index.checked_div(length).unwrap_or(0), self.index.checked_rem(length).unwrap_or(0))
    }

    fn value(&self) -> Result<i64, OpError> {
        let bits = self.operator.output.bits();
        let i = self.index;
        Ok(match self.kernel {
            Kernel::MatMul { columns, depth, shift } => {
                let (m, n) = self.split(columns);
                let (a, b) = (m.saturating_mul(depth), n.saturating_mul(depth));
                let term =
                    |k: u64| Ok(self.get(0, a.saturating_add(k))?.saturating_mul(self.get(1, b.saturating_add(k))?));
                rescale(self.sum(depth, term)?, shift, bits)
            }
            Kernel::Transpose { .. } | Kernel::Sample { .. } => self.clamped(self.get(0, self.moved())?),
            Kernel::Combine { ca, cb, period, shift } => {
                let a = self.get(0, i)?.saturating_mul(ca.into());
                let b = self.get(1, self.split(period).1)?.saturating_mul(cb.into());
                rescale(a.saturating_add(b), shift, bits)
            }
            Kernel::Scale { c, shift } => rescale(self.get(0, i)?.saturating_mul(c.into()), shift, bits),
            Kernel::Mul { period, shift } => {
                rescale(self.get(0, i)?.saturating_mul(self.get(1, self.split(period).1)?), shift, bits)
            }
            Kernel::Relu => self.clamped(self.get(0, i)?.max(0)),
            Kernel::ReluGrad => {
                let (dy, x) = (self.get(0, i)?, self.get(1, i)?);
                self.clamped(if x > 0 { dy } else { 0 })
            }
            Kernel::Lookup(lookup) => {
                let cell = self.lookup_cell(&lookup)?;
                rescale(self.interpolate(1, &cell, lookup.fraction_bits)?, lookup.shift, bits)
            }
            Kernel::RowMax { depth } => {
                let first = i.saturating_mul(depth);
                let start = self.get(0, first)?;
                let max = (1..depth)
                    .try_fold(start, |max, k| Ok::<_, OpError>(max.max(self.get(0, first.saturating_add(k))?)));
                self.clamped(max?)
            }
            Kernel::ExpNeg { depth, multiplier, input_shift } => {
                let cell = self.exp_cell(depth, multiplier, input_shift)?;
                rescale(self.interpolate(2, &cell, 8)?, cell.octaves.saturating_add(8), bits)
            }
            Kernel::RowSum { depth, shift } => {
                let first = i.saturating_mul(depth);
                rescale(self.sum(depth, |k| self.get(0, first.saturating_add(k)))?, shift, bits)
            }
            Kernel::Normalize { depth, bits: places } => {
                let (p, z) = (self.get(0, i)?, self.get(1, self.split(depth).0)?.max(1));
                // The divisor is at least 1, so there is a quotient.
                self.clamped(div(p.saturating_mul(1i128.wrapping_shl(places)), z).unwrap_or_default())
            }
            Kernel::OneHotSub { depth, one, shift } => {
                let (m, k) = self.split(depth);
                let hit = self.get(1, m)? == i128::from(k);
                let x = self.get(0, i)?.saturating_sub(if hit { one.into() } else { 0 });
                rescale(x, shift, bits)
            }
        })
    }

    fn reads(&self) -> Result<Vec<Read>, OpError> {
        let one = |operand, first| Read { operand, first, count: 1 };
        let row = |operand, row: u64, count| Read { operand, first: row.saturating_mul(count), count };
        let entries = |operand, cell: Cell| Read { operand, first: cell.entry, count: 2 };
        let i = self.index;
        Ok(match self.kernel {
            Kernel::MatMul { columns, depth, .. } => {
                let (m, n) = self.split(columns);
                vec![row(0, m, depth), row(1, n, depth)]
            }
            Kernel::Transpose { .. } | Kernel::Sample { .. } => vec![one(0, self.moved())],
            Kernel::Combine { period, .. } | Kernel::Mul { period, .. } => {
                vec![one(0, i), one(1, self.split(period).1)]
            }
            Kernel::Scale { .. } | Kernel::Relu => vec![one(0, i)],
            Kernel::ReluGrad => vec![one(0, i), one(1, i)],
            Kernel::Lookup(lookup) => vec![one(0, i), entries(1, self.lookup_cell(&lookup)?)],
            Kernel::RowMax { depth } | Kernel::RowSum { depth, .. } => vec![row(0, i, depth)],
            Kernel::ExpNeg { depth, multiplier, input_shift } => {
                let cell = self.exp_cell(depth, multiplier, input_shift)?;
                vec![one(0, i), one(1, self.split(depth).0), entries(2, cell)]
            }
            Kernel::Normalize { depth, .. } | Kernel::OneHotSub { depth, .. } => {
                vec![one(0, i), one(1, self.split(depth).0)]
            }
        })
    }

    /// The index in operand 0 of an element that is only moved.
    fn moved(&self) -> u64 {
        match self.kernel {
            Kernel::Transpose { rows, columns } => {
                let (n, m) = self.split(rows);
                m.saturating_mul(columns).saturating_add(n)
            }
            Kernel::Sample { population, width, first_row } => {
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

    fn clamped(&self, x: i128) -> i64 {
        clamp(x, limit(self.operator.output.bits()))
    }

    /// `table[j]·(2^f − r) + table[j+1]·r`.
    fn interpolate(&self, table: usize, cell: &Cell, fraction_bits: u32) -> Result<i128, OpError> {
        let (low, high) = (self.get(table, cell.entry)?, self.get(table, cell.entry.saturating_add(1))?);
        let unit = 1i128.wrapping_shl(fraction_bits);
        Ok(low.saturating_mul(unit.saturating_sub(cell.rest)).saturating_add(high.saturating_mul(cell.rest)))
    }

    fn lookup_cell(&self, lookup: &Lookup) -> Result<Cell, OpError> {
        let top = 1i128.wrapping_shl(lookup.log.saturating_add(lookup.fraction_bits));
        let x = i128::from(rescale(self.get(0, self.index)?, lookup.input_shift, 63));
        let u = x.saturating_sub(lookup.low.into()).clamp(0, top);
        let last = 1i128.wrapping_shl(lookup.log).saturating_sub(1);
        let j = u.wrapping_shr(lookup.fraction_bits).min(last);
        let rest = u.saturating_sub(j.wrapping_shl(lookup.fraction_bits));
        // SAFETY of the cast: 0 ≤ j < 2^12.
        Ok(Cell { entry: j as u64, rest, octaves: 0 })
    }

    fn exp_cell(&self, depth: u64, multiplier: i64, input_shift: i64) -> Result<Cell, OpError> {
        let (a, max) = (self.get(0, self.index)?, self.get(1, self.split(depth).0)?);
        let z = max.saturating_sub(a).max(0);
        let u = rescale(z.saturating_mul(multiplier.into()), input_shift, 63).min(EXP_ARGUMENT_MAX);
        // SAFETY of the cast: 0 ≤ (u mod 2^16) / 2^8 < 256.
        Ok(Cell { entry: ((u & 0xffff) >> 8) as u64, rest: (u & 0xff).into(), octaves: u >> 16 })
    }
}
