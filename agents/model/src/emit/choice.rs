//! The choice of the next token: a sample of the softmax of its logits, among the likeliest (rules N-32 to N-37).
//!
//! A row of a vocabulary is longer than one operator may reduce, so it is searched in equal parts. Logits have 16 bits:
//! the threshold below which no token is chosen is found bit by bit, as a number that counts from the least logit on.

use tensorlink_num::bounds::{self, CHOICE_BITS, EXP_EXPONENT};
use tensorlink_program::scale::equal_parts;
use tensorlink_types::{Opcode, Source, TensorType};

use super::{Emitter, LOGIT_BITS, Value, exponents};
use crate::choice::{CONTROLS, DISTANCE, DISTANCE_BITS, TEMPERATURE, TEMPERATURE_BITS};
use crate::plan::error::PlanError;

/// Bits of controls, thresholds, sums and perturbed logits.
const WIDE_BITS: u8 = 32;
/// `log2` of the numbers of exponent 24, none above 1, whose sum 32 bits hold.
const SUMMED: u32 = 6;
/// What the threshold of a number of tokens counts from: below the least logit.
const LOWEST: i64 = -(1 << (LOGIT_BITS - 1));
/// Below any logit, whatever the threshold; and above.
const EVERYTHING: i64 = -(1 << 39);
const NOTHING: i64 = 1 << 39;
/// Places that each of two divisions by a temperature adds: over the least, 1 still has 32 bits.
const INVERSE_PLACES: i16 = 15;
/// Logits over a temperature: as many bits as ExpNeg takes, at most so many fraction bits, and so many more than logits
/// have: over the least temperature they still fit.
const TEMPERED_BITS: u8 = 39;
const TEMPERED_FINEST: i16 = 16;
const TEMPERED_EXTRA: i16 = 11;
/// Perturbed logits: at most so many fraction bits, and so many more than logits have.
const FINEST: i16 = 20;
const EXTRA: i16 = 15;

impl Emitter<'_> {
    /// What the text's owner says about each token's choice.
    pub(crate) fn controls(&self) -> Result<TensorType, PlanError> {
        self.ty("controls", WIDE_BITS, 0, &[self.tokens(), u32::try_from(CONTROLS).unwrap_or(u32::MAX)])
    }

    /// The first columns of the controls, which operators take.
    fn taken_controls(&mut self) -> Result<Value, PlanError> {
        self.columns_of_controls("choice.controls", 0, bounds::CONTROLS)
    }

    /// A column of the controls: a number for each token.
    pub(super) fn column(&mut self, name: &str, place: usize) -> Result<Value, PlanError> {
        self.columns_of_controls(name, place, 1)
    }

    fn columns_of_controls(&mut self, name: &str, first: usize, count: u64) -> Result<Value, PlanError> {
        let controls = Value { source: Source::FromNext(0), ty: self.controls()? };
        let to = self.ty(name, WIDE_BITS, 0, &[self.tokens, u32::try_from(count).unwrap_or(u32::MAX)])?;
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        Ok(self.push(name, Opcode::Slice, &[&controls], vec![first], to))
    }

    /// Numbers of the tokens that follow, given logits.
    pub(crate) fn choice(&mut self, logits: &Value) -> Result<Value, PlanError> {
        let search = self.search(logits)?;
        let controls = self.taken_controls()?;
        let threshold = self.threshold(&search, logits, &controls)?;
        let exponent = logits.ty.exponent();
        let finest = exponent.saturating_add(EXTRA).min(FINEST).max(exponent);
        let to = self.ty("choice.perturbed", WIDE_BITS, finest, logits.ty.dims())?;
        let attributes = vec![0, bounds::PERTURB_EXPONENT.saturating_sub(finest.into())];
        let table = self.constant("gumbel")?;
        let operands = [logits, &threshold, &controls, &table];
        let perturbed = self.push("choice.perturbed", Opcode::Perturb, &operands, attributes, to);
        self.first_largest(&search, &perturbed, &controls)
    }

    /// What [`Self::choice`] gives for tokens of which none has a temperature, by their logits alone. The largest logit
    /// reaches every threshold, for none beyond it is reached by a token; and logits keep their order in Perturb,
    /// because they only gain fraction bits there. So the first of the largest is chosen.
    pub(crate) fn likeliest(&mut self, logits: &Value) -> Result<Value, PlanError> {
        let search = self.search(logits)?;
        let controls = self.taken_controls()?;
        self.first_largest(&search, logits, &controls)
    }

    /// How rows of logits are searched.
    fn search(&self, logits: &Value) -> Result<Search, PlanError> {
        let vocabulary = logits.ty.row();
        let parts = equal_parts(vocabulary);
        let parts = parts.ok_or(PlanError::Unsupported("a vocabulary that has no equal parts of 4096 or less"))?;
        Ok(Search { tokens: self.tokens(), parts, length: vocabulary.checked_div(parts.into()).unwrap_or(1) })
    }

    /// The first of the largest of each row whose controls want one.
    fn first_largest(&mut self, search: &Search, x: &Value, controls: &Value) -> Result<Value, PlanError> {
        let (place, best) = self.largest("choice", search, x)?;
        let to = self.ty("choice", CHOICE_BITS, 0, &[search.tokens])?;
        // SAFETY of the cast: at most 4096.
        let length = vec![search.length as i64];
        Ok(self.push("choice", Opcode::Choose, &[&place, &best, controls], length, to))
    }

    /// The largest threshold that tokens reach which together have the owner's share of the probability of as many of
    /// the likeliest as the owner wants, and at least the floor. Probabilities are those at the temperature. The share
    /// is of these tokens, as elsewhere: of all, it would let pass what they leave to the rest.
    fn threshold(&mut self, search: &Search, logits: &Value, controls: &Value) -> Result<Value, PlanError> {
        let exponent = logits.ty.exponent();
        let (_, best) = self.largest("choice.logits", search, logits)?;
        let to = self.ty("choice.max", logits.ty.bits(), exponent, &[search.tokens])?;
        let max = self.push("choice.max", Opcode::RowMax, &[&best], vec![0], to);
        let floor = self.floor(&max)?;
        let powers = self.weights(logits, &max)?;
        let to = self.ty("choice.threshold", WIDE_BITS, exponent, &[search.tokens])?;
        let none = self.push("choice.threshold", Opcode::Scale, &[&max], vec![0, 0], to);
        let weighed = [logits, &powers, &none];
        let totals = self.tail("choice.totals", search, weighed, (EVERYTHING, true))?;
        let no_masses = self.tail("choice.no_masses", search, weighed, (NOTHING, true))?;
        let no_counts = self.tail("choice.no_counts", search, weighed, (NOTHING, false))?;
        let mut likeliest = none.clone();
        for step in steps() {
            let name = |part: &str| format!("choice.count{step}.{part}");
            let bound = LOWEST.saturating_add(step);
            let counts = self.tail(&name("tail"), search, [logits, &powers, &likeliest], (bound, false))?;
            likeliest = self.raised(&name("threshold"), [&likeliest, &counts, &no_masses, &totals, controls], step);
        }
        let totals = self.tail("choice.likeliest", search, [logits, &powers, &likeliest], (LOWEST, true))?;
        // From the floor on: whether it weighs enough or not, the threshold is not below it.
        let mut threshold = floor;
        for step in steps() {
            let name = |part: &str| format!("choice.mass{step}.{part}");
            let masses = self.tail(&name("tail"), search, [logits, &powers, &threshold], (step, true))?;
            threshold = self.raised(&name("threshold"), [&threshold, &no_counts, &masses, &totals, controls], step);
        }
        Ok(threshold)
    }

    /// The least logit that the owner allows by its distance from the largest. 16 bits hold none below the least logit,
    /// which is where the search begins if the owner allows any.
    fn floor(&mut self, max: &Value) -> Result<Value, PlanError> {
        let distance = self.column("choice.distance", DISTANCE)?;
        // Whatever the owner says, the largest logit is allowed.
        let distance = self.push("choice.distance", Opcode::Relu, &[&distance], vec![], distance.ty.clone());
        let exponent = i64::from(max.ty.exponent());
        let finest = exponent.max(DISTANCE_BITS.into());
        let unit = |e: i64| 1i64.wrapping_shl(u32::try_from(finest.saturating_sub(e)).unwrap_or(0));
        let attributes =
            vec![unit(exponent), unit(DISTANCE_BITS.into()).saturating_neg(), finest.saturating_sub(exponent)];
        Ok(self.push("choice.floor", Opcode::RowCombine, &[max, &distance], attributes, max.ty.clone()))
    }

    /// What each token weighs at the owner's temperature, the largest 1. Without a temperature all weigh the same.
    fn weights(&mut self, logits: &Value, max: &Value) -> Result<Value, PlanError> {
        let column = self.column("choice.temperature", TEMPERATURE)?;
        let to = self.ty("choice.temperature", WIDE_BITS, TEMPERATURE_BITS.into(), column.ty.dims())?;
        let temperature = self.push("choice.temperature", Opcode::Scale, &[&column], vec![1, 0], to);
        // Divided by itself, a temperature is 1; divided once more, its inverse.
        let mut inverse = temperature.clone();
        for name in ["choice.one", "choice.inverse"] {
            let exponent = inverse.ty.exponent().saturating_sub(TEMPERATURE_BITS.into()).saturating_add(INVERSE_PLACES);
            let to = self.ty(name, WIDE_BITS, exponent, column.ty.dims())?;
            inverse = self.push(name, Opcode::Normalize, &[&inverse, &temperature], vec![INVERSE_PLACES.into()], to);
        }
        let exponent = logits.ty.exponent().saturating_add(TEMPERED_EXTRA).min(TEMPERED_FINEST);
        let mut tempered = |name: &str, x: &Value| -> Result<Value, PlanError> {
            let to = self.ty(name, TEMPERED_BITS, exponent, x.ty.dims())?;
            let shift = exponents(&[x, &inverse]) - i64::from(exponent);
            Ok(self.push(name, Opcode::RowMul, &[x, &inverse], vec![shift], to))
        };
        let (x, max) = (tempered("choice.tempered", logits)?, tempered("choice.tempered_max", max)?);
        self.powers("choice.powers", &x, &max, (1.0, 0))
    }

    /// A threshold a step higher where enough tokens reach that.
    fn raised(&mut self, name: &str, operands: [&Value; 5], step: i64) -> Value {
        let to = operands[0].ty.clone();
        self.push(name, Opcode::Threshold, &operands, vec![step], to)
    }

    /// Place and value of the largest element of each part.
    fn largest(&mut self, name: &str, search: &Search, x: &Value) -> Result<(Value, Value), PlanError> {
        let dims = [search.tokens, search.parts];
        let to = self.ty(name, CHOICE_BITS, 0, &dims)?;
        let place = self.push(&format!("{name}.place"), Opcode::RowArgMax, &[x], vec![], to);
        let to = self.ty(name, x.ty.bits(), x.ty.exponent(), &dims)?;
        let best = self.push(&format!("{name}.best"), Opcode::RowPick, &[x, &place], vec![], to);
        Ok((place, best))
    }

    /// How many elements of each part reach the threshold, or how much they weigh.
    fn tail(
        &mut self,
        name: &str,
        search: &Search,
        operands: [&Value; 3],
        (bound, weighted): (i64, bool),
    ) -> Result<Value, PlanError> {
        let log = search.length.next_power_of_two().trailing_zeros();
        let shift = if weighted { i16::try_from(log.saturating_sub(SUMMED)).unwrap_or(i16::MAX) } else { 0 };
        let exponent = if weighted { EXP_EXPONENT.saturating_sub(shift) } else { 0 };
        let to = self.ty(name, WIDE_BITS, exponent, &[search.tokens, search.parts])?;
        let attributes = vec![bound, weighted.into(), shift.into()];
        Ok(self.push(name, Opcode::TailSum, &operands, attributes, to))
    }
}

/// What a threshold is raised by, bit by bit.
fn steps() -> impl Iterator<Item = i64> {
    (0..LOGIT_BITS).rev().map(|bit| 1 << bit)
}

/// How rows of logits are searched.
struct Search {
    tokens: u32,
    parts: u32,
    /// Of a part.
    length: u64,
}
