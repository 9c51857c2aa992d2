//! How the next token is chosen, as the text's owner says: the controls of rules N-35 to N-37.

use tensorlink_num::checked::{CONTROLS, WHOLE_SHARE};
use tensorlink_num::{Tensor, TensorError};
use tensorlink_types::{TensorType, TypeError};
use thiserror::Error;

/// Fraction bits of a temperature.
const TEMPERATURE_BITS: i32 = 12;
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
    /// Among the likeliest of these that together have this share of their probability at temperature 1. 1 is all,
    /// except for the unlikeliest that the sums cannot see: in each 4096 tokens together some `2^19` times less likely
    /// than the likeliest.
    pub top_p: f64,
    /// The draws; of which the lower 62 bits count. The same text, choice and seed give the same tokens.
    pub seed: u64,
}

/// Takes the largest logit.
impl Default for SamplingParams {
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 }
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
    /// [`ChoiceError::Temperature`] or [`ChoiceError::Share`].
    pub fn check(&self) -> Result<(), ChoiceError> {
        if !(0.0..=MAX_TEMPERATURE).contains(&self.temperature) {
            return Err(ChoiceError::Temperature(self.temperature));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return Err(ChoiceError::Share(self.top_p));
        }
        Ok(())
    }

    /// Controls of a token at a position of the text, the first one's being 0.
    ///
    /// # Errors
    /// [`ChoiceError::Temperature`] or [`ChoiceError::Share`].
    fn row(&self, position: u32) -> Result<[i64; CONTROLS as usize], ChoiceError> {
        self.check()?;
        let Self { temperature, top_k, top_p, seed } = *self;
        let word = |bits: u64| i64::try_from(bits & ((1 << SEED_BITS) - 1)).unwrap_or_default();
        let fixed = |x: f64, unit: f64| libm::rint(x * unit) as i64;
        // A temperature that is not 0 stays so.
        let least = i64::from(temperature > 0.0);
        let temperature = fixed(temperature, libm::exp2(TEMPERATURE_BITS.into())).max(least);
        let any = i64::from(i32::MAX);
        let top_k = if top_k == 0 { any } else { i64::from(top_k).min(any) };
        let share = fixed(top_p, WHOLE_SHARE as f64).max(1);
        Ok([1, temperature, position.into(), top_k, share, word(seed), word(seed >> SEED_BITS)])
    }
}

/// Controls of the tokens from a position of a text on; of those without a choice no successor is chosen.
///
/// # Errors
/// [`ChoiceError`].
pub fn controls(position: u32, choices: &[Option<SamplingParams>]) -> Result<Tensor, ChoiceError> {
    let rows = choices.len();
    let mut values = Vec::with_capacity(rows.saturating_mul(CONTROLS as usize));
    for (position, choice) in (position..=u32::MAX).zip(choices) {
        values.extend(choice.map_or(Ok([0; CONTROLS as usize]), |choice| choice.row(position))?);
    }
    let count = u32::try_from(rows).unwrap_or(u32::MAX);
    let ty = TensorType::new(32, 0, &[count, CONTROLS as u32]).map_err(|source| ChoiceError::Type(rows, source))?;
    Ok(Tensor::from_wide(ty, &values)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_become_controls() {
        let seed = u64::MAX - 1;
        let choice = SamplingParams { temperature: 0.8, top_k: 40, top_p: 0.9, seed };
        let made = controls(7, &[None, Some(choice), Some(SamplingParams::default())]).unwrap();
        assert_eq!(made.ty(), &TensorType::new(32, 0, &[3, 7]).unwrap());
        let most = i64::from(i32::MAX);
        let due = [[0; 7], [1, 3277, 8, 40, 58982, most - 1, most], [1, 0, 9, most, 65536, 0, 0]];
        assert_eq!(made.mantissas().to_vec(), due.concat());
        let warm = SamplingParams { temperature: 1e-9, top_p: 1e-9, top_k: u32::MAX, seed: 0 };
        let made = controls(0, &[Some(warm)]).unwrap();
        assert_eq!(made.mantissas().to_vec(), [1, 1, 0, most, 1, 0, 0]);
    }

    #[test]
    fn what_is_no_choice_is_refused() {
        for temperature in [-0.1, 64.1, f64::NAN, f64::INFINITY] {
            let choice = SamplingParams { temperature, ..SamplingParams::default() };
            assert!(matches!(controls(0, &[Some(choice)]), Err(ChoiceError::Temperature(_))), "{temperature}");
        }
        for top_p in [0.0, -1.0, 1.1, f64::NAN] {
            let choice = SamplingParams { top_p, ..SamplingParams::default() };
            assert!(matches!(controls(0, &[Some(choice)]), Err(ChoiceError::Share(_))), "{top_p}");
        }
        assert!(matches!(controls(0, &[]), Err(ChoiceError::Type(0, _))));
        assert!(matches!(controls(u32::MAX, &[Some(SamplingParams::default())]), Err(ChoiceError::Tensor(_))));
    }
}
