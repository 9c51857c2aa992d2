//! A float model as integers: weights with a scale for each channel, vectors and tables, and an exponent for
//! each activation.
//!
//! A channel's weights are `m · 2^−7 · c · 2^−e`: mantissas of 8 bits (16 in an embedding that is only looked up), an
//! integer scale `c` for each row, one exponent for all scales. Activations have static exponents, from what
//! calibration saw; where they enter a matrix product they are quantised once more, by a scale for each token that the
//! program itself computes.

use std::collections::BTreeMap;

use tensorlink_num::tables::{self, exp2_table, gumbel_table};
use tensorlink_num::{Mantissas, Tensor, TensorError};
use tensorlink_types::{TensorType, TypeError};
use thiserror::Error;

use super::architecture::{Activation, Architecture, Norm, Output, Placement, Pooling, Positions, Rotary};
use super::emit::{NORM_EXPONENT, part_name, parts};
use super::inputs::Input;
use super::parameters::{Matrix, Weights, WeightsError};
use super::plan::PlanError;
use super::quantized::Quantized;
use super::rounding::Rounding;
use super::sites::{Magnitudes, Sites};

/// Bits of a weight, and of an embedding that multiplies nothing.
const WEIGHT_BITS: u8 = 8;
const EMBEDDING_BITS: u8 = 16;
/// Bits of a channel's scale: with those of a token's, products over 4096 elements stay below 2^62.
const SCALE_BITS: u8 = 18;
/// Bits of gains, biases and positions.
const VECTOR_BITS: u8 = 16;
/// Bits of a Lookup's table and `log2` of its cells.
const TABLE_BITS: u8 = 26;
const TABLE_LOG: u32 = 12;
/// Share of the largest channel below which channels count as equally small.
const LEAST_CHANNEL: f64 = 1e-3;
/// Exponent of the rotary table: amplitudes below 2.
const ROTARY_EXPONENT: i16 = 14;
/// Exponent of the unit gain that ends an embedding.
const UNIT_EXPONENT: i16 = 14;

/// Why a model could not be quantised.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum QuantizeError {
    /// The weights are not the architecture's.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A constant has no type; its values are too large or too small for any exponent.
    #[error("{name} cannot be written in integers: {source}")]
    Type {
        /// The constant.
        name: String,
        /// Why.
        source: TypeError,
    },
    /// Values do not fit a type that was made for them: a defect of this module.
    #[error("{name}: {source}")]
    Tensor {
        /// The constant.
        name: String,
        /// Why.
        source: TensorError,
    },
    /// A table could not be formed.
    #[error("{name}: {source}")]
    Table {
        /// The constant.
        name: String,
        /// Why.
        source: tables::TableError,
    },
    /// The programs could not be emitted.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl Quantized {
    /// Quantises a model by the magnitudes that calibration saw.
    ///
    /// # Errors
    /// [`QuantizeError`].
    pub fn new(architecture: Architecture, weights: &Weights, seen: &Magnitudes) -> Result<Self, QuantizeError> {
        let mut made = Made { weights, seen, sites: seen.sites(), constants: BTreeMap::new() };
        made.embedding(&architecture)?;
        for layer in 0..architecture.layers {
            made.layer(&architecture, layer)?;
        }
        made.head(&architecture)?;
        Ok(Self { constants: made.constants, architecture, sites: made.sites })
    }
}

/// What becomes of a matrix's columns.
struct Columns {
    /// They are multiplied by these.
    factors: Vec<f64>,
    rounding: Rounding,
    /// So many at most stay together.
    together: u64,
}

/// Constants made so far.
struct Made<'a> {
    weights: &'a Weights,
    seen: &'a Magnitudes,
    sites: Sites,
    constants: BTreeMap<String, Tensor>,
}

impl Made<'_> {
    fn keep(&mut self, name: &str, ty: Result<TensorType, TypeError>, values: &[i64]) -> Result<(), QuantizeError> {
        let ty = ty.map_err(|source| QuantizeError::Type { name: name.to_owned(), source })?;
        let tensor =
            Tensor::from_wide(ty, values).map_err(|source| QuantizeError::Tensor { name: name.to_owned(), source })?;
        self.constants.insert(name.to_owned(), tensor);
        Ok(())
    }

    fn embedding(&mut self, a: &Architecture) -> Result<(), QuantizeError> {
        let factors = vec![1.0; a.width as usize];
        if a.output == (Output::Logits { tied: true }) {
            // Rows that are output weights as well: that is where their errors count most.
            let rounding = Rounding::new(self.seen.products("final.norm"), &factors);
            let columns = Columns { factors, rounding, together: Input::tied(a.width).reduction() };
            self.matrix("embedding.tokens", WEIGHT_BITS, &columns)?;
        } else {
            let columns = Columns { factors, rounding: Rounding::none(), together: u64::MAX };
            self.matrix("embedding.tokens", EMBEDDING_BITS, &columns)?;
        }
        if let Positions::Learned { first } = a.positions {
            // Texts are number 0 of their pair: its vector is the same for every token.
            let mut positions: Vec<f64> = floats(self.weights.get("embedding.positions")?);
            if a.token_types {
                let ty = floats(self.weights.get("embedding.type")?);
                positions.iter_mut().zip(ty.iter().cycle()).for_each(|(p, t)| *p += t);
            }
            let rows = first.saturating_add(a.context);
            self.fixed("embedding.positions", &[rows, a.width], &positions, i16::MAX)?;
            self.keep("embedding.positions.scale", TensorType::new(2, 0, &[rows]), &vec![1; rows as usize])?;
            let places: Vec<i64> = (i64::from(first)..i64::from(rows)).collect();
            self.keep("embedding.places", TensorType::new(32, 0, &[a.context]), &places)?;
        }
        if a.placement == Placement::After {
            self.norm(a, "embedding.norm")?;
        }
        if let Positions::Rotary(rotary) = &a.positions {
            self.rotary(rotary, a.context)?;
        }
        let source = |source| QuantizeError::Table { name: "exp2".to_owned(), source };
        let exp2 = exp2_table().map_err(source)?;
        self.constants.insert("exp2".to_owned(), exp2);
        Ok(())
    }

    fn layer(&mut self, a: &Architecture, layer: u32) -> Result<(), QuantizeError> {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let before = a.placement == Placement::Before;
        let attended = match layer.checked_sub(1) {
            _ if before => name("attention.norm"),
            None => "embedding.norm".to_owned(),
            Some(last) => format!("layers.{last}.mlp.norm"),
        };
        let mapped = name(if before { "mlp.norm" } else { "attention.norm" });
        let (first, inner): (&[&str], _) =
            if a.gated { (&["mlp.gate", "mlp.up"], "mlp.product") } else { (&["mlp.up"], "mlp.activated") };
        let looked_up = ["attention.query", "attention.key", "attention.value"];
        self.norm(a, &name("attention.norm"))?;
        self.projections((layer, "attention.input", Input::attention(a)), &attended, &looked_up, a.attention_bias)?;
        let mixed = (layer, "attention.mixed", Input::Mixed);
        self.projections(mixed, &name("attention.mixed"), &["attention.output"], a.output_bias)?;
        if a.query_key_norm {
            for part in ["attention.query_norm", "attention.key_norm"] {
                self.norm_of(&name(part), Norm::Rms, a.head_width)?;
            }
        }
        self.norm(a, &name("mlp.norm"))?;
        self.projections((layer, "mlp.input", Input::Mlp), &mapped, first, a.mlp_bias)?;
        self.projections((layer, "mlp.inner", Input::Inner), &name(inner), &["mlp.down"], a.mlp_bias)?;
        let function = match a.activation {
            Activation::Gelu => tables::Function::Gelu,
            Activation::GeluTanh => tables::Function::GeluTanh,
            Activation::Silu => tables::Function::Silu,
            Activation::Relu => return Ok(()),
        };
        let input = name(if a.gated { "mlp.gate" } else { "mlp.up" });
        let exponent = self.sites.exponent(&input, VECTOR_BITS).map_err(PlanError::from)?;
        self.table(&name("mlp.activation"), function, exponent)
    }

    /// Projections of one input, which calibration saw at `site`.
    fn projections(
        &mut self,
        (layer, name, input): (u32, &str, Input),
        site: &str,
        parts: &[&str],
        bias: bool,
    ) -> Result<(), QuantizeError> {
        let weights: Vec<String> = parts.iter().map(|part| format!("layers.{layer}.{part}.weight")).collect();
        let columns = self.smooth(&format!("layers.{layer}.{name}"), input, site, &weights)?;
        for (part, weight) in parts.iter().zip(&weights) {
            self.matrix(weight, WEIGHT_BITS, &columns)?;
            if bias {
                self.vector(&format!("layers.{layer}.{part}.bias"), 1.0, i16::MAX)?;
            }
        }
        Ok(())
    }

    /// Divides the channels of an input so that none is much larger than the others, and gives what the weights'
    /// columns are to be multiplied by in turn (SmoothQuant, Xiao et al. 2023, with α = ½), and how they are rounded
    /// then. A token's 8 bits would else be spent on the few channels that are large in every token.
    fn smooth(
        &mut self,
        name: &str,
        input: Input,
        site: &str,
        weights: &[impl AsRef<str>],
    ) -> Result<Columns, QuantizeError> {
        let mut columns: Vec<f64> = Vec::new();
        for weight in weights {
            let matrix = self.weights.get(weight.as_ref())?;
            columns.resize(matrix.columns() as usize, 0.0);
            for row in matrix.values().chunks(columns.len()) {
                columns.iter_mut().zip(row).for_each(|(most, w)| *most = most.max(f64::from(w.abs())));
            }
        }
        let seen = self.seen.channels(site).map_err(PlanError::from)?;
        let most = seen.iter().fold(0.0, |most: f32, x| most.max(*x));
        // A channel that calibration hardly saw is not taken to stay small.
        let least = f64::from(most) * LEAST_CHANNEL;
        let magnitudes: Vec<f64> = (0..columns.len())
            .map(|k| f64::from(if seen.len() == columns.len() { seen.get(k).copied().unwrap_or(most) } else { most }))
            .map(|magnitude| magnitude.max(least).max(f64::MIN_POSITIVE))
            .collect();
        let widest = columns.iter().fold(0.0, |most: f64, w| most.max(*w));
        let factor = |(magnitude, column): (&f64, &f64)| libm::sqrt(column.max(widest * LEAST_CHANNEL) / magnitude);
        let factors: Vec<f64> = magnitudes.iter().zip(&columns).map(factor).collect();
        let smoothing = format!("{name}.smoothing");
        self.fixed(&smoothing, &[u32::try_from(columns.len()).unwrap_or(u32::MAX)], &factors, i16::MAX)?;
        // The weights undo what the integers do, not what was meant.
        let factors = self.constants.get(&smoothing).map(Tensor::to_f64).unwrap_or_default();
        let largest = magnitudes.iter().zip(&factors).fold(0.0, |most: f64, (m, f)| most.max(m * f));
        self.sites.insert(format!("{name}.smoothed"), largest);
        let rounding = Rounding::new(self.seen.products(site), &factors);
        let factors = factors.iter().map(|factor| 1.0 / factor.max(f64::MIN_POSITIVE)).collect();
        Ok(Columns { factors, rounding, together: input.reduction() })
    }

    fn head(&mut self, a: &Architecture) -> Result<(), QuantizeError> {
        if a.placement == Placement::Before {
            self.norm(a, "final.norm")?;
        }
        if let Output::Logits { .. } = a.output {
            let source = |source| QuantizeError::Table { name: "gumbel".to_owned(), source };
            self.constants.insert("gumbel".to_owned(), gumbel_table().map_err(source)?);
        }
        match a.output {
            // A text's classes are learnt here, and asked for elsewhere: no program has their pooler.
            Output::Logits { tied: true } | Output::Classes(_) => Ok(()),
            Output::Logits { tied: false } => {
                let columns = self.smooth("final.input", Input::Logits, "final.norm", &["head.weight"])?;
                self.matrix("head.weight", WEIGHT_BITS, &columns)
            }
            Output::Embedding(pooling) => {
                if pooling == Pooling::First {
                    self.keep("output.first", TensorType::new(32, 0, &[1]), &[0])?;
                    let ones = vec![1; a.context as usize];
                    self.keep("output.ones", TensorType::new(2, 0, &[a.context]), &ones)?;
                }
                let width = a.width as usize;
                let gain = vec![1 << UNIT_EXPONENT; width];
                self.keep("output.gain", TensorType::new(VECTOR_BITS, UNIT_EXPONENT, &[a.width]), &gain)?;
                self.keep("output.bias", TensorType::new(2, UNIT_EXPONENT, &[a.width]), &vec![0; width])
            }
        }
    }

    /// A matrix by rows: `name`, in parts if its rows are long, and `name.scale`.
    fn matrix(&mut self, name: &str, bits: u8, columns: &Columns) -> Result<(), QuantizeError> {
        let matrix = self.weights.get(name)?;
        let columns_of_row = matrix.columns() as usize;
        let smoothed = |row| std::iter::zip::<&[f32], _>(row, &columns.factors).map(|(w, s)| f64::from(*w) * s);
        let unit = libm::exp2(f64::from(bits) - 1.0);
        let limit = unit - 1.0;
        // The scale of a row whose largest element becomes the largest mantissa.
        let mut scales = Vec::with_capacity(matrix.rows() as usize);
        for row in matrix.values().chunks(columns_of_row) {
            scales.push(smoothed(row).fold(0.0, |most: f64, w| most.max(w.abs())) * unit / limit);
        }
        let exponent = exponent_of(scales.iter().fold(0.0, |max: f64, s| max.max(*s)), SCALE_BITS);
        let step = libm::exp2(f64::from(exponent));
        let scales: Vec<i64> = scales.iter().map(|s| ((s * step).round_ties_even() as i64).max(1)).collect();
        let parts = parts(matrix.columns(), columns.together);
        let mut mantissas: Vec<Vec<i16>> = vec![Vec::new(); parts.len()];
        let mut rounded = Vec::with_capacity(columns_of_row);
        for (row, scale) in matrix.values().chunks(columns_of_row).zip(&scales) {
            let by = unit * step / *scale as f64;
            rounded.clear();
            rounded.extend(smoothed(row).map(|w| (w * by) as f32));
            columns.rounding.round(&mut rounded, limit as f32);
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
    fn vector(&mut self, name: &str, factor: f64, finest: i16) -> Result<(), QuantizeError> {
        let matrix = self.weights.get(name)?;
        let values: Vec<f64> = floats(matrix).iter().map(|x| x * factor).collect();
        self.fixed(name, &[matrix.columns()], &values, finest)
    }

    fn fixed(&mut self, name: &str, dims: &[u32], values: &[f64], finest: i16) -> Result<(), QuantizeError> {
        let largest = values.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
        let exponent = exponent_of(largest, VECTOR_BITS).min(finest);
        let step = libm::exp2(f64::from(exponent));
        let mantissas: Vec<i64> = values.iter().map(|x| (x * step).round_ties_even() as i64).collect();
        self.keep(name, TensorType::new(VECTOR_BITS, exponent, dims), &mantissas)
    }

    fn norm(&mut self, a: &Architecture, name: &str) -> Result<(), QuantizeError> {
        self.norm_of(name, a.norm, a.width)
    }

    /// Gain times `√length` (rule N-28) and bias; zeros where the norm has none.
    fn norm_of(&mut self, name: &str, norm: Norm, length: u32) -> Result<(), QuantizeError> {
        let gain = format!("{name}.gain");
        self.vector(&gain, libm::sqrt(f64::from(length)), i16::MAX)?;
        // The bias is added to products of normalised element and gain, and may not be finer than they are.
        let product = self.constants.get(&gain).map_or(0, |gain| gain.ty().exponent()).saturating_add(NORM_EXPONENT);
        let bias = format!("{name}.bias");
        match norm {
            Norm::Layer => self.vector(&bias, 1.0, product),
            Norm::Rms => self.keep(&bias, TensorType::new(2, 0, &[length]), &vec![0; length as usize]),
        }
    }

    fn rotary(&mut self, rotary: &Rotary, context: u32) -> Result<(), QuantizeError> {
        let frequencies = rotary.frequencies();
        let step = libm::exp2(f64::from(ROTARY_EXPONENT)) * rotary.amplitude();
        let mut values = Vec::with_capacity(context as usize * rotary.width as usize);
        for place in 0..context {
            let angles = || frequencies.iter().map(|f| f * f64::from(place));
            values.extend(angles().map(|angle| (libm::cos(angle) * step).round_ties_even() as i64));
            values.extend(angles().map(|angle| (libm::sin(angle) * step).round_ties_even() as i64));
        }
        let ty = TensorType::new(VECTOR_BITS, ROTARY_EXPONENT, &[context, rotary.width]);
        self.keep("embedding.rotary", ty, &values)
    }

    /// A function over everything a 16-bit input of this exponent can be.
    fn table(&mut self, name: &str, function: tables::Function, exponent: i16) -> Result<(), QuantizeError> {
        let range = i16::from(VECTOR_BITS).saturating_sub(1).saturating_sub(exponent);
        let cell = range.saturating_add(1).saturating_sub(TABLE_LOG as i16);
        let grid = tables::Grid { first: -(1 << (TABLE_LOG - 1)), cell, log: TABLE_LOG };
        let reach = i16::from(TABLE_BITS).saturating_sub(2).saturating_sub(range.max(0));
        let source = |source| QuantizeError::Table { name: name.to_owned(), source };
        let table = tables::function_table(function, grid, TABLE_BITS, reach).map_err(source)?;
        self.constants.insert(name.to_owned(), table);
        Ok(())
    }
}

fn floats(matrix: &Matrix) -> Vec<f64> {
    matrix.values().iter().map(|x| f64::from(*x)).collect()
}

/// Largest exponent at which `largest` still has `bits` bits.
fn exponent_of(largest: f64, bits: u8) -> i16 {
    let exponent = super::sites::exponent(largest, bits);
    // Rounding up must not leave the range: 32767.6 is no 16-bit mantissa.
    let limit = libm::exp2(f64::from(bits) - 1.0) - 1.0;
    if (largest * libm::exp2(f64::from(exponent))).round_ties_even() > limit {
        exponent.saturating_sub(1)
    } else {
        exponent
    }
}
