//! Products with weights: operands shifted by rows, long rows in parts.

use std::ops::Range;

use tensorlink_program::scale;
use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, TensorType};

use super::{Emitter, STREAM_BITS, Value, exponents};
use crate::inputs::Input;
use crate::plan::error::PlanError;

/// Bits of a row's shift.
const SHIFT_BITS: u8 = 8;
/// Bits of the parts of a product that is split along its reduction, and how much finer they are than the whole.
const PART_BITS: u8 = 32;
const PART_EXTRA: i16 = 8;

/// A tensor with a shift for each row, ready for matrix products.
pub(super) struct Quantised {
    mantissas: Value,
    shifts: Value,
}

impl Emitter<'_> {
    /// Rows in the input's bits, each shifted as far as its largest magnitude asks.
    pub(super) fn quantise(&mut self, name: &str, input: Input, x: &Value) -> Result<Quantised, PlanError> {
        let bits = input.bits(self.setting);
        let rows = u32::try_from(x.ty.rows()).unwrap_or(u32::MAX);
        let whole = self.ty(name, SHIFT_BITS, 0, &[rows])?;
        let label = format!("{name}.shift");
        let parts = scale::equal_parts(x.ty.row())
            .ok_or(PlanError::Unsupported("a row that has no equal parts of 4096 or less"))?;
        let shifts = if parts == 1 {
            self.push(&label, Opcode::RowShift, &[x], vec![bits.into()], whole)
        } else {
            let each = self.ty(name, SHIFT_BITS, 0, &[rows, parts])?;
            let each = self.push(&format!("{label}.parts"), Opcode::RowShift, &[x], vec![bits.into()], each);
            self.push(&label, Opcode::RowMax, &[&each], vec![0], whole)
        };
        let to = self.ty(name, bits, x.ty.exponent(), x.ty.dims())?;
        let mantissas = self.push(&format!("{name}.shifted"), Opcode::ShiftRows, &[x, &shifts], vec![], to);
        Ok(Quantised { mantissas, shifts })
    }

    /// A projection to the site of its name.
    pub(super) fn projection(&mut self, name: &str, x: &Quantised, bias: bool, bits: u8) -> Result<Value, PlanError> {
        self.projection_to((name, name), x, bias, bits)
    }

    /// A projection, by its name, to a site.
    pub(super) fn projection_to(
        &mut self,
        (name, site): (&str, &str),
        x: &Quantised,
        bias: bool,
        bits: u8,
    ) -> Result<Value, PlanError> {
        let weight = format!("{name}.weight");
        if !bias {
            return self.product(site, &weight, x, bits);
        }
        let y = self.product(&format!("{name}.unbiased"), &weight, x, STREAM_BITS)?;
        let bias = self.constant(&format!("{name}.bias"))?;
        let to = self.activation(site, bits, y.ty.dims())?;
        Ok(self.add(site, &y, &bias, to))
    }

    /// `x · weightᵀ` to a site; where rows are too long for one operator, as a sum of parts.
    pub(super) fn product(&mut self, site: &str, weight: &str, x: &Quantised, bits: u8) -> Result<Value, PlanError> {
        let inputs = u32::try_from(x.mantissas.ty.row()).unwrap_or(u32::MAX);
        let parts = parts(inputs, MAX_REDUCTION);
        let scale = self.constant(&format!("{weight}.scale"))?;
        let outputs = u32::try_from(scale.ty.elements()).unwrap_or(u32::MAX);
        let dims = [u32::try_from(x.mantissas.ty.rows()).unwrap_or(u32::MAX), outputs];
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
        let operands = [&x.mantissas, &weight, &x.shifts, scale];
        let attributes = vec![offset as i64, exponents(&operands) - i64::from(to.exponent())];
        Ok(self.push(name, Opcode::ShiftedMatMul, &operands, attributes, to))
    }
}

/// Columns of a weight by the operators that reduce them, of at most `most` each.
pub(crate) fn parts(columns: u32, most: u64) -> Vec<Range<usize>> {
    let (all, most) = (columns as usize, most as usize);
    (0..all).step_by(most).map(|start| start..start.saturating_add(most).min(all)).collect()
}

/// Name of a part of a product, and of the weights it multiplies.
pub(crate) fn part_name(name: &str, part: usize) -> String {
    format!("{name}.part{part}")
}
