//! A float model as integers: 8-bit weights with a scale for each channel, vectors and tables, and an exponent for each
//! activation.
//!
//! A channel's weights are `m · 2^−7 · c · 2^−e`: mantissas of 8 bits, an integer scale `c` for each row, one exponent for all
//! scales. Activations have static exponents, from what calibration saw; where they enter a matrix product they are
//! quantised once more, by a scale for each token that the program itself computes.

use std::collections::BTreeMap;
use std::ops::Range;

use tensorlink_num::tables::{self, exp2_table};
use tensorlink_num::{Mantissas, Tensor, TensorError};
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{TensorRoot, TensorType, TypeError};
use thiserror::Error;

use super::architecture::{Activation, Architecture, Norm, Output, Placement, Pooling, Positions, Rotary};
use super::emit::NORM_EXPONENT;
use super::parameters::{Matrix, Weights, WeightsError};
use super::plan::{Plan, PlanError};
use super::sites::Sites;

/// Bits of a weight.
pub(super) const WEIGHT_BITS: u8 = 8;
/// Bits of a channel's scale: with those of a token's, products over 4096 elements stay below 2^62.
const SCALE_BITS: u8 = 18;
/// Bits of gains, biases and positions.
pub(super) const VECTOR_BITS: u8 = 16;
/// Bits of a Lookup's table and `log2` of its cells.
const TABLE_BITS: u8 = 26;
const TABLE_LOG: u32 = 12;
/// Exponent of the rotary table.
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

/// A model in integers, ready to be cut into stages.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantized {
    architecture: Architecture,
    sites: Sites,
    constants: BTreeMap<String, Tensor>,
}

impl Quantized {
    /// Quantises a model; `largest` is the largest magnitude that calibration saw at each site.
    ///
    /// # Errors
    /// [`QuantizeError`].
    pub fn new(
        architecture: Architecture,
        weights: &Weights,
        largest: BTreeMap<String, f64>,
    ) -> Result<Self, QuantizeError> {
        let sites = Sites::new(largest);
        let mut made = Made { weights, constants: BTreeMap::new() };
        made.embedding(&architecture)?;
        for layer in 0..architecture.layers {
            made.layer(&architecture, &sites, layer)?;
        }
        made.head(&architecture)?;
        Ok(Self { constants: made.constants, architecture, sites })
    }

    /// The architecture.
    pub const fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Bytes of all constants.
    pub fn bytes(&self) -> u64 {
        self.constants.values().map(|tensor| tensor.ty().byte_len()).sum()
    }

    /// The stage of some layers, and the contents of its constants; `root` commits to a tensor. The stage with the first
    /// layer embeds tokens, that with the last gives the output.
    ///
    /// # Errors
    /// [`PlanError`] for layers that the model does not have, or if calibration missed a site.
    pub fn stage(
        &self,
        layers: Range<u32>,
        root: impl Fn(&Tensor) -> TensorRoot,
    ) -> Result<(Plan, Vec<Tensor>), PlanError> {
        let types: BTreeMap<&str, &TensorType> =
            self.constants.iter().map(|(name, tensor)| (name.as_str(), tensor.ty())).collect();
        let used = Plan::constants_of(&self.architecture, &self.sites, &layers, &types)?;
        let mut tensors = Vec::with_capacity(used.len());
        let mut slots = Vec::with_capacity(used.len());
        for name in used {
            let Some(tensor) = self.constants.get(&name) else { return Err(PlanError::Constant(name)) };
            slots.push(ConstantSlot { name, ty: tensor.ty().clone(), root: root(tensor) });
            tensors.push(tensor.clone());
        }
        Ok((Plan::new(self.architecture.clone(), self.sites.clone(), layers, slots), tensors))
    }
}

/// Constants made so far.
struct Made<'a> {
    weights: &'a Weights,
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
        self.matrix("embedding.tokens")?;
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

    fn layer(&mut self, a: &Architecture, sites: &Sites, layer: u32) -> Result<(), QuantizeError> {
        let name = |part: &str| format!("layers.{layer}.{part}");
        self.norm(a, &name("attention.norm"))?;
        for part in ["query", "key", "value", "output"] {
            let bias = if part == "output" { a.output_bias } else { a.attention_bias };
            self.projection(&name(&format!("attention.{part}")), bias)?;
        }
        if a.query_key_norm {
            for part in ["attention.query_norm", "attention.key_norm"] {
                self.norm_of(&name(part), Norm::Rms, a.head_width)?;
            }
        }
        self.norm(a, &name("mlp.norm"))?;
        let gate: &[&str] = if a.gated { &["gate"] } else { &[] };
        for part in gate.iter().chain(&["up", "down"]) {
            self.projection(&name(&format!("mlp.{part}")), a.mlp_bias)?;
        }
        let function = match a.activation {
            Activation::Gelu => tables::Function::Gelu,
            Activation::GeluTanh => tables::Function::GeluTanh,
            Activation::Silu => tables::Function::Silu,
            Activation::Relu => return Ok(()),
        };
        let input = name(if a.gated { "mlp.gate" } else { "mlp.up" });
        let exponent = sites.exponent(&input, VECTOR_BITS).map_err(PlanError::from)?;
        self.table(&name("mlp.activation"), function, exponent)
    }

    fn head(&mut self, a: &Architecture) -> Result<(), QuantizeError> {
        if a.placement == Placement::Before {
            self.norm(a, "final.norm")?;
        }
        match a.output {
            Output::Logits { tied: true } => Ok(()),
            Output::Logits { tied: false } => self.matrix("head.weight"),
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

    fn projection(&mut self, name: &str, bias: bool) -> Result<(), QuantizeError> {
        self.matrix(&format!("{name}.weight"))?;
        if bias {
            self.vector(&format!("{name}.bias"), 1.0, i16::MAX)?;
        }
        Ok(())
    }

    /// A matrix by rows: `name` and `name.scale`.
    fn matrix(&mut self, name: &str) -> Result<(), QuantizeError> {
        let matrix = self.weights.get(name)?;
        let columns = matrix.columns() as usize;
        let limit = 127.0;
        let unit = 128.0;
        // The scale of a row whose largest element becomes 127/128.
        let scales: Vec<f64> = matrix.values().chunks(columns).map(|row| largest(row) * unit / limit).collect();
        let exponent = exponent_of(scales.iter().fold(0.0, |max: f64, s| max.max(*s)), SCALE_BITS);
        let step = libm::exp2(f64::from(exponent));
        let scales: Vec<i64> = scales.iter().map(|s| (libm::rint(s * step) as i64).max(1)).collect();
        let mut mantissas: Vec<i8> = Vec::with_capacity(matrix.values().len());
        for (row, scale) in matrix.values().chunks(columns).zip(&scales) {
            let by = unit * step / *scale as f64;
            mantissas.extend(row.iter().map(|x| libm::rint(f64::from(*x) * by).clamp(-limit, limit) as i8));
        }
        let named = |source| QuantizeError::Type { name: name.to_owned(), source };
        let ty = TensorType::new(WEIGHT_BITS, 7, &[matrix.rows(), matrix.columns()]).map_err(named)?;
        let tensor = Tensor::new(ty, Mantissas::I8(mantissas))
            .map_err(|source| QuantizeError::Tensor { name: name.to_owned(), source })?;
        self.constants.insert(name.to_owned(), tensor);
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
        let mantissas: Vec<i64> = values.iter().map(|x| libm::rint(x * step) as i64).collect();
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
        let step = libm::exp2(f64::from(ROTARY_EXPONENT));
        let mut values = Vec::with_capacity(context as usize * rotary.width as usize);
        for place in 0..context {
            let angles = || frequencies.iter().map(|f| f * f64::from(place));
            values.extend(angles().map(|angle| libm::rint(libm::cos(angle) * step) as i64));
            values.extend(angles().map(|angle| libm::rint(libm::sin(angle) * step) as i64));
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

fn largest(row: &[f32]) -> f64 {
    f64::from(row.iter().fold(0.0, |max: f32, x| max.max(x.abs())))
}

/// Largest exponent at which `largest` still has `bits` bits.
fn exponent_of(largest: f64, bits: u8) -> i16 {
    let exponent = super::sites::exponent(largest, bits);
    // Rounding up must not leave the range: 32767.6 is no 16-bit mantissa.
    let limit = libm::exp2(f64::from(bits) - 1.0) - 1.0;
    if libm::rint(largest * libm::exp2(f64::from(exponent))) > limit { exponent.saturating_sub(1) } else { exponent }
}
