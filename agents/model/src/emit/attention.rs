//! Attention between queries, keys and values: scores, softmax, mixing.

use tensorlink_num::bounds::{EXP_BITS, EXP_EXPONENT};
use tensorlink_types::Opcode;

use super::window::WINDOW_EXPONENT;
use super::{Emitter, STREAM_BITS, Value, WORD_BITS, exponents};
use crate::plan::error::PlanError;

/// Bits and exponent of softmax sums and of probabilities.
const SUM_BITS: u8 = 32;
const SUM_EXPONENT: i16 = 16;
const PROBABILITY_EXPONENT: i16 = 15;

impl Emitter<'_> {
    /// How much of every token each token takes, `heads × tokens × keys`.
    pub(super) fn weighed(&mut self, layer: u32, query: &Value, key: &Value, causal: i64) -> Result<Value, PlanError> {
        let name = |part: &str| format!("layers.{layer}.attention.{part}");
        let heads = self.architecture.heads;
        let rows = |x: &Value| u32::try_from(x.ty.rows()).unwrap_or(u32::MAX);
        let dims = [heads, rows(query), rows(key)];
        let to = self.activation(&name("scores"), WORD_BITS, &dims)?;
        let to = match self.architecture.local(layer) {
            Some(_) => self.ty(&name("scores"), WORD_BITS, to.exponent().min(WINDOW_EXPONENT), &dims)?,
            None => to,
        };
        let shift = exponents(&[query, key]) - i64::from(to.exponent());
        let scores = self.push(&name("scores"), Opcode::HeadScores, &[query, key], vec![heads.into(), shift], to);
        let scores = self.within_window(layer, scores)?;
        self.softmax(&name("softmax"), &scores, causal)
    }

    /// What each token takes of the values, which are transposed.
    pub(super) fn mix(&mut self, layer: u32, probabilities: &Value, value: &Value) -> Result<Value, PlanError> {
        let site = format!("layers.{layer}.attention.mixed");
        let (heads, width) = (self.architecture.heads, self.architecture.query_width());
        let to = self.activation(&site, STREAM_BITS, &[self.tokens, width])?;
        let shift = exponents(&[probabilities, value]) - i64::from(to.exponent());
        Ok(self.push(&site, Opcode::HeadMix, &[probabilities, value], vec![heads.into(), shift], to))
    }

    /// Softmax over rows, of scores that are not divided yet.
    fn softmax(&mut self, name: &str, scores: &Value, causal: i64) -> Result<Value, PlanError> {
        let dims = scores.ty.dims().to_vec();
        let rows = dims.get(..dims.len().saturating_sub(1)).unwrap_or(&dims).to_vec();
        let part = |part: &str| format!("{name}.{part}");
        let to = self.ty(name, scores.ty.bits(), scores.ty.exponent(), &rows)?;
        let max = self.push(&part("max"), Opcode::RowMax, &[scores], vec![causal], to);
        let powers = self.powers(&part("exp"), scores, &max, (self.architecture.score_divisor(), causal))?;
        let to = self.ty(name, SUM_BITS, SUM_EXPONENT, &rows)?;
        let shift = i64::from(EXP_EXPONENT - SUM_EXPONENT);
        let sum = self.push(&part("sum"), Opcode::RowSum, &[&powers], vec![shift], to);
        let to = self.ty(name, WORD_BITS, PROBABILITY_EXPONENT, &dims)?;
        let bits = i64::from(PROBABILITY_EXPONENT - EXP_EXPONENT + SUM_EXPONENT);
        Ok(self.push(name, Opcode::Normalize, &[&powers, &sum], vec![bits], to))
    }

    /// `exp(−(max − x)/divisor)`.
    pub(super) fn powers(
        &mut self,
        name: &str,
        x: &Value,
        max: &Value,
        (divisor, causal): (f64, i64),
    ) -> Result<Value, PlanError> {
        // exp(−z/divisor) = 2^(−z·log2(e)/divisor): the argument has 16 fraction bits.
        let factor = std::f64::consts::LOG2_E / divisor;
        let digits = (22i64).saturating_sub(libm::ceil(libm::log2(factor)) as i64);
        let multiplier = libm::rint(factor * libm::exp2(digits as f64)) as i64;
        let input_shift = i64::from(x.ty.exponent()).saturating_add(digits).saturating_sub(16);
        let table = self.constant("exp2")?;
        let to = self.ty(name, EXP_BITS, EXP_EXPONENT, x.ty.dims())?;
        Ok(self.push(name, Opcode::ExpNeg, &[x, max, &table], vec![multiplier, input_shift, causal], to))
    }
}
