//! `POST /v1/completions`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use serde::Deserialize;

use super::odd::{Odd, only};
use super::options::{Stop, StreamOptions, fields_of, most};
use super::reply::Kind;
use crate::Gateway;
use crate::asked::Asked;
use crate::backend::Input;
use crate::error::ApiError;
use crate::generation::{Ask, Prompt};
use crate::input::Inputs;

/// Tokens of a continuation where the request says nothing, as OpenAI has it.
const DEFAULT_LENGTH: u32 = 16;
/// Most prompts of a request.
const MAX_PROMPTS: usize = 16;

#[derive(Deserialize)]
struct Wanted {
    model: String,
    prompt: Inputs,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    min_p: Option<f64>,
    repetition_penalty: Option<f64>,
    seed: Option<i64>,
    stop: Option<Stop>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    n: Odd,
    #[serde(default)]
    best_of: Odd,
    #[serde(default)]
    echo: Odd,
    #[serde(default)]
    logprobs: Odd,
    #[serde(default)]
    logit_bias: Odd,
    #[serde(default)]
    presence_penalty: Odd,
    #[serde(default)]
    frequency_penalty: Odd,
    #[serde(default)]
    suffix: Odd,
}

impl Wanted {
    fn supported(&self) -> Result<(), ApiError> {
        only("n", &self.n, &[Odd::Number(1.0)], "one continuation for each prompt")?;
        only("best_of", &self.best_of, &[Odd::Number(1.0)], "one continuation for each prompt")?;
        only("echo", &self.echo, &[Odd::Bool(false)], "answers leave the prompt out")?;
        only("logprobs", &self.logprobs, &[], "probabilities are not given")?;
        only("logit_bias", &self.logit_bias, &[Odd::Empty], "logits are the model's own")?;
        only("presence_penalty", &self.presence_penalty, &[Odd::Number(0.0)], "0 only")?;
        only("frequency_penalty", &self.frequency_penalty, &[Odd::Number(0.0)], "0 only")?;
        only("suffix", &self.suffix, &[Odd::Text(String::new())], "texts are continued at their end only")?;
        if self.prompt.0.len() > MAX_PROMPTS {
            let message = format!("{} prompts: send at most {MAX_PROMPTS} in one request.", self.prompt.0.len());
            return Err(ApiError::invalid(message).at("prompt"));
        }
        Ok(())
    }
}

/// Continues each prompt.
pub(crate) async fn create(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Result<Response, ApiError> {
    let (asked, wanted): (_, Wanted) = Asked::read(gateway, request).await?;
    wanted.supported()?;
    let mut options = fields_of!(wanted).check()?;
    let most = wanted.max_tokens.map_or(Ok(DEFAULT_LENGTH), |tokens| most("max_tokens", tokens))?;
    let begins = |input| match input {
        Input::Text(text) => Prompt::Text(text),
        Input::Tokens(ids) => Prompt::Tokens(ids),
    };
    let prompts = wanted.prompt.0.into_iter().map(begins).collect();
    let ask = Ask { prompts, most, sampling: options.sampling, stops: std::mem::take(&mut options.stops) };
    asked.answer(Kind::Text, &wanted.model, "prompt", ask, &options).await
}
