//! How much a model may lose by being put into integers, and what becomes of one that loses more.

use std::fmt;

use anyhow::{Result, bail};
use clap::Args;
use tensorlink_folder::distance::Choice;
use tensorlink_model::{Quantized, Setting};

use super::{Distance, Measured};

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

/// What is wrong with a model that lost too much, and what to do; none if it did not.
pub fn warning(distance: &Distance, setting: Setting) -> Option<String> {
    let excesses = Tolerance::DEFAULT.exceeded_by(distance);
    if excesses.is_empty() {
        return None;
    }
    let excesses: Vec<String> = excesses.iter().map(Excess::to_string).collect();
    let advice = match setting {
        Setting::Reference => "no setting is nearer; name texts like those to come with --calibration",
        Setting::Fast => "quantise it with --setting standard or --setting reference",
        Setting::Standard => "quantise it with --setting reference",
    };
    Some(format!(
        "in the setting {setting} the model answers worse than its floats: {}. Measured on {} tokens; {advice}",
        excesses.join("; "),
        distance.tokens,
    ))
}

/// What a model lost, for people: the same choices, perplexity and divergence, or cosine.
pub fn told(distance: &Distance) -> String {
    let same = 100.0 * distance.same_choice;
    match (distance.perplexity, distance.divergence) {
        (Some([float, exact]), Some(divergence)) => format!(
            "top-1 as in floats {same:.1} %, perplexity {:+.2} %, divergence {divergence:.4} nats, on {} tokens",
            100.0 * (exact / float - 1.0),
            distance.tokens
        ),
        _ if distance.choice == Choice::Order => format!(
            "correlation with floats {:.4}, same order {same:.1} %, on {} pairs of texts",
            distance.cosine_mean, distance.texts
        ),
        _ => format!(
            "mean cosine to floats {:.4}, same {} {same:.1} %, on {} texts",
            distance.cosine_mean,
            distance.choice.name(),
            distance.texts
        ),
    }
}

/// Whether a model that lost too much is served all the same.
#[derive(Args, Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Acceptance {
    /// Serve a model that answers much worse in integers than in floats: whose perplexity rises by more than 2 %, whose
    /// likeliest token is the floats' in less than 90 %, or whose vectors' mean cosine to the floats' is below 0.99.
    #[arg(long)]
    pub accept_loss: bool,
}

impl Acceptance {
    /// The model, if it may be served: it lost little, or as much as it lost is accepted. Then there is a warning.
    ///
    /// # Errors
    /// A model that lost too much, or whose loss is not known; what to do is said.
    pub fn admit(self, measured: Measured) -> Result<Quantized> {
        let Measured { exact, distance } = measured;
        let warning = match &distance {
            Some(distance) => warning(distance, exact.setting()),
            None => Some(
                "how far the model is from its floats is not known, for its tokenizer reads none of our texts; measure \
                 it with `tensorlink model eval --texts`"
                    .to_owned(),
            ),
        };
        match warning {
            Some(warning) if self.accept_loss => tracing::warn!("{warning}"),
            Some(warning) => bail!("{warning}, or serve it as it is with --accept-loss"),
            None => (),
        }
        Ok(exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decoder's, of this perplexity for 20 in floats.
    fn decoder(perplexity: f64, same_choice: f64) -> Distance {
        let (perplexity, divergence) = (Some([20.0, perplexity]), Some(0.01));
        Distance { perplexity, divergence, choice: Choice::Token, ..encoder(0.5, same_choice) }
    }

    fn encoder(cosine_mean: f64, same_choice: f64) -> Distance {
        Distance {
            texts: 9,
            tokens: 100,
            vectors: 100,
            cosine_mean,
            cosine_min: 0.0,
            largest_difference: 0.0,
            mean_difference: 0.0,
            same_choice,
            perplexity: None,
            divergence: None,
            choice: Choice::Neighbour,
            saturated: 0.0,
        }
    }

    #[test]
    fn a_decoder_may_lose_two_percent_of_perplexity_and_a_tenth_of_its_choices() {
        let beyond = |perplexity, same| Tolerance::DEFAULT.exceeded_by(&decoder(perplexity, same));
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
        let beyond = |cosine, same| Tolerance::DEFAULT.exceeded_by(&encoder(cosine, same));
        assert_eq!(beyond(0.99, 0.9), []);
        assert_eq!(beyond(0.9899, 1.0), [Excess::Cosine { mean: 0.9899, least: 0.99 }]);
        assert_eq!(beyond(1.0, 0.89), [Excess::Choice { of: Choice::Neighbour, same: 0.89, least: 0.9 }]);
        let scores = Tolerance::DEFAULT.exceeded_by(&Distance { choice: Choice::Order, ..encoder(0.98, 0.8) });
        assert_eq!(
            scores,
            [
                Excess::Correlation { with: 0.98, least: 0.99 },
                Excess::Choice { of: Choice::Order, same: 0.8, least: 0.9 }
            ]
        );
    }

    #[test]
    fn a_warning_says_what_was_measured_and_what_to_do() {
        assert_eq!(warning(&decoder(20.0, 1.0), Setting::Fast), None);
        let told = warning(&decoder(30.0, 0.5), Setting::Fast).unwrap();
        for said in ["setting fast", "rises by 50.00 %", "in 50.0 %", "100 tokens", "--setting reference"] {
            assert!(told.contains(said), "{said}: {told}");
        }
        let told = warning(&encoder(0.9, 1.0), Setting::Reference).unwrap();
        assert!(told.contains("cosine") && told.contains("0.9000") && told.contains("no setting is nearer"), "{told}");
    }
}
