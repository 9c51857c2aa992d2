//! How far a model in integers is from its floats, as its folder tells.

use serde::{Deserialize, Serialize};

/// How far a model in integers is from the same in floats.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Distance {
    /// Texts compared.
    pub texts: usize,
    /// Their tokens.
    pub tokens: usize,
    /// Vectors compared: one a text for an encoder, one a token for a decoder.
    pub vectors: usize,
    /// Mean cosine between exact and float vectors.
    pub cosine_mean: f64,
    /// Least cosine.
    pub cosine_min: f64,
    /// Largest difference of an element.
    pub largest_difference: f64,
    /// Mean difference of an element.
    pub mean_difference: f64,
    /// Share of choices that are the same.
    pub same_choice: f64,
    /// Perplexity of the texts by floats and by integers; decoders only.
    pub perplexity: Option<[f64; 2]>,
    /// Mean over tokens of the divergence (Kullback–Leibler) of what the integers expect to follow from what the floats
    /// expect, nats; decoders only.
    pub divergence: Option<f64>,
    /// What the model chooses.
    #[serde(default)]
    pub choice: Choice,
    /// Share of activations at the limit of their type, over the first texts.
    pub saturated: f64,
}

/// What a model chooses, in integers as in floats or not.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The likeliest token.
    Token,
    /// The text that is nearest to a text.
    #[default]
    Neighbour,
    /// The likeliest class.
    Class,
    /// Which of two texts has the higher score. All scores together are one vector then, less their mean in floats, and
    /// its cosine is their correlation.
    Order,
}

impl Choice {
    /// As it is said of its being the same.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Token => "next token",
            Self::Neighbour => "neighbour",
            Self::Class => "class",
            Self::Order => "order",
        }
    }
}

impl Distance {
    /// The same as it was read: older versions told of tokens and neighbours only, and not which.
    #[must_use]
    pub fn of_any_version(self) -> Self {
        if self.divergence.is_some() { Self { choice: Choice::Token, ..self } } else { self }
    }
}
