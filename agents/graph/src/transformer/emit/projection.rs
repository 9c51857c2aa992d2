//! Products with weights: operands quantised by rows, long rows in parts.

use std::ops::Range;

use tensorlink_types::{Opcode, TensorType};

use super::{ACTIVATION_BITS, Emitter, Value, exponents};
use crate::lower;
use crate::transformer::inputs::Input;
use crate::transformer::plan::PlanError;

/// Bits of a row's scale: one more than an activation, because it is a little more than the row's largest magnitude.
const ROW_SCALE_BITS: u8 = 17;
/// Fraction bits of how much more.
const ROW_SCALE_SHIFT: u8 = 14;
/// Bits of the parts of a product that is split along its reduction, and how much finer they are than the whole.
const PART_BITS: u8 = 32;
const PART_EXTRA: i16 = 8;

/// A tensor with a scale for each row, ready for matrix products.
pub(super) struct Quantised {
    mantissas: Value,
    scale: Value,
    /// Most of a row that one operator reduces.
    reduction: u64,
}

impl Emitter<'_> {
    /// Channels brought to like magnitudes, then quantised.
    pub(super) fn smoothed(&mut self, name: &str, input: Input, x: &Value) -> Result<Quantised, PlanError> {
        let factors = self.constant(&format!("{name}.smoothing"))?;
        let smoothed = format!("{name}.smoothed");
        let to = self.activation(&smoothed, ACTIVATION_BITS, x.ty.dims())?;
        let shift = exponents(&[x, &factors]) - i64::from(to.exponent());
        let x = self.push(&smoothed, Opcode::Mul, &[x, &factors], vec![shift], to);
        self.quantise(name, input, &x)
    }

    /// Rows as fractions of their own largest magnitude, in the input's bits.
    pub(super) fn quantise(&mut self, name: &str, input: Input, x: &Value) -> Result<Quantised, PlanError> {
        let (bits, exponent) = (x.ty.bits(), x.ty.exponent());
        let rows = [u32::try_from(x.ty.rows()).unwrap_or(u32::MAX)];
        let whole = self.ty(name, bits, exponent, &rows)?;
        let label = format!("{name}.largest");
        let parts = lower::equal_parts(x.ty.row())
            .ok_or(PlanError::Unsupported("a row that has no equal parts of 4096 or less"))?;
        let largest = if parts == 1 {
            self.push(&label, Opcode::RowAbsMax, &[x], vec![], whole)
        } else {
            let [rows] = rows;
            let each = self.ty(name, bits, exponent, &[rows, parts])?;
            let each = self.push(&format!("{label}.parts"), Opcode::RowAbsMax, &[x], vec![], each);
            self.push(&label, Opcode::RowMax, &[&each], vec![0], whole)
        };
        let to = self.ty(name, ROW_SCALE_BITS, exponent, &rows)?;
        let attributes = vec![row_scale(input.bits()), ROW_SCALE_SHIFT.into()];
        let scale = self.push(&format!("{name}.scale"), Opcode::Scale, &[&largest], attributes, to);
        let exponent = input.bits().saturating_sub(1);
        let to = self.ty(name, input.bits(), exponent.into(), x.ty.dims())?;
        let attributes = vec![exponent.into()];
        let mantissas = self.push(&format!("{name}.quantised"), Opcode::Normalize, &[x, &scale], attributes, to);
        Ok(Quantised { mantissas, scale, reduction: input.reduction() })
    }

    /// A projection to the site of its name.
    pub(super) fn projection(&mut self, name: &str, x: &Quantised, bias: bool, bits: u8) -> Result<Value, PlanError> {
        let weight = format!("{name}.weight");
        if !bias {
            return self.product(name, &weight, x, bits);
        }
        let site = format!("{name}.unbiased");
        let y = self.product(&site, &weight, x, ACTIVATION_BITS)?;
        let bias = self.constant(&format!("{name}.bias"))?;
        let to = self.activation(name, bits, y.ty.dims())?;
        Ok(self.add(name, &y, &bias, to))
    }

    /// `x · weightᵀ` to a site; where rows are too long for one operator, as a sum of parts.
    pub(super) fn product(&mut self, site: &str, weight: &str, x: &Quantised, bits: u8) -> Result<Value, PlanError> {
        let inputs = u32::try_from(x.mantissas.ty.row()).unwrap_or(u32::MAX);
        let parts = parts(inputs, x.reduction);
        let scale = self.constant(&format!("{weight}.scale"))?;
        let outputs = u32::try_from(scale.ty.elements()).unwrap_or(u32::MAX);
        let dims = [self.tokens, outputs];
        let to = self.activation(site, bits, &dims)?;
        if parts.len() < 2 {
            return self.part(site, weight, (x, &scale), 0, to);
        }
        let wide = self.ty(site, PART_BITS, to.exponent().saturating_add(PART_EXTRA), &dims)?;
        let mut sum: Option<Value> = None;
        for (number, columns) in parts.iter().enumerate() {
            let name = part_name(site, number);
            let part = self.part(&name, &part_name(weight, number), (x, &scale), columns.start, wide.clone())?;
            let last = number.saturating_add(1) == parts.len();
            sum = Some(match sum {
                None => part,
                Some(sum) => self.add(site, &sum, &part, if last { to.clone() } else { wide.clone() }),
            });
        }
        sum.ok_or(PlanError::Unsupported("a projection without inputs"))
    }

    fn part(
        &mut self,
        name: &str,
        weight: &str,
        (x, scale): (&Quantised, &Value),
        offset: usize,
        to: TensorType,
    ) -> Result<Value, PlanError> {
        let weight = self.constant(weight)?;
        let operands = [&x.mantissas, &weight, &x.scale, scale];
        let attributes = vec![offset as i64, exponents(&operands) - i64::from(to.exponent())];
        Ok(self.push(name, Opcode::ScaledMatMul, &operands, attributes, to))
    }
}

/// What makes a row's largest magnitude the largest mantissa of so many bits: `2^(b−1)/(2^(b−1) − 1)`.
fn row_scale(bits: u8) -> i64 {
    let unit = 1i64.wrapping_shl(u32::from(bits).saturating_sub(1));
    let limit = unit.saturating_sub(1).max(1);
    let dividend = unit.wrapping_shl(ROW_SCALE_SHIFT.into()).saturating_add(limit / 2);
    dividend.checked_div(limit).unwrap_or(0)
}

/// Columns of a weight by the operators that reduce them, of at most `most` each.
pub(in crate::transformer) fn parts(columns: u32, most: u64) -> Vec<Range<usize>> {
    let (all, most) = (columns as usize, most as usize);
    (0..all).step_by(most).map(|start| start..start.saturating_add(most).min(all)).collect()
}

/// Name of a part of a product, and of the weights it multiplies.
pub(in crate::transformer) fn part_name(name: &str, part: usize) -> String {
    format!("{name}.part{part}")
}
