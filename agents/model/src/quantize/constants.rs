//! The constants of a quantised model, each kind in a way of its own.

use tensorlink_num::bounds::norm_exponent;
use tensorlink_num::tables;
use tensorlink_num::{Mantissas, Tensor};
use tensorlink_types::TensorType;
use tensorlink_types::operator::MAX_REDUCTION;

use super::{Made, QuantizeError, ROTARY_EXPONENT, SCALE_BITS, TABLE_BITS, VECTOR_BITS};
use crate::architecture::{Activation, Architecture, Curve, Norm, Rotary};
use crate::emit::{SHARE_CELL, SHARE_FIRST, SHARE_LOG, STREAM_BITS, part_name, parts};
use crate::parameters::Matrix;
use crate::rounding::Rounding;

impl Made<'_> {
    /// A matrix by rows: `name`, in parts if its rows are long, and `name.scale`.
    pub(super) fn matrix(&mut self, name: &str, bits: u8, rounding: &Rounding) -> Result<(), QuantizeError> {
        let matrix = self.weights.get(name)?;
        let columns_of_row = matrix.columns() as usize;
        let unit = libm::exp2(f64::from(bits) - 1.0);
        let limit = unit - 1.0;
        // The scale of a row whose largest element becomes the largest mantissa.
        let mut scales = Vec::with_capacity(matrix.rows() as usize);
        for row in matrix.values().chunks(columns_of_row) {
            scales.push(row.iter().fold(0.0, |most: f64, w| most.max(f64::from(w.abs()))) * unit / limit);
        }
        let exponent = exponent_of(scales.iter().fold(0.0, |max: f64, s| max.max(*s)), SCALE_BITS);
        let step = libm::exp2(f64::from(exponent));
        let scales: Vec<i64> = scales.iter().map(|s| ((s * step).round_ties_even() as i64).max(1)).collect();
        // What is looked up stays whole.
        let together = if name == "embedding.tokens" { u64::MAX } else { MAX_REDUCTION };
        let parts = parts(matrix.columns(), together);
        let mut mantissas: Vec<Vec<i16>> = vec![Vec::new(); parts.len()];
        let mut rounded = Vec::with_capacity(columns_of_row);
        for (row, scale) in matrix.values().chunks(columns_of_row).zip(&scales) {
            let by = unit * step / *scale as f64;
            rounded.clear();
            rounded.extend(row.iter().map(|w| (f64::from(*w) * by) as f32));
            rounding.round(&mut rounded, limit as f32);
            for (columns, mantissas) in parts.iter().zip(&mut mantissas) {
                let weights = rounded.get(columns.clone()).unwrap_or_default();
                mantissas.extend(weights.iter().map(|w| *w as i16));
            }
        }
        for (number, (columns, mantissas)) in parts.iter().zip(mantissas).enumerate() {
            let name = if parts.len() == 1 { name.to_owned() } else { part_name(name, number) };
            let ty = TensorType::new(bits, i16::from(bits).saturating_sub(1), &[matrix.rows(), columns.len() as u32]);
            let ty = ty.map_err(|source| QuantizeError::Type { name: name.clone(), source })?;
            let mantissas = match bits {
                // SAFETY of the casts: within ±127.
                0..=8 => Mantissas::I8(mantissas.iter().map(|m| *m as i8).collect()),
                _ => Mantissas::I16(mantissas),
            };
            let tensor = Tensor::new(ty, mantissas);
            let tensor = tensor.map_err(|source| QuantizeError::Tensor { name: name.clone(), source })?;
            self.constants.insert(name, tensor);
        }
        self.keep(&format!("{name}.scale"), TensorType::new(SCALE_BITS, exponent, &[matrix.rows()]), &scales)
    }

    /// A vector times a factor, with one exponent of at most `finest`.
    pub(super) fn vector(&mut self, name: &str, factor: f64, finest: i16) -> Result<(), QuantizeError> {
        let matrix = self.weights.get(name)?;
        let values: Vec<f64> = floats(matrix).iter().map(|x| x * factor).collect();
        self.fixed(name, &[matrix.columns()], &values, finest)
    }

    pub(super) fn fixed(&mut self, name: &str, dims: &[u32], values: &[f64], finest: i16) -> Result<(), QuantizeError> {
        let largest = values.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        let exponent = exponent_of(largest, VECTOR_BITS).min(finest);
        let step = libm::exp2(f64::from(exponent));
        let mantissas: Vec<i64> = values.iter().map(|x| (x * step).round_ties_even() as i64).collect();
        self.keep(name, TensorType::new(VECTOR_BITS, exponent, dims), &mantissas)
    }

    pub(super) fn norm(&mut self, a: &Architecture, name: &str) -> Result<(), QuantizeError> {
        self.norm_of(name, a.norm, a.width)
    }

    /// Gain times `√length` (rule N-28) and bias; zeros where the norm has none.
    pub(super) fn norm_of(&mut self, name: &str, norm: Norm, length: u32) -> Result<(), QuantizeError> {
        let gain = format!("{name}.gain");
        self.vector(&gain, libm::sqrt(f64::from(length)), i16::MAX)?;
        // The bias is added to products of normalised element and gain, and may not be finer than they are.
        let exponent = self.constants.get(&gain).map_or(0, |gain| gain.ty().exponent());
        // SAFETY of the cast: at most 24.
        let product = exponent.saturating_add(norm_exponent(STREAM_BITS) as i16);
        let bias = format!("{name}.bias");
        match norm {
            Norm::Layer => self.vector(&bias, 1.0, product),
            Norm::Rms => self.keep(&bias, TensorType::new(2, 0, &[length]), &vec![0; length as usize]),
        }
    }

    pub(super) fn rotary(&mut self, name: &str, rotary: &Rotary, context: u32) -> Result<(), QuantizeError> {
        let frequencies = rotary.frequencies();
        let step = libm::exp2(f64::from(ROTARY_EXPONENT)) * rotary.amplitude();
        let mut values = Vec::with_capacity(context as usize * rotary.width as usize);
        for place in 0..context {
            let angles = || frequencies.iter().map(|f| f * f64::from(place));
            values.extend(angles().map(|angle| (libm::cos(angle) * step).round_ties_even() as i64));
            values.extend(angles().map(|angle| (libm::sin(angle) * step).round_ties_even() as i64));
        }
        let ty = TensorType::new(VECTOR_BITS, ROTARY_EXPONENT, &[context, rotary.width]);
        self.keep(name, ty, &values)
    }

    /// Two numbers of each place, whose products with those of another say how far the other lies beyond the window:
    /// `(m − (W − 1))·1 + 1·(−k)`.
    pub(super) fn window(&mut self, window: u32, context: u32) -> Result<(), QuantizeError> {
        let (places, reach) = (0..i64::from(context), i64::from(window).saturating_sub(1));
        let queries: Vec<i64> = places.clone().flat_map(|m| [m.saturating_sub(reach), 1]).collect();
        let keys: Vec<i64> = places.clone().flat_map(|k| [1, k.saturating_neg()]).collect();
        for (part, numbers) in [("queries", queries), ("keys", keys)] {
            let ty = TensorType::new(VECTOR_BITS, 0, &[context, 2]);
            self.keep(&format!("embedding.window.{part}"), ty, &numbers)?;
        }
        self.keep("embedding.window.scale", TensorType::new(2, 0, &[context]), &vec![1; context as usize])?;
        let places: Vec<i64> = places.collect();
        self.keep("embedding.window.places", TensorType::new(32, 0, &[context]), &places)
    }

    /// The table of a curve that has one: of a gate what share passes, for any gate.
    pub(super) fn curve(&mut self, name: &str, curve: Curve) -> Result<(), QuantizeError> {
        let function = match curve {
            Curve::Identity | Curve::Gate(Activation::Relu) => return Ok(()),
            Curve::Tanh => tables::Function::Tanh,
            Curve::Sigmoid | Curve::Gate(Activation::Silu) => tables::Function::Sigmoid,
            Curve::Gate(Activation::Gelu) => tables::Function::GeluCdf,
            Curve::Gate(Activation::GeluTanh) => tables::Function::GeluTanhCdf,
        };
        let grid = tables::Grid { first: SHARE_FIRST, cell: SHARE_CELL.saturating_neg(), log: SHARE_LOG };
        // Values of at most 1.
        let reach = i16::from(TABLE_BITS).saturating_sub(2);
        let source = |source| QuantizeError::Table { name: name.to_owned(), source };
        let table = tables::function_table(function, grid, TABLE_BITS, reach).map_err(source)?;
        self.constants.insert(name.to_owned(), table);
        Ok(())
    }
}

pub(super) fn floats(matrix: &Matrix) -> Vec<f64> {
    matrix.values().iter().map(|x| f64::from(*x)).collect()
}

/// Largest exponent at which `largest` still has `bits` bits.
fn exponent_of(largest: f64, bits: u8) -> i16 {
    let exponent = crate::sites::exponent(largest, bits);
    // Rounding up must not leave the range: 32767.6 is no 16-bit mantissa.
    let limit = libm::exp2(f64::from(bits) - 1.0) - 1.0;
    if (largest * libm::exp2(f64::from(exponent))).round_ties_even() > limit {
        exponent.saturating_sub(1)
    } else {
        exponent
    }
}
