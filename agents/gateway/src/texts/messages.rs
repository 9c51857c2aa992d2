//! The messages of a conversation.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::odd::{Odd, only};
use crate::error::ApiError;
use crate::generation::Message;

/// A message as it comes.
#[derive(Deserialize)]
pub(super) struct Said {
    role: Role,
    content: Option<Content>,
    // Clients send answers back as they got them, these fields null or empty.
    #[serde(default)]
    audio: Odd,
    #[serde(default)]
    tool_calls: Odd,
    #[serde(default)]
    function_call: Odd,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    System,
    /// OpenAI's later name of the same.
    Developer,
    User,
    Assistant,
}

impl Role {
    /// As chat templates know it.
    const fn name(self) -> &'static str {
        match self {
            Self::System | Self::Developer => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Messages as chat templates take them.
///
/// # Errors
/// If there is none, or one says what is not text.
pub(super) fn messages_of(messages: Vec<Said>) -> Result<Vec<Message>, ApiError> {
    if messages.is_empty() {
        return Err(ApiError::invalid("messages is empty: send at least one message.").at("messages"));
    }
    let message = |(number, said): (usize, Said)| {
        let fields = [said.audio, said.tool_calls, said.function_call];
        for value in &fields {
            only("messages", value, &[Odd::Empty], "a message has a role and a content, and no tools")?;
        }
        let missing = || ApiError::invalid(format!("message {number} has no content.")).at("messages");
        Ok(Message { role: said.role.name(), content: said.content.ok_or_else(missing)?.0 })
    };
    messages.into_iter().enumerate().map(message).collect()
}

/// A text, or parts that are texts, which become lines.
struct Content(String);

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string or an array of text parts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut lines = Vec::new();
        while let Some(Part { kind, text }) = seq.next_element()? {
            match text {
                Some(text) if kind == "text" => lines.push(text),
                _ => return Err(A::Error::custom(format_args!("a part of type {kind:?}: only text is supported"))),
            }
        }
        Ok(Content(lines.join("\n")))
    }
}
