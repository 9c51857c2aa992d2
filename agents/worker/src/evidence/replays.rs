//! Claims repeated, one after another: what is asked about them is computed again.

use std::sync::Arc;

use bytes::Bytes;
use tensorlink_node::blocking;
use tensorlink_node::files;
use tensorlink_node::interval::inputs_len;
use tensorlink_node::ports::Owner;
use tensorlink_node::replay::{Replay, ReplayError, Roots};
use tensorlink_node::wire::rpc::OUTPUT_PIECE;
use tensorlink_num::Tensor;
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::{Boundary, BoundaryLists, io_root, state_root};
use tensorlink_types::ClaimId;
use tensorlink_types::abi::AuditAnswer;
use tokio::sync::{Mutex, Semaphore};

use super::error::AuditError;
use super::repeatable::Repeatable;
use crate::context::Context;

/// Questions that may wait for a repetition at once; fewer than the requests answered at once, so that others
/// get through.
const WAITING: usize = 4;

/// Repeats one claim at a time and remembers the last, so that a series of questions about a claim costs
/// one repetition.
pub(crate) struct Replays<E> {
    context: Arc<Context<E>>,
    waiting: Semaphore,
    last: Mutex<Option<(ClaimId, Arc<Roots>)>>,
    sent: Mutex<Option<(ClaimId, Boundary, Arc<Sent>)>>,
    shown: Mutex<Option<Shown>>,
}

/// The output of a claim's step and operator.
type Shown = ((ClaimId, u32, u32), Bytes);

/// What a claim says was sent over a boundary: the logs, and the tensors' bytes by entry.
type Sent = (BoundaryLists, Vec<Bytes>);

impl<E: Engine + Send + 'static> Replays<E> {
    pub(crate) fn new(context: Arc<Context<E>>) -> Self {
        Self {
            context,
            waiting: Semaphore::new(WAITING),
            last: Mutex::default(),
            sent: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    /// Forgets what was sent: nobody asks for it now, and it may be large.
    pub(crate) async fn forget_sent(&self) {
        *self.sent.lock().await = None;
    }

    /// A piece of the output of an operator of a step. What has further pieces is kept until the last is asked for, or
    /// another output: it takes as long to compute as all of them.
    ///
    /// # Errors
    /// [`AuditError`].
    pub(crate) async fn piece(
        &self,
        claim: &Repeatable,
        (step, operator): (u32, u32),
        from: u64,
    ) -> Result<Vec<u8>, AuditError> {
        let _place = self.waiting.try_acquire().map_err(|_| AuditError::Busy)?;
        let mut shown = self.shown.lock().await;
        let output = match shown.take() {
            Some((of, output)) if of == (claim.id, step, operator) => output,
            _ => Bytes::from(self.output_in_turn(claim, (step, operator)).await?.to_bytes()),
        };
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(output.len());
        let to = from.saturating_add(OUTPUT_PIECE).min(output.len());
        let piece = output.slice(from..to).to_vec();
        if to < output.len() {
            *shown = Some(((claim.id, step, operator), output));
        }
        Ok(piece)
    }

    /// The output of an operator of a step, for who cannot be turned away: at most those who have a place come first.
    ///
    /// # Errors
    /// [`AuditError`], but not [`AuditError::Busy`].
    pub(crate) async fn output_in_turn(
        &self,
        claim: &Repeatable,
        (step, operator): (u32, u32),
    ) -> Result<Tensor, AuditError> {
        let find = move |replay: Replay, engine: E| replay.operator(engine, step, operator);
        let _turn = self.last.lock().await;
        Ok(self.repeat(claim, find).await?.output)
    }

    /// All roots of the interval, from the last repetition or a new one.
    ///
    /// # Errors
    /// [`AuditError`].
    pub(crate) async fn roots(&self, claim: &Repeatable) -> Result<Arc<Roots>, AuditError> {
        let _place = self.waiting.try_acquire().map_err(|_| AuditError::Busy)?;
        self.roots_in_turn(claim).await
    }

    /// The same, for who cannot be turned away: at most those who have a place come first.
    ///
    /// # Errors
    /// [`AuditError`], but not [`AuditError::Busy`].
    pub(crate) async fn roots_in_turn(&self, repeatable: &Repeatable) -> Result<Arc<Roots>, AuditError> {
        let mut last = self.last.lock().await;
        if let Some((id, roots)) = last.as_ref()
            && *id == repeatable.id
        {
            return Ok(roots.clone());
        }
        let roots = Arc::new(self.repeat(repeatable, |replay, engine| replay.roots(engine)).await?);
        let claim = &repeatable.interval.claim;
        let ends = roots.states.first().zip(roots.states.last());
        let ends = ends.map(|(first, last)| (state_root(first), state_root(last)));
        if ends != Some((claim.parentState, claim.newState)) || io_root(&roots.logs.roots()) != claim.io {
            return Err(repeatable.unsteady());
        }
        *last = Some((repeatable.id, roots.clone()));
        Ok(roots)
    }

    /// What the claim says was sent over a boundary, computed again for who cannot be turned away: the logs, and the
    /// tensor of an entry. However many ask about one claim, it is repeated once: else whoever pays for enough of them
    /// could keep us until one is too late.
    ///
    /// # Errors
    /// [`AuditError`], but not [`AuditError::Busy`].
    pub(crate) async fn sent_in_turn(
        &self,
        claim: &Repeatable,
        (boundary, entry): (Boundary, u32),
    ) -> Result<(BoundaryLists, Tensor), AuditError> {
        let program = &claim.shard.program;
        let sources = if boundary == Boundary::ToNext { &program.to_next } else { &program.to_previous };
        let source = entry.checked_rem(program.micro_batches).and_then(|micro_batch| sources.get(micro_batch as usize));
        let output = source.and_then(|source| program.operators.get(*source as usize)).map(|op| op.output.clone());
        let output = output.ok_or(AuditError::NothingSent(entry))?;
        let sent = self.all_sent(claim, boundary).await?;
        let data = sent.1.get(entry as usize).ok_or(AuditError::NothingSent(entry))?;
        Ok((sent.0.clone(), Tensor::from_bytes(output, data)?))
    }

    async fn all_sent(&self, claim: &Repeatable, boundary: Boundary) -> Result<Arc<Sent>, AuditError> {
        let mut kept = self.sent.lock().await;
        if let Some((id, of, sent)) = kept.as_ref()
            && (*id, *of) == (claim.id, boundary)
        {
            return Ok(sent.clone());
        }
        *kept = None;
        let _turn = self.last.lock().await;
        let (outcome, sent) = self.repeat(claim, move |replay, engine| replay.sent(engine, boundary)).await?;
        if io_root(&outcome.logs.roots()) != claim.interval.claim.io {
            return Err(claim.unsteady());
        }
        let sent = Arc::new((outcome.logs, sent));
        *kept = Some((claim.id, boundary, sent.clone()));
        Ok(sent)
    }

    /// What an honest auditor answers about the last step, computed again.
    ///
    /// # Errors
    /// [`AuditError`], but not [`AuditError::Busy`].
    pub(crate) async fn own_answer(&self, repeatable: &Repeatable) -> Result<AuditAnswer, AuditError> {
        let _turn = self.last.lock().await;
        let (outcome, answer) = self.repeat(repeatable, |replay, engine| replay.answer(engine)).await?;
        let claim = &repeatable.interval.claim;
        if outcome.state_root != claim.newState || io_root(&outcome.logs.roots()) != claim.io {
            return Err(repeatable.unsteady());
        }
        Ok(answer)
    }

    /// Repeats a claim on a thread of its own.
    async fn repeat<T: Send + 'static>(
        &self,
        claim: &Repeatable,
        job: impl FnOnce(Replay, E) -> Result<T, ReplayError> + Send + 'static,
    ) -> Result<T, AuditError> {
        let program = &claim.shard.program;
        let types = || program.state.iter().map(|slot| &slot.ty);
        // The lane owns them, unless its job is settled.
        let store = self.context.ports.store.of(Owner::Nobody);
        let state = match claim.interval.state.as_str() {
            "" => Bytes::new(),
            cid => store.get(&cid.parse()?, &[], files::file_len(types())).await?,
        };
        let state = files::split(&state, types())?;
        let inputs_len = inputs_len(program, claim.span.steps);
        let inputs = store.get(&claim.interval.inputs.parse()?, &[], inputs_len).await?;
        let (shard, span) = (claim.shard.clone(), claim.span);
        let replay = Replay { shard, lineage: claim.lineage, span, state, inputs };
        let engine = self.context.engine.clone();
        Ok(blocking(move || job(replay, engine().map_err(ReplayError::from)?)).await?)
    }
}
