//! How much a model may lose by being put into integers.

use std::fmt;

use super::Distance;
use super::distance::Choice;

/// The most that a model may lose to be served without `--accept-loss`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// Of decoders: by what share of itself perplexity may rise.
    pub perplexity_rise: f64,
    /// Least share of positions with the same likeliest token (decoders), of texts with the same nearest other text
    /// (encoders) or class, or of two texts with the same order (models that score texts).
    pub same_choice: f64,
    /// Of encoders: least mean cosine between vectors, or correlation of scores.
    pub cosine_mean: f64,
}

/// A limit of a [`Tolerance`] that a model is beyond; shares, not percent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Excess {
    /// Perplexity rose.
    Perplexity {
        /// By this share of itself.
        rise: f64,
        /// At most allowed.
        most: f64,
    },
    /// Too few choices are the floats'.
    Choice {
        /// What is chosen.
        of: Choice,
        /// Share of the same ones.
        same: f64,
        /// Least allowed.
        least: f64,
    },
    /// Scores are others.
    Correlation {
        /// With the floats'.
        with: f64,
        /// Least allowed.
        least: f64,
    },
    /// Vectors point elsewhere.
    Cosine {
        /// Mean between them.
        mean: f64,
        /// Least allowed.
        least: f64,
    },
}

impl Tolerance {
    /// What is served and told of without a warning.
    pub const DEFAULT: Self = Self { perplexity_rise: 0.02, same_choice: 0.9, cosine_mean: 0.99 };

    /// Where a model is beyond this. What is no number is beyond everything.
    pub fn exceeded_by(&self, distance: &Distance) -> Vec<Excess> {
        // False of what is no number.
        let at_most = |value: f64, limit: f64| value <= limit;
        let mut excesses = Vec::new();
        let (same, least) = (distance.same_choice, self.same_choice);
        let few = !at_most(least, same);
        let (mean, least_mean) = (distance.cosine_mean, self.cosine_mean);
        match distance.choice {
            Choice::Token => {
                let [float, exact] = distance.perplexity.unwrap_or([f64::NAN; 2]);
                let (rise, most) = (exact / float - 1.0, self.perplexity_rise);
                if !at_most(rise, most) {
                    excesses.push(Excess::Perplexity { rise, most });
                }
            }
            _ if at_most(least_mean, mean) => {}
            Choice::Order => excesses.push(Excess::Correlation { with: mean, least: least_mean }),
            Choice::Neighbour | Choice::Class => excesses.push(Excess::Cosine { mean, least: least_mean }),
        }
        if few {
            excesses.push(Excess::Choice { of: distance.choice, same, least });
        }
        excesses
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Perplexity { rise, most } => {
                write!(f, "perplexity rises by {:.2} %, more than {:.0} %", 100.0 * rise, 100.0 * most)
            }
            Self::Choice { of, same, least } => {
                let what = match of {
                    Choice::Token => "the likeliest token is the floats'",
                    Choice::Neighbour => "the nearest text is the floats'",
                    Choice::Class => "the likeliest class is the floats'",
                    Choice::Order => "two texts are in the floats' order",
                };
                write!(f, "{what} in {:.1} %, less than {:.0} %", 100.0 * same, 100.0 * least)
            }
            Self::Correlation { with, least } => {
                write!(f, "the correlation with the floats' scores is {with:.4}, less than {least}")
            }
            Self::Cosine { mean, least } => {
                write!(f, "the mean cosine to the floats' vectors is {mean:.4}, less than {least}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{decoder_lost, encoder_lost};

    #[test]
    fn a_decoder_may_lose_two_percent_of_perplexity_and_a_tenth_of_its_choices() {
        let beyond = |perplexity, same| Tolerance::DEFAULT.exceeded_by(&decoder_lost(perplexity, same));
        // Its logits' cosine does not count.
        assert_eq!(beyond(20.39, 0.9), []);
        assert_eq!(beyond(15.0, 1.0), []);
        assert!(matches!(beyond(20.41, 0.9)[..], [Excess::Perplexity { rise, .. }] if (rise - 0.0205).abs() < 1e-9));
        assert_eq!(beyond(20.0, 0.899), [Excess::Choice { of: Choice::Token, same: 0.899, least: 0.9 }]);
        assert_eq!(beyond(30.0, 0.5).len(), 2);
        assert_eq!(beyond(f64::NAN, f64::NAN).len(), 2);
    }

    #[test]
    fn an_encoder_may_lose_a_hundredth_of_its_cosine_and_a_tenth_of_its_neighbours() {
        let beyond = |cosine, same| Tolerance::DEFAULT.exceeded_by(&encoder_lost(cosine, same));
        assert_eq!(beyond(0.99, 0.9), []);
        assert_eq!(beyond(0.9899, 1.0), [Excess::Cosine { mean: 0.9899, least: 0.99 }]);
        assert_eq!(beyond(1.0, 0.89), [Excess::Choice { of: Choice::Neighbour, same: 0.89, least: 0.9 }]);
        let scores = Tolerance::DEFAULT.exceeded_by(&Distance { choice: Choice::Order, ..encoder_lost(0.98, 0.8) });
        assert_eq!(
            scores,
            [
                Excess::Correlation { with: 0.98, least: 0.99 },
                Excess::Choice { of: Choice::Order, same: 0.8, least: 0.9 }
            ]
        );
    }
}
