//! Stages that run elsewhere, for one text at a time.

use async_trait::async_trait;
use tokio::sync::mpsc;

use super::Piece;
use super::language::Language;
use super::sequence::{Sequence, Step, Task};
use crate::backend::error::BackendError;

/// All stages of a decoder, for one text. Dropping it ends the text.
#[async_trait]
pub trait Stages: Send {
    /// Computes the tokens that follow those computed before; gives the token chosen after the last of them.
    ///
    /// # Errors
    /// [`BackendError`]; the text is at its end then.
    async fn advance(&mut self, step: Step) -> Result<u32, BackendError>;
}

/// Continues a text to its end, or to its first token that nobody waits for. `pieces` should hold [`Task::most`].
pub async fn drive(
    language: &dyn Language,
    task: Task,
    mut stages: impl Stages,
    pieces: mpsc::Sender<Result<Piece, BackendError>>,
) {
    let mut sequence = Sequence::new(language, task);
    loop {
        let chosen = tokio::select! {
            chosen = stages.advance(sequence.step()) => chosen,
            () = pieces.closed() => return,
        };
        let piece = chosen.and_then(|token| sequence.take(token));
        let last = !matches!(&piece, Ok(Piece { finish: None, .. }));
        if pieces.send(piece).await.is_err() || last {
            return;
        }
    }
}
