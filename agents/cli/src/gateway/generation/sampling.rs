//! How the next token is chosen, as the last stage of a decoder takes it (rules N-35 to N-37).

use rand::RngCore;

/// A row of controls, one element after the other:
///
/// | element | meaning |
/// |---|---|
/// | 0 | whether a token is chosen after this row |
/// | 1 | temperature with 12 fraction bits; 0 takes the largest logit |
/// | 2 | position of the row in the text, from 0 |
/// | 3 | how many of the likeliest tokens to choose among |
/// | 4 | share of probability to choose among, with 16 fraction bits |
/// | 5, 6 | words of the seed, 31 bits each |
pub type Controls = [i64; 7];

/// Highest temperature.
pub const MAX_TEMPERATURE: f64 = 2.0;
/// More tokens than any model has.
const ALL_TOKENS: u32 = i32::MAX.unsigned_abs();
const TEMPERATURE_ONE: f64 = 4096.0;
const SHARE_ONE: f64 = 65536.0;
const WORD: u64 = (1 << 31) - 1;

/// How tokens are chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampling {
    /// 0 takes the likeliest token, 1 draws from the model's distribution; 0 to [`MAX_TEMPERATURE`].
    pub temperature: f64,
    /// Only among the likeliest tokens that have this share of probability together; 0 to 1.
    pub top_p: f64,
    /// Only among so many of the likeliest tokens; `None` for all.
    pub top_k: Option<u32>,
    /// Of the draws: the same seed gives the same text. Its lowest 62 bits count.
    pub seed: u64,
}

impl Sampling {
    /// Draws from the model's own distribution.
    pub const fn new(seed: u64) -> Self {
        Self { temperature: 1.0, top_p: 1.0, top_k: None, seed }
    }

    /// A seed that nobody knows beforehand.
    pub fn random_seed() -> u64 {
        rand::rng().next_u64()
    }

    /// Controls of the row at a position of a text, whose next token is chosen.
    pub fn controls(&self, position: u32) -> Controls {
        // SAFETY of the casts: a float to integer cast saturates, and both products are small and not negative.
        let temperature = (self.temperature.clamp(0.0, MAX_TEMPERATURE) * TEMPERATURE_ONE).round() as i64;
        // A share of nothing would leave no token: the likeliest always stays.
        let share = ((self.top_p.clamp(0.0, 1.0) * SHARE_ONE).round() as i64).max(1);
        let among = self.top_k.map_or(ALL_TOKENS, |k| k.clamp(1, ALL_TOKENS));
        let word = |bits: u64| i64::try_from(bits & WORD).unwrap_or_default();
        [1, temperature, position.into(), among.into(), share, word(self.seed), word(self.seed >> 31)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_those_of_the_rules() {
        let sampling = Sampling { temperature: 0.7, top_p: 0.9, top_k: Some(40), seed: (5 << 31) | 9 };
        assert_eq!(sampling.controls(17), [1, 2867, 17, 40, 58982, 9, 5]);
        let all = i64::from(i32::MAX);
        assert_eq!(Sampling::new(0).controls(0), [1, 4096, 0, all, 65536, 0, 0]);
        let least = Sampling { temperature: 0.0, top_p: 0.0, top_k: Some(0), seed: u64::MAX };
        assert_eq!(least.controls(3), [1, 0, 3, 1, 1, all, all]);
    }
}
