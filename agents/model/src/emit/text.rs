//! What is given of a whole text: one vector of its tokens', what dense layers make of it, the logits of its classes.

use tensorlink_num::bounds::norm_exponent;
use tensorlink_types::Opcode;

use super::{Emitter, STREAM_BITS, Value, WORD_BITS, exponents};
use crate::architecture::{Curve, Dense, Pooling};
use crate::inputs::Input;
use crate::plan::error::PlanError;

/// Bits of tokens' vectors times their places.
const WEIGHTED_BITS: u8 = 32;
/// Exponent of an embedding: elements of a unit vector.
const EMBEDDING_EXPONENT: i16 = 15;
/// Fraction bits of what a sum over tokens is multiplied by.
const PART_BITS: i16 = 23;

impl Emitter<'_> {
    /// One unit vector of the text.
    pub(crate) fn vector(&mut self, x: &Value, pooling: Pooling) -> Result<Value, PlanError> {
        let x = self.last_norm(x)?;
        let (mut vector, times) = self.pooled(&x, pooling)?;
        // Without layers the length is normalised away.
        if !self.architecture.dense.is_empty() {
            vector = self.divided(&vector, times)?;
        }
        let vector = self.layers(vector)?;
        let (gain, bias) = (self.constant("output.gain")?, self.constant("output.bias")?);
        let to = self.ty("output", WORD_BITS, EMBEDDING_EXPONENT, vector.ty.dims())?;
        let accumulator = norm_exponent(vector.ty.bits()) + exponents(&[&gain]);
        let (bias_shift, shift) = (accumulator - exponents(&[&bias]), accumulator - i64::from(EMBEDDING_EXPONENT));
        let attributes = vec![0, 1, bias_shift, shift];
        Ok(self.push("output", Opcode::Norm, &[&vector, &gain, &bias], attributes, to))
    }

    /// The logits of a text's classes, `[1, classes]`: of the first token's vector, by BERT's pooler.
    pub(crate) fn classes(&mut self, x: &Value) -> Result<Value, PlanError> {
        let x = self.last_norm(x)?;
        let first = self.first(&x)?;
        self.layers(first)
    }

    /// The layers that a text's vector goes through.
    fn layers(&mut self, mut vector: Value) -> Result<Value, PlanError> {
        for (name, layer) in self.architecture.text_layers() {
            vector = self.dense(&name, &vector, layer)?;
        }
        Ok(vector)
    }

    /// One vector of the tokens', `[1, width]`, and how many times too long it is.
    fn pooled(&mut self, x: &Value, pooling: Pooling) -> Result<(Value, f64), PlanError> {
        let tokens = f64::from(self.tokens);
        let one = self.ty("output", STREAM_BITS, x.ty.exponent(), &[1, self.architecture.width])?;
        Ok(match pooling {
            Pooling::First => (self.first(x)?, 1.0),
            Pooling::Last => {
                let (columns, last) = (self.columns(x)?, self.constant("output.last")?);
                (self.push("output.picked", Opcode::RowPick, &[&columns, &last], vec![], one), 1.0)
            }
            Pooling::Max => {
                let columns = self.columns(x)?;
                (self.push("output.max", Opcode::RowMax, &[&columns], vec![0], one), 1.0)
            }
            Pooling::WeightedMean => (self.weighted(x)?, tokens * (tokens + 1.0) / 2.0),
            Pooling::Mean => (self.sum(x)?, tokens),
            Pooling::RootMean => (self.sum(x)?, libm::sqrt(tokens)),
        })
    }

    /// The first token's vector.
    fn first(&mut self, x: &Value) -> Result<Value, PlanError> {
        let (ones, first) = (self.constant("output.ones")?, self.constant("output.first")?);
        let to = self.ty("output", STREAM_BITS, x.ty.exponent(), &[1, self.architecture.width])?;
        Ok(self.gather("output.first", x, &ones, &first, to))
    }

    /// The sum of the tokens' vectors, as much coarser as the least power of two that is not less than their number.
    fn sum(&mut self, x: &Value) -> Result<Value, PlanError> {
        let columns = self.columns(x)?;
        let shift = log(self.tokens.into());
        let to =
            self.ty("output", STREAM_BITS, x.ty.exponent().saturating_sub(shift), &[1, self.architecture.width])?;
        Ok(self.push("output.sum", Opcode::RowSum, &[&columns], vec![shift.into()], to))
    }

    /// The sum of the tokens' vectors, each times its place from 1 on, as much coarser as the least power of two that
    /// is not less than the sum of the places: `[1, width]`.
    fn weighted(&mut self, x: &Value) -> Result<Value, PlanError> {
        let (weights, places) = (self.constant("output.weights")?, self.constant("output.places")?);
        let (tokens, exponent) = (u64::from(self.tokens), x.ty.exponent());
        let all = log(tokens.saturating_mul(tokens.saturating_add(1)).wrapping_div(2));
        // As fine as the wider type allows.
        let coarser =
            log(tokens.saturating_add(1)).saturating_sub(WEIGHTED_BITS.saturating_sub(STREAM_BITS).into()).max(0);
        let to = self.ty("output", WEIGHTED_BITS, exponent.saturating_sub(coarser), x.ty.dims())?;
        let rows = self.gather("output.weighted", x, &weights, &places, to);
        let columns = self.columns(&rows)?;
        let to = self.ty("output", STREAM_BITS, exponent.saturating_sub(all), &[1, self.architecture.width])?;
        let shift = i64::from(all.saturating_sub(coarser));
        Ok(self.push("output.sum", Opcode::RowSum, &[&columns], vec![shift], to))
    }

    /// Rows that are the columns of the tokens' vectors.
    fn columns(&mut self, x: &Value) -> Result<Value, PlanError> {
        let turned = self.ty("output", x.ty.bits(), x.ty.exponent(), &[self.architecture.width, self.tokens])?;
        Ok(self.push("output.transposed", Opcode::Transpose, &[x], vec![], turned))
    }

    /// `x` over a number that is not less than 1, as much finer as its power of two.
    fn divided(&mut self, x: &Value, by: f64) -> Result<Value, PlanError> {
        // SAFETY of the casts: they saturate, and the checker bounds attributes.
        let finer = libm::floor(libm::log2(by)) as i16;
        let multiplier = libm::rint(libm::exp2(f64::from(PART_BITS.saturating_add(finer))) / by) as i64;
        let to = self.ty("output", x.ty.bits(), x.ty.exponent().saturating_add(finer), x.ty.dims())?;
        Ok(self.push("output.mean", Opcode::Scale, &[x], vec![multiplier, PART_BITS.into()], to))
    }

    /// A dense layer on a text's vector: `[1, inputs]` to `[1, outputs]`.
    fn dense(&mut self, name: &str, x: &Value, Dense { bias, curve, .. }: Dense) -> Result<Value, PlanError> {
        let x = self.quantise(&format!("{name}.input"), Input::Text, x)?;
        let y = self.projection(name, &x, bias, STREAM_BITS)?;
        let table = format!("{name}.curve");
        match curve {
            Curve::Identity => Ok(y),
            Curve::Tanh | Curve::Sigmoid => self.curve(&format!("{name}.activated"), &table, &y),
            Curve::Gate(activation) => self.activated(name, (activation, &table), &y),
        }
    }
}

/// The exponent of the least power of two that is not less than a count.
fn log(count: u64) -> i16 {
    i16::try_from(count.next_power_of_two().trailing_zeros()).unwrap_or(i16::MAX)
}
