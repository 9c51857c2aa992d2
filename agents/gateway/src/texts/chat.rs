//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use serde::Deserialize;

use super::messages::{Said, messages_of};
use super::odd::{Odd, only};
use super::options::{Stop, StreamOptions, fields_of, most};
use super::reply::Kind;
use crate::Gateway;
use crate::asked::Asked;
use crate::error::ApiError;
use crate::generation::{Ask, Conversation, Prompt, Variables};

#[derive(Deserialize)]
struct Wanted {
    model: String,
    messages: Vec<Said>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    min_p: Option<f64>,
    repetition_penalty: Option<f64>,
    seed: Option<i64>,
    stop: Option<Stop>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    response_format: Option<Format>,
    modalities: Option<Vec<String>>,
    #[serde(default)]
    n: Odd,
    #[serde(default)]
    logprobs: Odd,
    #[serde(default)]
    top_logprobs: Odd,
    #[serde(default)]
    logit_bias: Odd,
    #[serde(default)]
    presence_penalty: Odd,
    #[serde(default)]
    frequency_penalty: Odd,
    #[serde(default)]
    tools: Odd,
    #[serde(default)]
    tool_choice: Odd,
    #[serde(default)]
    functions: Odd,
    #[serde(default)]
    function_call: Odd,
    #[serde(default)]
    audio: Odd,
    #[serde(default)]
    web_search_options: Odd,
    /// For the chat template.
    chat_template_kwargs: Option<Variables>,
}

/// `response_format`.
#[derive(Deserialize)]
struct Format {
    #[serde(rename = "type")]
    kind: String,
}

impl Wanted {
    fn supported(&self) -> Result<(), ApiError> {
        let text = |text: &str| Odd::Text(text.to_owned());
        let no_tools = "tools are not offered";
        only("n", &self.n, &[Odd::Number(1.0)], "one answer for each request")?;
        only("logprobs", &self.logprobs, &[Odd::Bool(false)], "probabilities are not given")?;
        only("top_logprobs", &self.top_logprobs, &[Odd::Number(0.0)], "probabilities are not given")?;
        only("logit_bias", &self.logit_bias, &[Odd::Empty], "logits are the model's own")?;
        only("presence_penalty", &self.presence_penalty, &[Odd::Number(0.0)], "0 only")?;
        only("frequency_penalty", &self.frequency_penalty, &[Odd::Number(0.0)], "0 only")?;
        only("tools", &self.tools, &[Odd::Empty], no_tools)?;
        only("tool_choice", &self.tool_choice, &[text("none"), text("auto")], no_tools)?;
        only("functions", &self.functions, &[Odd::Empty], no_tools)?;
        only("function_call", &self.function_call, &[text("none"), text("auto")], no_tools)?;
        only("audio", &self.audio, &[], "text only")?;
        only("web_search_options", &self.web_search_options, &[], "the web is not searched")?;
        if self.response_format.as_ref().is_some_and(|format| format.kind != "text") {
            return Err(ApiError::invalid("response_format must be {\"type\": \"text\"}.").at("response_format"));
        }
        if self.modalities.as_ref().is_some_and(|all| all.iter().any(|modality| modality != "text")) {
            return Err(ApiError::invalid("modalities must be [\"text\"].").at("modalities"));
        }
        Ok(())
    }

    /// Most tokens of the answer.
    fn most(&self) -> Result<u32, ApiError> {
        match (self.max_completion_tokens, self.max_tokens) {
            (Some(tokens), Some(old)) if tokens != old => {
                let message = "max_tokens is the old name of max_completion_tokens: send one of them.";
                Err(ApiError::invalid(message).at("max_tokens"))
            }
            (Some(tokens), _) => most("max_completion_tokens", tokens),
            (None, Some(tokens)) => most("max_tokens", tokens),
            (None, None) => Ok(u32::MAX),
        }
    }
}

/// Answers a conversation.
pub(crate) async fn create(State(gateway): State<Arc<Gateway>>, request: Request<Body>) -> Result<Response, ApiError> {
    let (asked, wanted): (_, Wanted) = Asked::read(gateway, request).await?;
    wanted.supported()?;
    let most = wanted.most()?;
    let variables = wanted.chat_template_kwargs.unwrap_or_default();
    let mut options = fields_of!(wanted).check()?;
    let prompts = vec![Prompt::Chat(Conversation { messages: messages_of(wanted.messages)?, variables })];
    let ask = Ask { prompts, most, sampling: options.sampling, stops: std::mem::take(&mut options.stops) };
    asked.answer(Kind::Chat, &wanted.model, "messages", ask, &options).await
}
