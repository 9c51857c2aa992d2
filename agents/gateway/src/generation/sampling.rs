//! How the tokens of a request are chosen: as those of one text are, but that each text may have draws of its own.

use rand::RngCore;
use tensorlink_model::choice::SamplingParams;

/// As [`SamplingParams`], of all texts of a request.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sampling {
    /// By what logits are divided; 0 takes the largest.
    pub temperature: f64,
    /// Among how many of the likeliest; 0 is any number.
    pub top_k: u32,
    /// Among the likeliest of these that together have this share of their probability.
    pub top_p: f64,
    /// Among those of these that are at least this share as likely as the likeliest; 0 is any.
    pub min_p: f64,
    /// What logits of tokens that the text has already are divided by, or multiplied if they are negative; 1 is none.
    pub repetition_penalty: f64,
    /// The draws of every text; without, each text has its own.
    pub seed: Option<u64>,
}

impl Sampling {
    /// That of one text.
    pub fn of_a_text(self) -> SamplingParams {
        let Self { temperature, top_k, top_p, min_p, repetition_penalty, seed } = self;
        let seed = seed.unwrap_or_else(|| rand::rng().next_u64());
        SamplingParams { temperature, top_k, top_p, min_p, repetition_penalty, seed }
    }
}

impl From<SamplingParams> for Sampling {
    fn from(params: SamplingParams) -> Self {
        let SamplingParams { temperature, top_k, top_p, min_p, repetition_penalty, seed } = params;
        Self { temperature, top_k, top_p, min_p, repetition_penalty, seed: Some(seed) }
    }
}
