//! The endpoints that continue texts.
//!
//! | module | what lives there |
//! |---|---|
//! | here | what both do with a request once it is read |
//! | `completions`, `chat`, `messages` | their requests |
//! | `options`, `odd` | fields that both have; fields that may only hold their defaults |
//! | `reply` | bodies of answers and of their parts |
//! | `stream` | answers in parts, as server-sent events |

pub(super) mod chat;
pub(super) mod completions;
mod messages;
mod odd;
mod options;
mod reply;
mod stream;

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};

use super::asked::{Asked, answered};
use super::backend::{BackendError, Generated, Makes};
use super::error::ApiError;
use super::generation::{Ask, Finish, Generation};
use super::guard::Work;
use super::receipts;
use options::Options;
use reply::{Choice, Kind, Reply, Usage};

impl Asked {
    /// Answers it, as a whole or in parts. `field` is the field that holds what is continued.
    async fn answer(
        self,
        kind: Kind,
        id: &str,
        field: &'static str,
        ask: Ask,
        options: &Options,
    ) -> Result<Response, ApiError> {
        let model = self.gateway.model(id)?;
        if model.makes != Makes::Text {
            return Err(ApiError::other_kind(id));
        }
        let reply = Reply::new(kind, model);
        let begun = tokio::time::timeout_at(self.deadline.into(), self.gateway.backend.generate(id, ask)).await;
        let Generated { generations, receipt } = begun
            .map_err(|_| ApiError::slow_text(self.gateway.limits.time))?
            .map_err(|error| self.gateway.refusal(id, &error, field))?;
        if options.stream {
            let mut response = stream::respond(self, reply, field, generations, options.usage);
            receipts::name(&mut response, receipt);
            return Ok(response);
        }
        let texts = generations.len();
        let (choices, usage) = match whole(kind, generations, self.gateway.limits.time).await {
            Ok(answer) => answer,
            Err(Broken::Silent) => return Err(ApiError::slow_text(self.gateway.limits.time)),
            Err(Broken::Failed(error)) => return Err(self.gateway.refusal(id, &error, field)),
        };
        let work = Work { texts, tokens: usage.total_tokens };
        Ok(answered(Json(reply.whole(choices, usage)).into_response(), work, receipt))
    }
}

/// Why there is no answer.
enum Broken {
    Failed(BackendError),
    /// A text had not begun in time.
    Silent,
}

/// All of every text, each token within `limit` of the one before. A text that falls silent later than at its first
/// token ends with what there is of it, as one that was long enough.
async fn whole(kind: Kind, generations: Vec<Generation>, limit: Duration) -> Result<(Vec<Choice>, Usage), Broken> {
    let mut usage = Usage::default();
    let mut choices = Vec::with_capacity(generations.len());
    for Generation { prompt_tokens, mut pieces } in generations {
        usage.prompt(prompt_tokens);
        let (mut text, mut begun) = (String::new(), false);
        let finish = loop {
            let piece = match tokio::time::timeout(limit, pieces.recv()).await {
                Ok(piece) => piece.unwrap_or(Err(BackendError::Stopped)).map_err(Broken::Failed)?,
                Err(_) if begun => {
                    tracing::warn!("a text fell silent for {} s: what there is of it is the answer", limit.as_secs());
                    break Finish::Length;
                }
                Err(_) => return Err(Broken::Silent),
            };
            begun = true;
            usage.completion();
            text.push_str(&piece.text);
            if let Some(finish) = piece.finish {
                break finish;
            }
        };
        choices.push(Choice::whole(kind, choices.len(), text, finish));
    }
    Ok((choices, usage))
}
