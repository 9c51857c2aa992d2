//! Answers auditors about our claims: data from disk, and signed statements computed anew when asked, so that honest
//! work costs nothing more.

use std::sync::Arc;

use bytes::Bytes;
use cid::Cid;
use tensorlink_node::blocking;
use tensorlink_node::files::{self, FileError};
use tensorlink_node::interval::{Span, inputs_len};
use tensorlink_node::ports::{Owner, StoreError};
use tensorlink_node::replay::{Replay, ReplayError, Roots};
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::rpc::{IntervalRecord, OUTPUT_PIECE, Request, Response};
use tensorlink_num::{Tensor, TensorError};
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::commit::{Boundary, BoundaryLists, io_root, is_receipt, state_root, trace_root};
use tensorlink_types::abi::{AuditAnswer, StepStatement};
use tensorlink_types::{Address, ClaimId, Lineage, TensorRoot};
use thiserror::Error;
use tokio::sync::{Mutex, Semaphore};

use crate::context::Context;
use crate::record::Interval;

/// Why an auditor gets no answer. Its text goes to the auditor.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The data is gone.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A CID in our record is malformed.
    #[error("the record on disk is damaged: {0}")]
    Record(#[from] cid::Error),
    /// A file on disk is damaged.
    #[error("the record on disk is damaged: {0}")]
    File(#[from] FileError),
    /// The interval could not be repeated.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// No such step.
    #[error("the claim has no step {0}")]
    NoStep(u32),
    /// No such entry in the log.
    #[error("nothing was sent that is entry {0} of the log")]
    NothingSent(u32),
    /// What the device gave is no tensor of its type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// We could not sign.
    #[error(transparent)]
    Sign(#[from] SignatureError),
    /// The answer is being worked out for others. Ask again.
    #[error("busy with other audits: ask again")]
    Busy,
    /// The claim may still be undone. Ask again.
    #[error("the claim is not confirmed here yet: ask again")]
    Unconfirmed,
    /// The repetition differs from the claim: the device cannot be trusted, and nothing it says is signed.
    #[error("the repeated interval differs from the claim")]
    Unsteady,
    /// Not a question about a claim.
    #[error("not a question about a claim")]
    OffTopic,
}

/// Questions that may wait for a repetition at once; fewer than the requests answered at once, so that others
/// get through.
const WAITING: usize = 4;

/// Repeats one claim at a time and remembers the last, so that a series of questions about a claim costs
/// one repetition.
#[derive(Debug)]
pub struct Replays {
    waiting: Semaphore,
    last: Mutex<Option<(ClaimId, Arc<Roots>)>>,
    sent: Mutex<Option<(ClaimId, Boundary, Arc<Sent>)>>,
    shown: Mutex<Option<Shown>>,
}

/// The output of a claim's step and operator.
type Shown = ((ClaimId, u32, u32), Bytes);

/// What a claim says was sent over a boundary: the logs, and the tensors' bytes by entry.
type Sent = (BoundaryLists, Vec<Bytes>);

impl Default for Replays {
    fn default() -> Self {
        Self {
            waiting: Semaphore::new(WAITING),
            last: Mutex::default(),
            sent: Mutex::default(),
            shown: Mutex::default(),
        }
    }
}

impl Replays {
    /// Forgets what was sent: nobody asks for it now, and it may be large.
    pub(crate) async fn forget_sent(&self) {
        *self.sent.lock().await = None;
    }
}

/// A claim of ours with what it takes to repeat it.
#[derive(Clone)]
pub struct Repeatable {
    /// The claim's id.
    pub id: ClaimId,
    /// The record on disk.
    pub interval: Interval,
    /// The shard.
    pub shard: Arc<Shard>,
    /// What keys the job's draws, and where its steps begin.
    pub lineage: Lineage,
    /// The claim's steps; of a receipt one, the number of the text's tokens.
    pub span: Span,
}

impl Repeatable {
    /// Whether nobody may see anything of it yet: it is no receipt, and not on chain.
    pub fn is_hidden(&self) -> bool {
        !is_receipt(&self.interval.claim) && self.interval.committed_at.is_none()
    }

    /// Answers `auditor`'s question about this claim.
    ///
    /// # Errors
    /// [`AuditError`].
    pub async fn answer<E>(
        &self,
        context: &Context<E>,
        replays: &Replays,
        (auditor, question): (Address, &Request),
    ) -> Result<Response, AuditError>
    where
        E: Engine + Send + 'static,
        E::Tensor: Send + 'static,
    {
        match *question {
            Request::Interval(_) => self.record(),
            Request::Statements(_) => {
                // A reorganisation could still change the job's key under what we sign (rule P-15).
                if !self.interval.confirmed {
                    return Err(AuditError::Unconfirmed);
                }
                let roots = self.roots(context, replays).await?;
                let mut signed = Vec::with_capacity(roots.traces.len());
                let ends = roots.states.iter().zip(roots.states.iter().skip(1));
                for ((step, trace), (before, after)) in (self.span.first_step..).zip(&roots.traces).zip(ends) {
                    signed.push(self.sign(context, auditor, step, (before, trace, after))?);
                }
                Ok(Response::Statements(signed))
            }
            Request::SentLogs(_) => {
                let roots = self.roots(context, replays).await?;
                let sent = |boundary| {
                    roots.logs.get(boundary).map(|log| log.items().iter().copied().map(TensorRoot).collect())
                };
                let to_previous = sent(Boundary::ToPrevious).unwrap_or_default();
                Ok(Response::SentLogs { to_previous, to_next: sent(Boundary::ToNext).unwrap_or_default() })
            }
            Request::Trace { step, .. } => {
                let roots = self.roots(context, replays).await?;
                roots.traces.get(self.local(step)?).cloned().map(Response::Roots).ok_or(AuditError::NoStep(step))
            }
            Request::State { step, .. } => {
                let roots = self.roots(context, replays).await?;
                let after = self.local(step)?.saturating_add(1);
                roots.states.get(after).cloned().map(Response::Roots).ok_or(AuditError::NoStep(step))
            }
            Request::Output { step, operator, from, .. } => {
                Ok(Response::Output(self.piece(context, replays, (step, operator), from).await?))
            }
            Request::Quote(_)
            | Request::Ready(_)
            | Request::Keep { .. }
            | Request::EndState(_)
            | Request::Advance(_)
            | Request::Abandon { .. }
            | Request::Pay { .. }
            | Request::Receipts { .. } => Err(AuditError::OffTopic),
        }
    }

    /// A piece of the output of an operator of a step. What has further pieces is kept until the last is asked for, or
    /// another output: it takes as long to compute as all of them.
    async fn piece<E>(
        &self,
        context: &Context<E>,
        replays: &Replays,
        (step, operator): (u32, u32),
        from: u64,
    ) -> Result<Vec<u8>, AuditError>
    where
        E: Engine + Send + 'static,
    {
        let _place = replays.waiting.try_acquire().map_err(|_| AuditError::Busy)?;
        let mut shown = replays.shown.lock().await;
        let output = match shown.take() {
            Some((of, output)) if of == (self.id, step, operator) => output,
            _ => Bytes::from(self.output_in_turn(context, replays, (step, operator)).await?.to_bytes()),
        };
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(output.len());
        let to = from.saturating_add(OUTPUT_PIECE).min(output.len());
        let piece = output.slice(from..to).to_vec();
        if to < output.len() {
            *shown = Some(((self.id, step, operator), output));
        }
        Ok(piece)
    }

    /// The output of an operator of a step, for who cannot be turned away: at most those who have a place come first.
    pub(crate) async fn output_in_turn<E>(
        &self,
        context: &Context<E>,
        replays: &Replays,
        (step, operator): (u32, u32),
    ) -> Result<Tensor, AuditError>
    where
        E: Engine + Send + 'static,
    {
        let find = move |replay: Replay, engine: E| replay.operator(engine, step, operator);
        let _turn = replays.last.lock().await;
        Ok(self.blocking(context, find).await?.output)
    }

    /// All roots of the interval, from the last repetition or a new one.
    async fn roots<E>(&self, context: &Context<E>, replays: &Replays) -> Result<Arc<Roots>, AuditError>
    where
        E: Engine + Send + 'static,
    {
        let _place = replays.waiting.try_acquire().map_err(|_| AuditError::Busy)?;
        self.roots_in_turn(context, replays).await
    }

    /// The same, for who cannot be turned away: at most those who have a place come first.
    pub(crate) async fn roots_in_turn<E>(
        &self,
        context: &Context<E>,
        replays: &Replays,
    ) -> Result<Arc<Roots>, AuditError>
    where
        E: Engine + Send + 'static,
    {
        let mut last = replays.last.lock().await;
        if let Some((id, roots)) = last.as_ref()
            && *id == self.id
        {
            return Ok(roots.clone());
        }
        let roots = Arc::new(self.blocking(context, |replay, engine| replay.roots(engine)).await?);
        let claim = &self.interval.claim;
        let ends = roots.states.first().zip(roots.states.last());
        let ends = ends.map(|(first, last)| (state_root(first), state_root(last)));
        if ends != Some((claim.parentState, claim.newState)) || io_root(&roots.logs.roots()) != claim.io {
            tracing::error!(lane = %claim.lane(), claim.interval, "a repeated interval differs from its claim");
            return Err(AuditError::Unsteady);
        }
        *last = Some((self.id, roots.clone()));
        Ok(roots)
    }

    /// What the claim says was sent over a boundary, computed again for who cannot be turned away: the logs, and the
    /// tensor of an entry. However many ask about one claim, it is repeated once: else whoever pays for enough of them
    /// could keep us until one is too late.
    pub(crate) async fn sent_in_turn<E>(
        &self,
        context: &Context<E>,
        replays: &Replays,
        (boundary, entry): (Boundary, u32),
    ) -> Result<(BoundaryLists, Tensor), AuditError>
    where
        E: Engine + Send + 'static,
    {
        let program = &self.shard.program;
        let sources = if boundary == Boundary::ToNext { &program.to_next } else { &program.to_previous };
        let source = entry.checked_rem(program.micro_batches).and_then(|micro_batch| sources.get(micro_batch as usize));
        let output = source.and_then(|source| program.operators.get(*source as usize)).map(|op| op.output.clone());
        let output = output.ok_or(AuditError::NothingSent(entry))?;
        let sent = self.all_sent(context, replays, boundary).await?;
        let data = sent.1.get(entry as usize).ok_or(AuditError::NothingSent(entry))?;
        Ok((sent.0.clone(), Tensor::from_bytes(output, data)?))
    }

    async fn all_sent<E>(
        &self,
        context: &Context<E>,
        replays: &Replays,
        boundary: Boundary,
    ) -> Result<Arc<Sent>, AuditError>
    where
        E: Engine + Send + 'static,
    {
        let mut kept = replays.sent.lock().await;
        if let Some((id, of, sent)) = kept.as_ref()
            && (*id, *of) == (self.id, boundary)
        {
            return Ok(sent.clone());
        }
        *kept = None;
        let _turn = replays.last.lock().await;
        let (outcome, sent) = self.blocking(context, move |replay, engine| replay.sent(engine, boundary)).await?;
        if io_root(&outcome.logs.roots()) != self.interval.claim.io {
            tracing::error!(lane = %self.interval.claim.lane(), self.interval.claim.interval, "a repeated interval differs from its claim");
            return Err(AuditError::Unsteady);
        }
        let sent = Arc::new((outcome.logs, sent));
        *kept = Some((self.id, boundary, sent.clone()));
        Ok(sent)
    }

    /// What an honest auditor answers about the last step, computed again.
    pub(crate) async fn own_answer<E>(&self, context: &Context<E>, replays: &Replays) -> Result<AuditAnswer, AuditError>
    where
        E: Engine + Send + 'static,
    {
        let _turn = replays.last.lock().await;
        let (outcome, answer) = self.blocking(context, |replay, engine| replay.answer(engine)).await?;
        let claim = &self.interval.claim;
        if outcome.state_root != claim.newState || io_root(&outcome.logs.roots()) != claim.io {
            tracing::error!(lane = %claim.lane(), claim.interval, "a repeated interval differs from its claim");
            return Err(AuditError::Unsteady);
        }
        Ok(answer)
    }

    /// What it takes to re-execute the interval.
    fn record(&self) -> Result<Response, AuditError> {
        // A receipt's program has no state, and so no file of one.
        let bytes = |cid: &str| if cid.is_empty() { Ok(vec![]) } else { cid.parse::<Cid>().map(|cid| cid.to_bytes()) };
        Ok(Response::Interval(IntervalRecord {
            state: bytes(&self.interval.state)?,
            inputs: bytes(&self.interval.inputs)?,
            logs: self.interval.logs.clone(),
            signatures: self.interval.signatures.clone(),
            holder: self.interval.holder.clone().unwrap_or_default(),
        }))
    }

    fn sign<E>(
        &self,
        context: &Context<E>,
        auditor: Address,
        step: u32,
        (before, trace, after): (&[TensorRoot], &[TensorRoot], &[TensorRoot]),
    ) -> Result<(StepStatement, Vec<u8>), AuditError> {
        let statement = StepStatement {
            claimId: self.id.0,
            auditor,
            step,
            preState: state_root(before),
            postState: state_root(after),
            trace: trace_root(trace),
        };
        let signature = context.ports.identity.sign(context.ports.contracts.statement(&statement))?;
        Ok((statement, signature.to_vec()))
    }

    fn local(&self, step: u32) -> Result<usize, AuditError> {
        let local = step.checked_sub(self.span.first_step).filter(|local| *local < self.span.steps);
        local.map(|local| local as usize).ok_or(AuditError::NoStep(step))
    }

    /// Repeats the interval on a thread of its own.
    async fn blocking<E, T>(
        &self,
        context: &Context<E>,
        job: impl FnOnce(Replay, E) -> Result<T, ReplayError> + Send + 'static,
    ) -> Result<T, AuditError>
    where
        E: Engine + Send + 'static,
        T: Send + 'static,
    {
        let program = &self.shard.program;
        let types = || program.state.iter().map(|slot| &slot.ty);
        // The lane owns them, unless its job is settled.
        let store = context.ports.store.of(Owner::Nobody);
        let state = match self.interval.state.as_str() {
            "" => Bytes::new(),
            cid => store.get(&cid.parse()?, &[], files::file_len(types())).await?,
        };
        let state = files::split(&state, types())?;
        let inputs_len = inputs_len(program, self.span.steps);
        let inputs = store.get(&self.interval.inputs.parse()?, &[], inputs_len).await?;
        let (shard, span) = (self.shard.clone(), self.span);
        let replay = Replay { shard, lineage: self.lineage, span, state, inputs };
        let engine = context.engine.clone();
        Ok(blocking(move || job(replay, engine().map_err(ReplayError::from)?)).await?)
    }
}
