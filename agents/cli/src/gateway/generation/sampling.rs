//! How the tokens of a request are chosen: as those of one text are, but that each text may have draws of its own.

use rand::RngCore;
use tensorlink_graph::transformer::choice::SamplingParams;

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
    /// The draws of every text; without, each text has its own.
    pub seed: Option<u64>,
}

impl Sampling {
    /// That of one text.
    pub fn of_a_text(self) -> SamplingParams {
        let Self { temperature, top_k, top_p, min_p, seed } = self;
        SamplingParams { temperature, top_k, top_p, min_p, seed: seed.unwrap_or_else(|| rand::rng().next_u64()) }
    }
}

impl From<SamplingParams> for Sampling {
    fn from(SamplingParams { temperature, top_k, top_p, min_p, seed }: SamplingParams) -> Self {
        Self { temperature, top_k, top_p, min_p, seed: Some(seed) }
    }
}
