//! Fields that both endpoints have, checked.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use tensorlink_model::choice::{MAX_PENALTY, PENALTIES};

use crate::error::ApiError;
use crate::generation::Sampling;

/// Highest temperature, as OpenAI has it.
const MAX_TEMPERATURE: f64 = 2.0;
/// Least share of probability: to ask for none asks for the likeliest token.
const LEAST_SHARE: f64 = 1.0 / 65536.0;
/// Most stop sequences, as OpenAI has it.
const MAX_STOPS: usize = 4;
/// Longest stop sequence, bytes.
const MAX_STOP: usize = 1024;

/// The fields as they come.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) top_k: Option<i64>,
    pub(super) min_p: Option<f64>,
    pub(super) repetition_penalty: Option<f64>,
    pub(super) seed: Option<i64>,
    pub(super) stop: Option<Stop>,
    pub(super) stream: Option<bool>,
    pub(super) stream_options: Option<StreamOptions>,
}

/// Takes the fields out of what either endpoint is asked; unknown fields could not be told if serde flattened them.
macro_rules! fields_of {
    ($wanted:ident) => {
        $crate::texts::options::Fields {
            temperature: $wanted.temperature,
            top_p: $wanted.top_p,
            top_k: $wanted.top_k,
            min_p: $wanted.min_p,
            repetition_penalty: $wanted.repetition_penalty,
            seed: $wanted.seed,
            stop: $wanted.stop,
            stream: $wanted.stream,
            stream_options: $wanted.stream_options,
        }
    };
}
pub(super) use fields_of;

/// `stream_options`.
#[derive(serde::Deserialize, Default)]
pub(super) struct StreamOptions {
    include_usage: Option<bool>,
}

/// What the fields come to.
pub(super) struct Options {
    pub(super) sampling: Sampling,
    pub(super) stops: Vec<String>,
    /// Whether the answer comes in parts.
    pub(super) stream: bool,
    /// Whether the last part counts tokens.
    pub(super) usage: bool,
}

impl Fields {
    /// # Errors
    /// Values out of range, by field.
    pub(super) fn check(self) -> Result<Options, ApiError> {
        let share = |field: &'static str, value: Option<f64>, most: f64, default: f64| match value {
            Some(value) if !(0.0..=most).contains(&value) => {
                Err(ApiError::invalid(format!("{field} is {value}: it must be 0 to {most}.")).at(field))
            }
            Some(value) => Ok(value),
            None => Ok(default),
        };
        let top_k = match self.top_k {
            // All, in any of the ways that servers have for it.
            None | Some(-1 | 0) => 0,
            Some(k) if k < -1 => {
                return Err(
                    ApiError::invalid(format!("top_k is {k}: it must be at least 1, or -1 for all.")).at("top_k")
                );
            }
            Some(k) => u32::try_from(k).unwrap_or(u32::MAX),
        };
        let sampling = Sampling {
            temperature: share("temperature", self.temperature, MAX_TEMPERATURE, 1.0)?,
            top_p: share("top_p", self.top_p, 1.0, 1.0)?.max(LEAST_SHARE),
            min_p: share("min_p", self.min_p, 1.0, 0.0)?,
            repetition_penalty: penalty(self.repetition_penalty)?,
            top_k,
            seed: self.seed.map(i64::cast_unsigned),
        };
        let stream = self.stream.unwrap_or(false);
        if self.stream_options.is_some() && !stream {
            return Err(
                ApiError::invalid("stream_options is for streams only: set stream to true.").at("stream_options")
            );
        }
        let usage = self.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
        Ok(Options { sampling, stops: self.stop.map_or_else(Vec::new, |stop| stop.0), stream, usage })
    }
}

fn penalty(value: Option<f64>) -> Result<f64, ApiError> {
    match value {
        Some(value) if !PENALTIES.contains(&value) => {
            let message = format!(
                "repetition_penalty is {value}: it must be 1/{MAX_PENALTY} to {MAX_PENALTY}; 1 changes nothing."
            );
            Err(ApiError::invalid(message).at("repetition_penalty"))
        }
        value => Ok(value.unwrap_or(1.0)),
    }
}

/// Checks a limit of tokens.
///
/// # Errors
/// For none.
pub(super) fn most(field: &'static str, tokens: u64) -> Result<u32, ApiError> {
    match tokens {
        0 => Err(ApiError::invalid(format!("{field} is 0: ask for at least one token.")).at(field)),
        // Beyond any context, which is what is refused then.
        _ => Ok(u32::try_from(tokens).unwrap_or(u32::MAX)),
    }
}

/// `stop`: a text, or up to [`MAX_STOPS`].
pub(super) struct Stop(Vec<String>);

impl<'de> Deserialize<'de> for Stop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StopVisitor)
    }
}

struct StopVisitor;

fn checked<E: Error>(stop: &str) -> Result<String, E> {
    match stop.len() {
        0 => Err(E::custom("a stop sequence is empty: leave it out")),
        1..=MAX_STOP => Ok(stop.to_owned()),
        long => Err(E::custom(format_args!("a stop sequence has {long} bytes, more than {MAX_STOP}"))),
    }
}

impl<'de> Visitor<'de> for StopVisitor {
    type Value = Stop;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a string or an array of up to {MAX_STOPS} strings")
    }

    fn visit_str<E: Error>(self, stop: &str) -> Result<Stop, E> {
        Ok(Stop(vec![checked(stop)?]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Stop, A::Error> {
        let mut stops = Vec::new();
        while let Some(stop) = seq.next_element::<String>()? {
            if stops.len() == MAX_STOPS {
                return Err(A::Error::custom(format_args!("more than {MAX_STOPS} stop sequences")));
            }
            stops.push(checked(&stop)?);
        }
        Ok(Stop(stops))
    }
}
