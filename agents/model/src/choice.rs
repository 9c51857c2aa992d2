//! How the next token is chosen, as the text's owner says: a row of controls for each token. Its first columns are the
//! controls of rules N-35 to N-37; programs take the others by themselves.

use std::ops::RangeInclusive;

use tensorlink_num::bounds::WHOLE_SHARE;
use tensorlink_num::{Tensor, TensorError};
use tensorlink_types::{TensorType, TypeError};
use thiserror::Error;

/// Numbers of a row of controls.
pub(crate) const CONTROLS: usize = 11;
/// Columns of controls: the temperature; how far below the largest a logit may be; by which part of themselves positive
/// and negative logits of tokens grow that the text has already; and the row's own token.
pub(super) const TEMPERATURE: usize = 1;
pub(super) const DISTANCE: usize = 7;
pub(super) const POSITIVE: usize = 8;
pub(super) const NEGATIVE: usize = 9;
pub(super) const TOKEN: usize = 10;
/// Fraction bits of a temperature.
pub(super) const TEMPERATURE_BITS: u8 = 12;
/// Fraction bits of the distance from the largest logit to the least that may be chosen.
pub(super) const DISTANCE_BITS: u8 = 16;
/// Fraction bits of the part of itself by which a logit grows.
pub(super) const PENALTY_BITS: u8 = 12;
/// Largest penalty of tokens that a text has already, and the inverse of the least: 16 bits hold by how much they
/// change a logit.
pub const MAX_PENALTY: f64 = 8.0;
/// Penalties that there are.
pub const PENALTIES: RangeInclusive<f64> = 1.0 / MAX_PENALTY..=MAX_PENALTY;
/// Highest temperature: logits are noise long before.
pub const MAX_TEMPERATURE: f64 = 64.0;
/// Bits of each of the two words of a seed: mantissas have a sign, and `−2^31` is none.
const SEED_BITS: u32 = 31;

/// How tokens of a text are chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SamplingParams {
    /// By what logits are divided; 0 takes the largest.
    pub temperature: f64,
    /// Among how many of the likeliest; 0 is any number.
    pub top_k: u32,
    /// Among the likeliest of these that together have this share of their probability at this temperature. 1 is all,
    /// except for the unlikeliest that the sums cannot see: in each 4096 tokens together some `2^19` times less likely
    /// than the likeliest.
    pub top_p: f64,
    /// Among those of these that are at least this share as likely as the likeliest at this temperature; 0 is any.
    pub min_p: f64,
    /// What the logits of tokens that the text has already, its prompt included, are divided by if they are positive,
    /// and multiplied by if they are negative (Keskar et al., 2019); before all else. 1 leaves them as they are.
    pub repetition_penalty: f64,
    /// The draws; of which the lower 62 bits count. The same text, choice and seed give the same tokens.
    pub seed: u64,
}

/// Takes the largest logit.
impl Default for SamplingParams {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0, seed: 0 }
    }
}

/// Why a choice makes no controls.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ChoiceError {
    /// Not a temperature.
    #[error("temperature {0}: choose 0 to {MAX_TEMPERATURE}")]
    Temperature(f64),
    /// Not a share.
    #[error("top_p {0}: choose more than 0, up to 1")]
    Share(f64),
    /// Not a share of the likeliest's probability.
    #[error("min_p {0}: choose 0 to 1")]
    Least(f64),
    /// Not a penalty.
    #[error("repetition penalty {0}: choose 1/{MAX_PENALTY} to {MAX_PENALTY}; 1 is none")]
    Penalty(f64),
    /// No rows, or positions beyond 31 bits.
    #[error("controls of {0} rows")]
    Type(usize, #[source] TypeError),
    /// A number that has no 32 bits.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl SamplingParams {
    /// Whether tokens can be chosen so.
    ///
    /// # Errors
    /// [`ChoiceError::Temperature`], [`ChoiceError::Share`], [`ChoiceError::Least`] or [`ChoiceError::Penalty`].
    pub fn check(&self) -> Result<(), ChoiceError> {
        if !(0.0..=MAX_TEMPERATURE).contains(&self.temperature) {
            return Err(ChoiceError::Temperature(self.temperature));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return Err(ChoiceError::Share(self.top_p));
        }
        if !(0.0..=1.0).contains(&self.min_p) {
            return Err(ChoiceError::Least(self.min_p));
        }
        if !PENALTIES.contains(&self.repetition_penalty) {
            return Err(ChoiceError::Penalty(self.repetition_penalty));
        }
        Ok(())
    }

    /// Controls of a token at a position of the text, the first one's being 0.
    ///
    /// # Errors
    /// As of [`Self::check`].
    fn row(&self, position: u32, token: u32) -> Result<[i64; CONTROLS], ChoiceError> {
        self.check()?;
        let Self { temperature, top_k, top_p, min_p, repetition_penalty, seed } = *self;
        let word = |bits: u64| i64::try_from(bits & ((1 << SEED_BITS) - 1)).unwrap_or_default();
        let fixed = |x: f64, unit: f64| libm::rint(x * unit) as i64;
        // A temperature that is not 0 stays so.
        let least = i64::from(temperature > 0.0);
        let temperature = fixed(temperature, libm::exp2(TEMPERATURE_BITS.into())).max(least);
        let any = i64::from(i32::MAX);
        // Probabilities are in the ratio of min_p where logits differ by so much.
        let unit = libm::exp2(f64::from(DISTANCE_BITS) - f64::from(TEMPERATURE_BITS));
        let distance = if min_p > 0.0 { fixed(temperature as f64 * -libm::log(min_p), unit).min(any) } else { any };
        let top_k = if top_k == 0 { any } else { i64::from(top_k).min(any) };
        let share = fixed(top_p, WHOLE_SHARE as f64).max(1);
        let grown = |factor: f64| fixed(factor - 1.0, libm::exp2(PENALTY_BITS.into()));
        let [positive, negative] = [repetition_penalty.recip(), repetition_penalty].map(grown);
        let (low, high) = (word(seed), word(seed >> SEED_BITS));
        Ok([1, temperature, position.into(), top_k, share, low, high, distance, positive, negative, token.into()])
    }
}

/// A row of a token without a successor: which token it is counts for those that follow.
fn unchosen(token: u32) -> [i64; CONTROLS] {
    let mut row = [0; CONTROLS];
    if let Some(place) = row.get_mut(TOKEN) {
        *place = token.into();
    }
    row
}

/// Controls of the tokens from a position of a text on; of those without a choice no successor is chosen.
///
/// # Errors
/// [`ChoiceError`].
pub fn controls(position: u32, tokens: &[(u32, Option<SamplingParams>)]) -> Result<Tensor, ChoiceError> {
    let rows = tokens.len();
    let mut values = Vec::with_capacity(rows.saturating_mul(CONTROLS));
    for (position, (token, choice)) in (position..=u32::MAX).zip(tokens) {
        values.extend(choice.map_or(Ok(unchosen(*token)), |choice| choice.row(position, *token))?);
    }
    let count = u32::try_from(rows).unwrap_or(u32::MAX);
    let ty = TensorType::new(32, 0, &[count, CONTROLS as u32]).map_err(|source| ChoiceError::Type(rows, source))?;
    Ok(Tensor::from_wide(ty, &values)?)
}

/// [`controls`] of tokens of which the last alone has a successor.
///
/// # Errors
/// [`ChoiceError`].
pub fn controls_of_last(position: u32, tokens: &[u32], choice: SamplingParams) -> Result<Tensor, ChoiceError> {
    let last = tokens.len().saturating_sub(1);
    let row = |(index, token): (usize, &u32)| (*token, (index == last).then_some(choice));
    controls(position, &tokens.iter().enumerate().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_become_controls() {
        let seed = u64::MAX - 1;
        let choice =
            SamplingParams { temperature: 0.8, top_k: 40, top_p: 0.9, min_p: 0.05, repetition_penalty: 1.25, seed };
        let made = controls(7, &[(5, None), (6, Some(choice)), (9, Some(SamplingParams::default()))]).unwrap();
        assert_eq!(made.ty(), &TensorType::new(32, 0, &[3, 11]).unwrap());
        let most = i64::from(i32::MAX);
        // 3277/4096 · ln(20) · 65536 = 157071.9; 1/1.25 − 1 = −0.2; 4096/5 = 819.2.
        let due = [
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5],
            [1, 3277, 8, 40, 58982, most - 1, most, 157_072, -819, 1024, 6],
            [1, 0, 9, most, 65536, 0, 0, most, 0, 0, 9],
        ];
        assert_eq!(made.mantissas().to_vec(), due.concat());
        let warm = SamplingParams {
            temperature: 1e-9,
            top_p: 1e-9,
            top_k: u32::MAX,
            min_p: 1.0,
            repetition_penalty: 0.125,
            seed: 0,
        };
        let hot = SamplingParams { temperature: 64.0, min_p: 1e-300, repetition_penalty: 8.0, ..warm };
        let made = controls(0, &[(0, Some(warm)), (1, Some(hot))]).unwrap();
        let (more, less) = (7 << 12, -7 << 9);
        let due = [[1, 1, 0, most, 1, 0, 0, 0, more, less, 0], [1, 1 << 18, 1, most, 1, 0, 0, most, less, more, 1]];
        assert_eq!(made.mantissas().to_vec(), due.concat());
        let rows = [(3, None), (4, Some(hot))];
        assert_eq!(controls_of_last(2, &[3, 4], hot), controls(2, &rows));
    }

    #[test]
    fn what_is_no_choice_is_refused() {
        for temperature in [-0.1, 64.1, f64::NAN, f64::INFINITY] {
            let choice = SamplingParams { temperature, ..SamplingParams::default() };
            assert!(matches!(controls(0, &[(0, Some(choice))]), Err(ChoiceError::Temperature(_))), "{temperature}");
        }
        for top_p in [0.0, -1.0, 1.1, f64::NAN] {
            let choice = SamplingParams { top_p, ..SamplingParams::default() };
            assert!(matches!(controls(0, &[(0, Some(choice))]), Err(ChoiceError::Share(_))), "{top_p}");
        }
        for min_p in [-0.1, 1.1, f64::NAN] {
            let choice = SamplingParams { min_p, ..SamplingParams::default() };
            assert!(matches!(controls(0, &[(0, Some(choice))]), Err(ChoiceError::Least(_))), "{min_p}");
        }
        for repetition_penalty in [0.0, -1.0, 0.12, 8.1, f64::NAN, f64::INFINITY] {
            let choice = SamplingParams { repetition_penalty, ..SamplingParams::default() };
            let refused = controls(0, &[(0, Some(choice))]);
            assert!(matches!(refused, Err(ChoiceError::Penalty(_))), "{repetition_penalty}");
        }
        assert!(matches!(controls_of_last(0, &[], SamplingParams::default()), Err(ChoiceError::Type(0, _))));
        assert!(matches!(controls(0, &[]), Err(ChoiceError::Type(0, _))));
        assert!(matches!(controls(u32::MAX, &[(0, Some(SamplingParams::default()))]), Err(ChoiceError::Tensor(_))));
    }
}
