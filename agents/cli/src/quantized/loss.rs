//! What is said of what a model lost by being put into integers, and what becomes of one that lost too much.

use anyhow::{Result, bail};
use clap::Args;
use tensorlink_folder::distance::Choice;
use tensorlink_folder::{Distance, Excess, Tolerance};
use tensorlink_model::{Quantized, Setting};

use super::Measured;

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
    /// likeliest token is the floats' in less than 90 %, or whose vectors' mean cosine to the floats' is below 0.99;
    /// or a model that cannot be measured because its tokenizer reads none of the texts.
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
    use tensorlink_folder::fixture::{decoder_lost, encoder_lost};

    use super::*;

    #[test]
    fn a_warning_says_what_was_measured_and_what_to_do() {
        assert_eq!(warning(&decoder_lost(20.0, 1.0), Setting::Fast), None);
        let told = warning(&decoder_lost(30.0, 0.5), Setting::Fast).unwrap();
        for said in ["setting fast", "rises by 50.00 %", "in 50.0 %", "100 tokens", "--setting reference"] {
            assert!(told.contains(said), "{said}: {told}");
        }
        let told = warning(&encoder_lost(0.9, 1.0), Setting::Reference).unwrap();
        assert!(told.contains("cosine") && told.contains("0.9000") && told.contains("no setting is nearer"), "{told}");
    }
}
