//! One text of a decoder on the workers of a serving job. Tokens that went through are paid, however the text ends:
//! by itself, because its reader left, or because the job pays for no more. Only a text whose workers fail is paid
//! to nobody.

use async_trait::async_trait;
use tensorlink_model::choice::controls_of_last;
use tensorlink_num::Tensor;
use tensorlink_user::serving::{Text, TextError};
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

impl Workers {
    /// Takes up a text, on a task of its own that ends when workers have signed for it. `place` is held until then.
    pub(super) fn start(text: Text, tasks: &TaskTracker, place: impl Send + 'static) -> Self {
        let (steps, asked) = mpsc::channel(1);
        tasks.spawn(async move {
            run(text, asked).await;
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

async fn run(mut text: Text, mut steps: mpsc::Receiver<Asked>) {
    while let Some(Asked { step, reply }) = steps.recv().await {
        let chosen = choose(&mut text, &step).await;
        let failed = chosen.is_err();
        // Whoever has left pays for the token all the same.
        let _ = reply.send(chosen);
        if failed {
            break;
        }
    }
    match text.finish().await {
        // A text that failed is abandoned; one without tokens never began.
        Ok(_) | Err(TextError::Over | TextError::Unended) => {}
        Err(error) => {
            tracing::warn!(text = text.number(), %error, "a text has no receipts, and its workers are not paid");
        }
    }
}

/// Computes tokens; the token that the last of them chose. Only the last has a successor chosen.
async fn choose(text: &mut Text, step: &Step) -> Result<u32, BackendError> {
    let controls = controls_of_last(step.position, &step.tokens, step.choice);
    let controls = controls.map_err(|error| failed("controls", &error))?;
    let given = text.advance(&step.tokens, Some(&controls), false).await.map_err(refusal)?;
    last(&given.output)
}

fn last(chosen: &Tensor) -> Result<u32, BackendError> {
    let id = chosen.mantissas().to_vec().last().and_then(|id| u32::try_from(*id).ok());
    id.ok_or_else(|| BackendError::Failed("the last stage chose no token".into()))
}
