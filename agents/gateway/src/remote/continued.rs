//! One text of a decoder on the workers of a serving job. Tokens that went through are paid, however the text ends:
//! by itself, because its reader left, or because the job pays for no more. Only a text whose workers fail is paid
//! to nobody; where others take their place, or they come back, it goes on there.

use std::sync::Arc;

use async_trait::async_trait;
use tensorlink_model::choice::{SamplingParams, controls};
use tensorlink_num::Tensor;
use tensorlink_user::serving::{Pipelines, Text, TextError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use super::refusal;
use crate::backend::BackendError;
use crate::backend::error::failed;
use crate::generation::sequence::Step;
use crate::generation::stages::Stages;

/// A text's way to its workers. Dropping it ends the text behind the token that is on its way.
pub(super) struct Workers {
    steps: mpsc::Sender<Asked>,
}

/// Tokens to compute, and who waits for the one that is chosen after them.
struct Asked {
    step: Step,
    reply: oneshot::Sender<Result<u32, BackendError>>,
}

/// A text, and what it takes to begin it anew.
struct Course {
    /// None once it failed for good.
    text: Option<Text>,
    pipelines: Arc<Pipelines>,
    /// Its tokens so far, and how the one after each was chosen; of the prompt only the last has one.
    tokens: Vec<(u32, Option<SamplingParams>)>,
}

impl Workers {
    /// Takes up a text, on a task of its own that ends when workers have signed for it. `place` is held until then.
    pub(super) fn start(
        (text, pipelines): (Text, Arc<Pipelines>),
        tasks: &TaskTracker,
        place: impl Send + 'static,
    ) -> Self {
        let (steps, asked) = mpsc::channel(1);
        tasks.spawn(async move {
            run(Course { text: Some(text), pipelines, tokens: Vec::new() }, asked).await;
            drop(place);
        });
        Self { steps }
    }
}

#[async_trait]
impl Stages for Workers {
    async fn advance(&mut self, step: Step) -> Result<u32, BackendError> {
        let (reply, chosen) = oneshot::channel();
        self.steps.send(Asked { step, reply }).await.map_err(|_| BackendError::Stopped)?;
        chosen.await.unwrap_or(Err(BackendError::Stopped))
    }
}

async fn run(mut course: Course, mut steps: mpsc::Receiver<Asked>) {
    while let Some(Asked { step, mut reply }) = steps.recv().await {
        let chosen = course.choose(step, reply.closed()).await;
        let failed = chosen.is_err();
        // Whoever has left pays for the token all the same.
        let _ = reply.send(chosen);
        if failed {
            break;
        }
    }
    let Some(mut text) = course.text else { return };
    match text.finish().await {
        // A text that failed is abandoned; one without tokens never began.
        Ok(_) | Err(TextError::Over | TextError::Unended) => {}
        Err(error) => {
            tracing::warn!(text = text.number(), %error, "a text has no receipts, and its workers are not paid");
        }
    }
}

impl Course {
    /// Computes tokens; the token that the last of them chose. Only the last has a successor chosen.
    /// Whoever has left waits for no other workers.
    async fn choose(&mut self, step: Step, left: impl Future<Output = ()>) -> Result<u32, BackendError> {
        tokio::pin!(left);
        let mut fresh = self.tokens.len();
        let last = step.tokens.len().saturating_sub(1);
        let choices = step.tokens.iter().enumerate().map(|(at, token)| (*token, (at == last).then_some(step.choice)));
        self.tokens.extend(choices);
        loop {
            let mut text = self.text.take().ok_or(BackendError::Stopped)?;
            match self.advance(&mut text, fresh).await? {
                Ok(output) => {
                    // What computes wrongly is not paid.
                    let chosen = self.chosen(&output, fresh)?;
                    self.text = Some(text);
                    return Ok(chosen);
                }
                Err(error @ TextError::Spent(_)) => {
                    self.text = Some(text);
                    return Err(refusal(error));
                }
                Err(error) => {
                    let text = tokio::select! {
                        text = self.pipelines.instead(text, error) => text.map_err(refusal)?,
                        () = &mut left => return Err(BackendError::Stopped),
                    };
                    self.text = Some(text);
                }
            }
            fresh = 0;
        }
    }

    /// Sends the tokens from `fresh` on through the stages.
    async fn advance(&self, text: &mut Text, fresh: usize) -> Result<Result<Tensor, TextError>, BackendError> {
        let tokens = self.tokens.get(fresh..).unwrap_or_default();
        let position = u32::try_from(fresh).unwrap_or(u32::MAX);
        let controls = controls(position, tokens).map_err(|error| failed("controls", &error))?;
        let ids: Vec<u32> = tokens.iter().map(|(token, _)| *token).collect();
        let step = self.pipelines.advance(text, &ids, (Some(&controls), false)).await;
        Ok(step.map(|step| step.output))
    }

    /// The token that was chosen last. What was chosen before must be what the text had: if not, somebody computes
    /// wrongly, and nobody here knows who.
    fn chosen(&self, output: &Tensor, fresh: usize) -> Result<u32, BackendError> {
        let ids = output.mantissas().to_vec();
        let known = self.tokens.get(fresh..).unwrap_or_default();
        let next = known.iter().skip(1).map(|(token, _)| i64::from(*token));
        let differs = known.iter().zip(&ids).zip(next).any(|(((_, choice), id), next)| choice.is_some() && *id != next);
        if differs {
            let said =
                "workers that took a text over chose other tokens than those before: one of them computes wrongly";
            return Err(BackendError::Failed(said.into()));
        }
        let id = ids.last().and_then(|id| u32::try_from(*id).ok());
        id.ok_or_else(|| BackendError::Failed("the last stage chose no token".into()))
    }
}
