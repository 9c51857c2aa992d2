//! A float model as integers: weights with a scale for each channel, vectors and tables, and an exponent for
//! each activation.
//!
//! A channel's weights are `m · 2^−7 · c · 2^−e`: mantissas of 8 bits (16 in the setting `reference`, and in an
//! embedding that is only looked up), an integer scale `c` for each row, one exponent for all scales. Activations have
//! static exponents, from what calibration saw; where they enter a matrix product, each token's row is shifted, as far
//! as the program itself finds.

mod constants;
mod error;

use std::collections::BTreeMap;

use tensorlink_num::Tensor;
use tensorlink_num::tables::{exp2_table, gumbel_table};
use tensorlink_types::{TensorType, TypeError};

use self::constants::floats;
pub use self::error::QuantizeError;

use super::architecture::{Architecture, Curve, Dense, Norm, Output, Placement, Pooling, Positions};
use super::parameters::Weights;
use super::quantized::Quantized;
use super::rounding::Rounding;
use super::setting::Setting;
use super::sites::Magnitudes;

/// Bits of an embedding that multiplies nothing.
const EMBEDDING_BITS: u8 = 16;
/// Bits of a channel's scale: products of words over 4096 elements, scaled, stay below 2^62.
const SCALE_BITS: u8 = 18;
/// Bits of gains, biases and positions.
const VECTOR_BITS: u8 = 16;
/// Bits of a Lookup's table.
const TABLE_BITS: u8 = 26;
/// Exponent of the rotary table: amplitudes below 2.
const ROTARY_EXPONENT: i16 = 14;
/// Exponent of the unit gain that ends an embedding.
const UNIT_EXPONENT: i16 = 14;

impl Quantized {
    /// Quantises a model by the magnitudes that calibration saw.
    ///
    /// # Errors
    /// [`QuantizeError`].
    pub fn new(
        architecture: Architecture,
        setting: Setting,
        weights: &Weights,
        seen: &Magnitudes,
    ) -> Result<Self, QuantizeError> {
        if let Some(site) = seen.overflown() {
            return Err(QuantizeError::Overflow { site: site.to_owned() });
        }
        let mut made = Made { weights, seen, bits: setting.weight_bits(), constants: BTreeMap::new() };
        made.embedding(&architecture)?;
        for layer in 0..architecture.layers {
            made.layer(&architecture, layer)?;
        }
        made.head(&architecture)?;
        Ok(Self { constants: made.constants, architecture, setting, sites: seen.sites() })
    }
}

/// Constants made so far.
struct Made<'a> {
    weights: &'a Weights,
    seen: &'a Magnitudes,
    /// Of a weight.
    bits: u8,
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
        if a.output == (Output::Logits { tied: true }) {
            // Rows that are output weights as well: that is where their errors count most.
            let rounding = Rounding::new(self.seen.products("final.norm"), a.width);
            self.matrix("embedding.tokens", self.bits, &rounding)?;
        } else {
            self.matrix("embedding.tokens", EMBEDDING_BITS, &Rounding::none())?;
        }
        if let Positions::Learned { first } = a.positions {
            // A text that comes alone is number 0 of its pair: that vector is the same for every token.
            let mut positions: Vec<f64> = floats(self.weights.get("embedding.positions")?);
            if a.token_types && !a.pairs {
                let ty = floats(self.weights.get("embedding.type")?);
                positions.iter_mut().zip(ty.iter().cycle()).for_each(|(p, t)| *p += t);
            }
            let rows = first.saturating_add(a.context);
            self.fixed("embedding.positions", &[rows, a.width], &positions, i16::MAX)?;
            self.keep("embedding.positions.scale", TensorType::new(2, 0, &[rows]), &vec![1; rows as usize])?;
            let places: Vec<i64> = (i64::from(first)..i64::from(rows)).collect();
            self.keep("embedding.places", TensorType::new(32, 0, &[a.context]), &places)?;
        }
        if a.pairs {
            self.pairs(a)?;
        }
        if a.placement == Placement::After {
            self.norm(a, "embedding.norm")?;
        }
        if let Positions::Rotary(rotary) = &a.positions {
            self.rotary("embedding.rotary", rotary, a.context)?;
        }
        if let Some(local) = &a.local {
            self.rotary("embedding.rotary.local", &local.rotary, a.context)?;
            if local.window < a.context {
                self.window(local.window, a.context)?;
            }
        }
        let source = |source| QuantizeError::Table { name: "exp2".to_owned(), source };
        let exp2 = exp2_table().map_err(source)?;
        self.constants.insert("exp2".to_owned(), exp2);
        self.curve("activation", Curve::Gate(a.activation))
    }

    /// Of every number that a token may have, its number in the vocabulary and the text that it is of; the texts'
    /// vectors.
    fn pairs(&mut self, a: &Architecture) -> Result<(), QuantizeError> {
        let (words, texts) = (0..i64::from(a.vocabulary), 0..2i64);
        let numbers: Vec<(i64, i64)> = texts.flat_map(|text| words.clone().map(move |word| (word, text))).collect();
        let (words, texts): (Vec<i64>, Vec<i64>) = numbers.into_iter().unzip();
        let count = a.token_numbers();
        self.keep("embedding.pair.words", TensorType::new(32, 0, &[count, 1]), &words)?;
        self.keep("embedding.pair.texts", TensorType::new(2, 0, &[count, 1]), &texts)?;
        self.keep("embedding.pair.ones", TensorType::new(2, 0, &[count]), &vec![1; count as usize])?;
        let vectors = floats(self.weights.get("embedding.type")?);
        self.fixed("embedding.type", &[2, a.width], &vectors, i16::MAX)
    }

    fn layer(&mut self, a: &Architecture, layer: u32) -> Result<(), QuantizeError> {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let before = a.placement.before();
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
        self.projections(layer, &attended, &looked_up, a.attention_bias)?;
        self.projections(layer, &name("attention.mixed"), &["attention.output"], a.output_bias)?;
        if a.query_key_norm {
            for part in ["attention.query_norm", "attention.key_norm"] {
                self.norm_of(&name(part), Norm::Rms, a.head_width)?;
            }
        }
        if a.placement == Placement::Around {
            self.norm(a, &name("attention.output_norm"))?;
            self.norm(a, &name("mlp.output_norm"))?;
        }
        self.norm(a, &name("mlp.norm"))?;
        self.projections(layer, &mapped, first, a.mlp_bias)?;
        self.projections(layer, &name(inner), &["mlp.down"], a.mlp_bias)
    }

    /// Projections of one input, which calibration saw at `site`.
    fn projections(&mut self, layer: u32, site: &str, parts: &[&str], bias: bool) -> Result<(), QuantizeError> {
        let names: Vec<String> = parts.iter().map(|part| format!("layers.{layer}.{part}")).collect();
        let Some(first) = names.first() else { return Ok(()) };
        let rounding = self.rounding(first, site)?;
        names.iter().try_for_each(|name| self.projection(name, bias, &rounding))
    }

    /// How the weights of a projection are rounded, whose input calibration saw at `site`.
    fn rounding(&self, name: &str, site: &str) -> Result<Rounding, QuantizeError> {
        let columns = self.weights.get(&format!("{name}.weight"))?.columns();
        Ok(Rounding::new(self.seen.products(site), columns))
    }

    fn projection(&mut self, name: &str, bias: bool, rounding: &Rounding) -> Result<(), QuantizeError> {
        self.matrix(&format!("{name}.weight"), self.bits, rounding)?;
        if bias { self.vector(&format!("{name}.bias"), 1.0, i16::MAX) } else { Ok(()) }
    }

    fn head(&mut self, a: &Architecture) -> Result<(), QuantizeError> {
        if a.placement.before() {
            self.norm(a, "final.norm")?;
        }
        if let Output::Logits { .. } = a.output {
            let source = |source| QuantizeError::Table { name: "gumbel".to_owned(), source };
            self.constants.insert("gumbel".to_owned(), gumbel_table().map_err(source)?);
        }
        for (name, layer) in a.text_layers() {
            self.dense(&name, layer)?;
        }
        match a.output {
            Output::Logits { tied: true } => Ok(()),
            Output::Classes(_) => self.first(a),
            Output::Logits { tied: false } => {
                let rounding = Rounding::new(self.seen.products("final.norm"), a.width);
                self.matrix("head.weight", self.bits, &rounding)
            }
            Output::Embedding(pooling) => {
                if pooling == Pooling::First {
                    self.first(a)?;
                }
                if pooling == Pooling::Last {
                    // Beyond any text but the longest: the last place that there is is taken (rule N-33).
                    let last = i64::from(a.context).saturating_sub(1);
                    self.keep("output.last", TensorType::new(32, 0, &[a.width]), &vec![last; a.width as usize])?;
                }
                if pooling == Pooling::WeightedMean {
                    let places: Vec<i64> = (0..a.context.into()).collect();
                    let weights: Vec<i64> = places.iter().map(|place| place.saturating_add(1)).collect();
                    self.keep("output.places", TensorType::new(32, 0, &[a.context]), &places)?;
                    self.keep("output.weights", TensorType::new(VECTOR_BITS, 0, &[a.context]), &weights)?;
                }
                let (width, count) = (a.vector_width(), a.vector_width() as usize);
                let gain = vec![1 << UNIT_EXPONENT; count];
                self.keep("output.gain", TensorType::new(VECTOR_BITS, UNIT_EXPONENT, &[width]), &gain)?;
                self.keep("output.bias", TensorType::new(2, UNIT_EXPONENT, &[width]), &vec![0; count])
            }
        }
    }

    /// What picks the first token's row.
    fn first(&mut self, a: &Architecture) -> Result<(), QuantizeError> {
        self.keep("output.first", TensorType::new(32, 0, &[1]), &[0])?;
        self.keep("output.ones", TensorType::new(2, 0, &[a.context]), &vec![1; a.context as usize])
    }

    /// A dense layer on a text's vector.
    fn dense(&mut self, name: &str, Dense { bias, curve, .. }: Dense) -> Result<(), QuantizeError> {
        let rounding = self.rounding(name, &format!("{name}.input"))?;
        self.projection(name, bias, &rounding)?;
        self.curve(&format!("{name}.curve"), curve)
    }
}
