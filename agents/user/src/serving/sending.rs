//! A text under way, as whoever sends its tokens sees it.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_model::{RunError, tokens as tokens_tensor};
use tensorlink_num::Tensor;
use tensorlink_types::JobId;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::archive::TextReceipts;
use super::fault::TextError;
use super::shared::Shared;
use super::state::{Fresh, State};

/// What a text's next tokens gave.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// A row for each of them, or one for the whole text.
    pub output: Tensor,
    /// With the last tokens: a receipt from every lane.
    pub receipts: Option<TextReceipts>,
}

/// A text under way. Dropped before its end it is abandoned, and nobody is paid for it.
#[derive(Debug)]
pub struct Text {
    shared: Arc<Shared>,
    number: u32,
    state: Option<State>,
    known_as: Option<(JobId, u32)>,
    /// How often it was begun, and how long it waited for that.
    pub(super) begun: u32,
    pub(super) waited: Duration,
}

impl Text {
    pub(super) fn new(shared: Arc<Shared>, number: u32, place: OwnedSemaphorePermit) -> Self {
        let state = Some(State::new(Arc::clone(&shared), number, place));
        Self { shared, number, state, known_as: None, begun: 1, waited: Duration::ZERO }
    }

    /// Its job.
    pub fn job(&self) -> JobId {
        self.shared.job
    }

    /// Its number in the job.
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The job and number by which its receipts are asked for.
    pub fn known_as(&self) -> (JobId, u32) {
        self.known_as.unwrap_or((self.job(), self.number))
    }

    /// It is another that failed, begun anew after a wait.
    pub(super) fn in_place_of(mut self, failed: &Self, waited: Duration) -> Self {
        (self.begun, self.waited) = (failed.begun.saturating_add(1), failed.waited.saturating_add(waited));
        self.known_as_first(failed.known_as())
    }

    /// Its receipts are asked for by these.
    pub(super) fn known_as_first(mut self, first: (JobId, u32)) -> Self {
        let known_as = Some(first).filter(|first| *first != (self.job(), self.number));
        self.known_as = known_as;
        if let Some(state) = &mut self.state {
            state.known_as = known_as;
        }
        self
    }

    /// Tokens that were computed.
    pub fn tokens(&self) -> u32 {
        self.state.as_ref().map_or(0, |state| state.tokens)
    }

    /// Sends the next tokens through the pipeline, of one that chooses tokens with the `controls` of each
    /// ([`controls`](tensorlink_model::choice::controls)). The `last` bring the receipts, and the text is
    /// paid. An error about what was asked for leaves it as it was, after any other it is over.
    ///
    /// # Errors
    /// [`TextError`].
    pub async fn advance(&mut self, tokens: &[u32], controls: Option<&Tensor>, last: bool) -> Result<Step, TextError> {
        let boundaries = &self.shared.boundaries;
        let before = self.state.as_ref().ok_or(TextError::Over)?.tokens;
        if !boundaries.causal() && (before > 0 || !last) {
            return Err(TextError::Whole);
        }
        let whole = tokens.len().saturating_add(before as usize);
        let longest = self.shared.longest;
        let count = u32::try_from(whole).ok().filter(|count| !tokens.is_empty() && *count <= longest);
        let count = count.ok_or(TextError::Length { tokens: whole, longest })?;
        let vocabulary = boundaries.vocabulary();
        if let Some(token) = tokens.iter().copied().find(|token| *token >= vocabulary) {
            return Err(TextError::Token { token, vocabulary });
        }
        let length = |_: RunError| TextError::Length { tokens: whole, longest };
        let fresh = count.saturating_sub(before);
        if controls.map(Tensor::ty) != boundaries.controls(fresh)?.as_ref() {
            return Err(TextError::Controls);
        }
        let rows = Fresh {
            tokens: tokens_tensor(tokens).map_err(length)?.to_bytes(),
            controls: controls.map(Tensor::to_bytes).unwrap_or_default(),
        };
        let out = boundaries.stages();
        let given = if boundaries.by_token(out) { fresh } else { count };
        let ty = boundaries.ty(out, given)?.ok_or(TextError::Closed)?;
        // At its beginning a text may still find a replica that can be paid.
        if before > 0 {
            self.state.as_ref().map_or(Ok(()), |state| state.promise(count))?;
        }

        let mut state = self.state.take().ok_or(TextError::Over)?;
        let (reply, answer) = oneshot::channel();
        // On a task of its own: a worker's answer is awaited even if our caller leaves, so that its receipt is known,
        // and can be withdrawn.
        tokio::spawn(async move {
            let result = state.advance(&rows, last, &|| reply.is_closed()).await;
            // Whoever has left lets the text drop, which abandons it.
            let _ = reply.send((state, result));
        });
        let (state, result) = answer.await.map_err(|_| TextError::Closed)?;
        let output = result?;
        // Checked where it came from.
        let output = Tensor::from_bytes(ty, &output).map_err(|_| TextError::Closed)?;
        let receipts = state.delivered.clone();
        if !last {
            self.state = Some(state);
        }
        Ok(Step { output, receipts })
    }

    /// Ends the text after the tokens that were computed: a receipt from every lane, and the text is paid. Goes on
    /// even if the caller leaves.
    ///
    /// # Errors
    /// [`TextError`]; after one of a stage's the text is abandoned, and nobody is paid for it.
    pub async fn finish(&mut self) -> Result<TextReceipts, TextError> {
        let boundaries = &self.shared.boundaries;
        let tokens = self.state.as_ref().ok_or(TextError::Over)?.tokens;
        if tokens == 0 || !boundaries.by_token(boundaries.stages()) {
            return Err(TextError::Unended);
        }
        let mut state = self.state.take().ok_or(TextError::Over)?;
        let ended = tokio::spawn(async move {
            state.advance(&Fresh::default(), true, &|| false).await?;
            state.delivered.clone().ok_or(TextError::Closed)
        });
        ended.await.map_err(|_| TextError::Closed)?
    }
}
