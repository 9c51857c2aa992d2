//! One output element, from only the elements it reads: what a validator proves and the contract recomputes.
//!
//! Written as the rules are, over `i128`, without regard to speed; `execute` is measured against it.
//!
//! | module | what lives there |
//! |---|---|
//! | `reads` | which elements of its operands an element is computed from |
//! | `places` | where those lie: runs of a dot product, moved elements, pairs that rotate |
//! | `tables` | Lookup and ExpNeg: the cell of a table and what it gives |
//! | `norm` | Norm, InverseNorm |
//! | `sampling` | RowArgMax, RowPick, TailSum, Threshold, Perturb, Choose |
//! | `shifted` | RowShift, ShiftRows, ShiftedMatMul |
//! | `training` | GatherGrad, GroupSum, Ratio, Shrink, Dropout, Dither |

mod norm;
mod places;
mod reads;
mod sampling;
mod shifted;
mod tables;
mod training;

use tensorlink_types::Operator;

use crate::checked::CheckedOperator;
use crate::context::StepContext;
use crate::error::OpError;
use crate::fixed::{clamp, div, limit, rescale};
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

/// The elements that output element `index` is computed from, ordered by operand and element. An operand is named as
/// often as there are separate runs of it: twice by Rope, not at all where nothing of it enters (rule N-8). Where they
/// depend on data (Lookup, ExpNeg, Gather, RowPick, Perturb), `get` is asked for the data that decides, never for
/// table entries.
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

/// One element of one accepted operator.
struct Site<'a, F> {
    operator: &'a Operator,
    checked: CheckedOperator,
    get: F,
    index: u64,
    context: &'a StepContext,
}

impl<'a, F: Fn(usize, u64) -> Option<i64>> Site<'a, F> {
    fn new(operator: &'a Operator, get: F, index: u64, context: &'a StepContext) -> Result<Self, OpError> {
        let checked = CheckedOperator::new(operator)?;
        let elements = operator.output.elements();
        if index >= elements {
            return Err(OpError::NoSuchElement { index, elements });
        }
        Ok(Self { operator, checked, get, index, context })
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

    /// Quotient and remainder of the index by a length that the operator holds (never 0).
    fn split(&self, length: u64) -> (u64, u64) {
        (self.index.checked_div(length).unwrap_or(0), self.index.checked_rem(length).unwrap_or(0))
    }

    fn value(&self) -> Result<i64, OpError> {
        let bits = self.operator.output.bits();
        let i = self.index;
        Ok(match self.checked {
            CheckedOperator::MatMul { shift, .. } => rescale(self.dot()?, shift, bits),
            CheckedOperator::HeadScores(heads) | CheckedOperator::HeadMix(heads) => {
                rescale(self.dot()?, heads.shift, bits)
            }
            CheckedOperator::ScaledMatMul(product) => {
                let (m, n) = self.split(product.columns);
                let scale = self.get(2, m)?.saturating_mul(self.get(3, n)?);
                rescale(scale.saturating_mul(self.dot()?), product.shift, bits)
            }
            CheckedOperator::Transpose { .. } | CheckedOperator::Sample { .. } => {
                self.clamped(self.get(0, self.moved())?)
            }
            CheckedOperator::Combine { ca, cb, period, shift } => {
                let a = self.get(0, i)?.saturating_mul(ca.into());
                let b = self.get(1, self.split(period).1)?.saturating_mul(cb.into());
                rescale(a.saturating_add(b), shift, bits)
            }
            CheckedOperator::Scale { c, shift } => rescale(self.get(0, i)?.saturating_mul(c.into()), shift, bits),
            CheckedOperator::Mul { period, shift } => {
                rescale(self.get(0, i)?.saturating_mul(self.get(1, self.split(period).1)?), shift, bits)
            }
            CheckedOperator::Relu => self.clamped(self.get(0, i)?.max(0)),
            CheckedOperator::ReluGrad => {
                let (dy, x) = (self.get(0, i)?, self.get(1, i)?);
                self.clamped(if x > 0 { dy } else { 0 })
            }
            CheckedOperator::Lookup(lookup) => {
                let cell = self.lookup_cell(&lookup)?;
                rescale(self.interpolate(1, &cell, lookup.fraction_bits)?, lookup.shift, bits)
            }
            CheckedOperator::RowMax { depth, visible } => {
                let largest = self.reduce(depth, visible.of_row(i, depth), i128::MIN, i128::max)?;
                self.clamped(largest)
            }
            CheckedOperator::RowAbsMax { depth } => {
                self.clamped(self.reduce(depth, depth, 0, |max, a| max.max(a.saturating_abs()))?)
            }
            CheckedOperator::ExpNeg { depth, multiplier, input_shift, visible } => {
                let (m, k) = self.split(depth);
                if k >= visible.of_row(m, depth) {
                    return Ok(0);
                }
                let cell = self.exp_cell(depth, multiplier, input_shift)?;
                rescale(self.interpolate(2, &cell, 8)?, cell.octaves.saturating_add(8), bits)
            }
            CheckedOperator::RowSum { depth, shift } => {
                rescale(self.reduce(depth, depth, 0, i128::saturating_add)?, shift, bits)
            }
            CheckedOperator::Normalize { depth, bits: places } => {
                let (p, z) = (self.get(0, i)?, self.get(1, self.split(depth).0)?.max(1));
                // The divisor is at least 1, so there is a quotient.
                self.clamped(div(p.saturating_mul(1i128.wrapping_shl(places)), z).unwrap_or_default())
            }
            CheckedOperator::OneHotSub { depth, one, shift } => {
                let (m, k) = self.split(depth);
                let hit = self.get(1, m)? == i128::from(k);
                let x = self.get(0, i)?.saturating_sub(if hit { one.into() } else { 0 });
                rescale(x, shift, bits)
            }
            CheckedOperator::Norm(norm) => rescale(self.norm(&norm)?, norm.shift, bits),
            CheckedOperator::Rope(rope) => {
                let x = match self.turn(&rope) {
                    None => self.get(0, i)?.saturating_mul(1i128.wrapping_shl(rope.exponent)),
                    Some(turn) => {
                        let (low, high) = (self.get(0, turn.low)?, self.get(0, turn.high)?);
                        let (cosine, sine) = (self.get(1, turn.cosine)?, self.get(1, turn.sine)?);
                        if i == turn.low {
                            low.saturating_mul(cosine).saturating_sub(high.saturating_mul(sine))
                        } else {
                            high.saturating_mul(cosine).saturating_add(low.saturating_mul(sine))
                        }
                    }
                };
                rescale(x, rope.shift, bits)
            }
            CheckedOperator::Gather { entries, width, shift } => {
                let (t, k) = self.split(width);
                let entry = self.entry(2, entries, t)?;
                let mantissa = self.get(0, entry.saturating_mul(width).saturating_add(k))?;
                rescale(mantissa.saturating_mul(self.get(1, entry)?), shift, bits)
            }
            CheckedOperator::RowArgMax { depth } => {
                self.clamped(self.first_largest(0, i.saturating_mul(depth), depth)?.into())
            }
            CheckedOperator::RowPick { depth } => self.clamped(self.get(0, self.picked(depth)?)?),
            CheckedOperator::TailSum(tail) => rescale(self.tail_sum(&tail)?, tail.shift, bits),
            CheckedOperator::Threshold { parts, step } => self.clamped(self.threshold(parts, step)?),
            CheckedOperator::Perturb(perturb) => match self.perturbed(&perturb)? {
                Some(x) => rescale(x, perturb.shift, bits),
                None => limit(bits).saturating_neg(),
            },
            CheckedOperator::Choose { parts, length } => self.clamped(self.choice(parts, length)?),
            CheckedOperator::RowCombine { run, ca, cb, shift } => {
                let (a, b) = (self.get(0, i)?, self.get(1, self.split(run).0)?);
                rescale(a.saturating_mul(ca.into()).saturating_add(b.saturating_mul(cb.into())), shift, bits)
            }
            CheckedOperator::RowMul { run, shift } => {
                rescale(self.get(0, i)?.saturating_mul(self.get(1, self.split(run).0)?), shift, bits)
            }
            CheckedOperator::InverseNorm(norm) => self.inverse_norm(&norm)?,
            CheckedOperator::GatherGrad { tokens, width, entries, shift } => {
                rescale(self.gathered(tokens, width, entries)?, shift, bits)
            }
            CheckedOperator::Ratio { places, floor } => self.clamped(self.ratio(places, floor)?),
            CheckedOperator::Shrink { places, limit } => self.clamped(self.shrink(places, limit)?),
            CheckedOperator::AtStep { .. } | CheckedOperator::Slice { .. } => self.clamped(self.get(0, self.moved())?),
            CheckedOperator::GroupSum(heads) => rescale(self.group_sum(&heads)?, heads.shift, bits),
            CheckedOperator::Dropout { keep, stream, c, shift } => match self.is_kept(keep, stream) {
                true => rescale(self.get(0, i)?.saturating_mul(c.into()), shift, bits),
                false => 0,
            },
            CheckedOperator::Dither { depth, places, stream } => self.clamped(self.dithered(depth, places, stream)?),
            CheckedOperator::RowShift { depth, bits } => self.clamped(self.needed_shift(depth, bits)?),
            CheckedOperator::ShiftRows { depth } => {
                rescale(self.get(0, i)?, self.shift_of_row(1, self.split(depth).0)?, bits)
            }
            CheckedOperator::ShiftedMatMul(product) => {
                let (m, n) = self.split(product.columns);
                let shift = product.shift.saturating_sub(self.shift_of_row(2, m)?);
                rescale(self.get(3, n)?.saturating_mul(self.dot()?), shift, bits)
            }
        })
    }

    /// The first `count` elements of the operand's row that this element stands for, folded.
    fn reduce(&self, depth: u64, count: u64, start: i128, fold: impl Fn(i128, i128) -> i128) -> Result<i128, OpError> {
        let first = self.index.saturating_mul(depth);
        (0..count).try_fold(start, |so_far, k| Ok(fold(so_far, self.get(0, first.saturating_add(k))?)))
    }

    /// `Σ_k a[…]·b[…]` over the runs of a product.
    fn dot(&self) -> Result<i128, OpError> {
        let runs = self.runs();
        (0..runs.count).try_fold(0i128, |sum, k| {
            let (a, b) = (runs.a.saturating_add(k), runs.b.saturating_add(k));
            Ok(sum.saturating_add(self.get(0, a)?.saturating_mul(self.get(1, b)?)))
        })
    }

    fn clamped(&self, x: i128) -> i64 {
        clamp(x, limit(self.operator.output.bits()))
    }
}
