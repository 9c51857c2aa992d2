//! Bodies of answers, whole and in parts, as OpenAI's API reference has them.

use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngCore;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::backend::Model;
use crate::generation::Finish;

/// Which endpoint answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Text,
    Chat,
}

/// What all parts of an answer have in common.
#[derive(Clone)]
pub(super) struct Reply {
    kind: Kind,
    id: String,
    created: u64,
    model: String,
    fingerprint: String,
}

#[derive(Serialize)]
pub(super) struct Whole<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: Vec<Choice>,
    /// Absent, null, or counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Option<Usage>>,
    system_fingerprint: &'a str,
}

#[derive(Serialize)]
pub(super) struct Choice {
    index: usize,
    #[serde(flatten)]
    said: Said,
    /// Not given.
    logprobs: Option<()>,
    finish_reason: Option<Finish>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Text(String),
    Message { role: &'static str, content: String, refusal: Option<()> },
    Delta(Delta),
}

#[derive(Serialize, Default)]
struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

/// Tokens of a request.
#[derive(Clone, Copy, Serialize, Default)]
pub(super) struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
    pub(super) total_tokens: u64,
}

impl Usage {
    pub(super) fn prompt(&mut self, tokens: u32) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(tokens.into());
        self.total_tokens = self.total_tokens.saturating_add(tokens.into());
    }

    pub(super) const fn completion(&mut self) {
        self.completion_tokens = self.completion_tokens.saturating_add(1);
        self.total_tokens = self.total_tokens.saturating_add(1);
    }
}

impl Choice {
    /// A whole text.
    pub(super) fn whole(kind: Kind, index: usize, text: String, finish: Finish) -> Self {
        let said = match kind {
            Kind::Text => Said::Text(text),
            Kind::Chat => Said::Message { role: "assistant", content: text, refusal: None },
        };
        Self { index, said, logprobs: None, finish_reason: Some(finish) }
    }

    /// What comes before all text; completions begin with their text.
    pub(super) fn first(kind: Kind, index: usize) -> Option<Self> {
        let delta = Delta { role: Some("assistant"), content: Some(String::new()) };
        let said = Said::Delta(delta);
        (kind == Kind::Chat).then_some(Self { index, said, logprobs: None, finish_reason: None })
    }

    /// More text.
    pub(super) fn more(kind: Kind, index: usize, text: String) -> Self {
        let said = match kind {
            Kind::Text => Said::Text(text),
            Kind::Chat => Said::Delta(Delta { role: None, content: Some(text) }),
        };
        Self { index, said, logprobs: None, finish_reason: None }
    }

    /// The end of a text.
    pub(super) fn last(kind: Kind, index: usize, finish: Finish) -> Self {
        let said = match kind {
            Kind::Text => Said::Text(String::new()),
            Kind::Chat => Said::Delta(Delta::default()),
        };
        Self { index, said, logprobs: None, finish_reason: Some(finish) }
    }
}

impl Reply {
    /// An answer that begins now.
    pub(super) fn new(kind: Kind, model: &Model) -> Self {
        let mut random = [0u8; 16];
        rand::rng().fill_bytes(&mut random);
        let prefix = match kind {
            Kind::Text => "cmpl",
            Kind::Chat => "chatcmpl",
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Same weights, same program, same seed, same text.
        let made = format!("{} {} {}", env!("CARGO_PKG_VERSION"), model.id, model.created);
        let fingerprint = hex::encode(Sha256::digest(made).get(..5).unwrap_or_default());
        Self {
            kind,
            id: format!("{prefix}-{}", hex::encode(random)),
            created: now.as_secs(),
            model: model.id.clone(),
            fingerprint: format!("fp_{fingerprint}"),
        }
    }

    pub(super) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// The body of a whole answer.
    pub(super) fn whole(&self, choices: Vec<Choice>, usage: Usage) -> Whole<'_> {
        let object = match self.kind {
            Kind::Text => "text_completion",
            Kind::Chat => "chat.completion",
        };
        self.body(object, choices, Some(Some(usage)))
    }

    /// A part, as a line of JSON.
    pub(super) fn part(&self, choice: Option<Choice>, usage: Option<Option<Usage>>) -> String {
        let object = match self.kind {
            Kind::Text => "text_completion",
            Kind::Chat => "chat.completion.chunk",
        };
        serde_json::to_string(&self.body(object, choice.into_iter().collect(), usage)).unwrap_or_default()
    }

    fn body(&self, object: &'static str, choices: Vec<Choice>, usage: Option<Option<Usage>>) -> Whole<'_> {
        let Self { id, created, model, fingerprint, .. } = self;
        Whole { id, object, created: *created, model, choices, usage, system_fingerprint: fingerprint }
    }
}
