//! Audits one claim: fetches what the worker recorded, executes it again, and on a difference gathers the worker's own
//! signed answers until they convict it.

use std::sync::Arc;
use std::time::Duration;

use cid::Cid;
use tensorlink_graph::engine::{Engine, EngineError};
use tensorlink_node::Ports;
use tensorlink_node::files::{self, FileError};
use tensorlink_node::interval::{Span, inputs_len};
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Call, ChainError, NetError, Protocol, StoreError};
use tensorlink_node::replay::{OperatorTensors, Replay, ReplayError, Roots};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::shard::{Shard, ShardError, ShardSource};
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_num::Tensor;
use tensorlink_proof::audit::{Answer, Audit, OwnInterval, Undecided, Verdict, first_element};
use tensorlink_proof::commit::program::ProgramTooLarge;
use tensorlink_proof::commit::{BoundaryLists, Edge, LogBuilder, LogError, io_root};
use tensorlink_proof::fraud::{Case, FraudError, Prover, Signed, StepAnswer};
use tensorlink_proof::merkle::{OpeningError, TensorTree};
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, ClaimId, TensorRoot, TensorType};
use thiserror::Error;
use tokio::sync::Semaphore;

/// Attempts to get an answer or a file from a worker; it may be restarting.
const PATIENCE: Policy = Policy { attempts: 5, first: Duration::from_millis(500), longest: Duration::from_secs(4) };

/// Audits that hold a shard at once on a node of its own: one executes while another waits for its worker's answers.
pub const TURNS: usize = 2;

/// A claim on chain.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// Its id.
    pub id: ClaimId,
    /// The claim.
    pub claim: Claim,
    /// Timestamp of its block.
    pub committed_at: u64,
    /// CID of the job's manifest.
    pub manifest: Cid,
}

/// What an audit found.
#[derive(Clone, PartialEq, Debug)]
pub enum Finding {
    /// The claim is right.
    Right,
    /// The claim is wrong, and this call convicts its worker.
    Wrong {
        /// The proof.
        call: Box<Call>,
        /// Where it went wrong, for people.
        fault: String,
    },
    /// The claim is wrong, or cannot be checked, but the worker's answers do not convict it.
    Unproven(String),
}

/// Why a claim could not be audited. Nothing is known about it.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message of each variant says it")]
pub enum AuditError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Fraud(#[from] FraudError),
    #[error(transparent)]
    Program(#[from] ProgramTooLarge),
    #[error("the job is unknown to the endpoint")]
    NoJob,
    #[error("two executions of the same interval differ: this node's device computes wrongly, take it out of service")]
    Unsteady,
    #[error("the auditor is closed")]
    Closed,
}

/// What keeps a worker's answers from deciding.
#[derive(Debug, Error)]
enum Gap {
    #[error("no answer: {0}")]
    Net(#[from] NetError),
    #[error("a file cannot be had: {0}")]
    Store(#[from] StoreError),
    #[error("the worker declines: {0}")]
    Declined(String),
    #[error("the worker answers another question")]
    OffTopic,
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("the recorded {0} is not what was claimed")]
    Record(&'static str),
    #[error("the recorded state: {0}")]
    File(#[from] FileError),
    #[error("the sent logs: {0}")]
    Log(#[from] LogError),
    #[error("the claimed output: {0}")]
    Output(#[from] OpeningError),
    #[error("it signs {0} statements about {1} steps")]
    Statements(usize, u32),
    #[error("{0}")]
    Undecided(#[from] Undecided),
    #[error("its cid: {0}")]
    Cid(#[from] cid::Error),
}

/// Either kind of failure inside an audit.
enum Failed {
    Gap(Gap),
    Audit(AuditError),
}

impl<T: Into<Gap>> From<T> for Failed {
    fn from(gap: T) -> Self {
        Self::Gap(gap.into())
    }
}

fn fatal(error: impl Into<AuditError>) -> Failed {
    Failed::Audit(error.into())
}

/// Audits claims.
pub struct Auditor<E> {
    /// Its world.
    pub ports: Ports,
    /// Makes engines.
    pub engine: Arc<dyn Fn() -> Result<E, EngineError> + Send + Sync>,
    /// Memory for shards, bytes; of each audit under way.
    pub memory: u64,
    /// Audits that may hold a shard at once. Waiting for a worker's first answer takes no permit, so that silent workers hold up nobody.
    pub turns: Semaphore,
}

impl<E> Auditor<E>
where
    E: Engine + Send + 'static,
{
    /// Audits a claim.
    ///
    /// # Errors
    /// [`AuditError`]: something on our side; try again.
    pub async fn audit(&self, target: &Target) -> Result<Finding, AuditError> {
        match self.try_audit(target).await {
            Ok(finding) => Ok(finding),
            Err(Failed::Gap(gap)) => Ok(Finding::Unproven(gap.to_string())),
            Err(Failed::Audit(error)) => Err(error),
        }
    }

    async fn try_audit(&self, target: &Target) -> Result<Finding, Failed> {
        let lane = target.claim.lane();
        let job = self.ports.chain.job(lane.job).await.map_err(fatal)?.ok_or_else(|| fatal(AuditError::NoJob))?;
        let (worker, _) = self.ports.chain.assignment(lane).await.map_err(fatal)?;
        let record = self.record(target, worker).await?;
        let _turn = self.turns.acquire().await.map_err(|_| fatal(AuditError::Closed))?;
        let holders = vec![worker, job.user];
        let source = ShardSource { job: job.id, stage: lane.stage, manifest: target.manifest, holders };
        let shard = Shard::fetch(self.ports.chain.as_ref(), self.ports.store.as_ref(), &source, self.memory)
            .await
            .map_err(fatal)?;
        let replay = self.replay(target, &job, (worker, &record), Arc::new(shard)).await?;

        let outcome = self.blocking(replay.clone(), |replay, engine| replay.outcome(engine)).await?;
        if outcome.state_root == target.claim.newState && outcome.logs.roots() == record.logs {
            return Ok(Finding::Right);
        }
        tracing::warn!(claim = %target.id, %lane, "the claim differs from its re-execution");
        let dispute = Dispute { auditor: self, target, job: &job, worker, replay };
        dispute.convict().await
    }

    /// Where the worker keeps the interval.
    async fn record(&self, target: &Target, worker: Address) -> Result<IntervalRecord, Gap> {
        match self.ask(worker, &Request::Interval(target.id)).await? {
            Response::Interval(record) if io_root(&record.logs) == target.claim.io => Ok(record),
            Response::Interval(_) => Err(Gap::Record("boundary logs")),
            _ => Err(Gap::OffTopic),
        }
    }

    /// The recorded interval, checked to start where the claimed one does.
    async fn replay(
        &self,
        target: &Target,
        job: &JobView,
        (worker, record): (Address, &IntervalRecord),
        shard: Arc<Shard>,
    ) -> Result<Replay, Failed> {
        let program = shard.program.clone();
        let types = || program.state.iter().map(|slot| &slot.ty);
        let state = self.fetch(&record.state, worker, files::file_len(types())).await?;
        let state = files::split(&state, types())?;
        if tensorlink_node::interval::state_root_of(&state) != target.claim.parentState {
            return Err(Gap::Record("state before the interval").into());
        }
        let steps = job.steps_per_interval;
        let inputs = self.fetch(&record.inputs, worker, inputs_len(&program, steps)).await?;
        let span = Span { first_step: target.claim.interval.saturating_mul(steps), steps };
        Ok(Replay { shard, job_key: job.job_key, span, state, inputs })
    }

    async fn fetch(&self, cid: &[u8], worker: Address, limit: u64) -> Result<bytes::Bytes, Gap> {
        let cid = Cid::try_from(cid)?;
        let result = retry(self.ports.clock.as_ref(), PATIENCE, || async {
            self.ports.store.get(&cid, &[worker], limit).await.map_err(Failure::Transient)
        });
        Ok(result.await?)
    }

    async fn ask(&self, worker: Address, question: &Request) -> Result<Response, Gap> {
        let body = encode("request", question)?;
        let result = retry(self.ports.clock.as_ref(), PATIENCE, || async {
            self.ports.net.request(worker, Protocol::Rpc, body.clone()).await.map_err(|error| match error {
                // A worker that let one long wait pass in silence is not given another.
                error @ (NetError::Timeout { .. } | NetError::Refused(_) | NetError::Protocol { .. }) => {
                    Failure::Permanent(error)
                }
                error => Failure::Transient(error),
            })
        });
        match decode("response", &result.await?)? {
            Response::Declined(reason) => Err(Gap::Declined(reason)),
            response => Ok(response),
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        replay: Replay,
        job: impl FnOnce(Replay, E) -> Result<T, ReplayError> + Send + 'static,
    ) -> Result<T, Failed> {
        let engine = self.engine.clone();
        let thread = tokio::task::spawn_blocking(move || job(replay, engine().map_err(ReplayError::from)?));
        match thread.await {
            Ok(result) => result.map_err(fatal),
            // A panic over there is one here, with its own message.
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
}

/// A claim known to differ from its re-execution.
struct Dispute<'a, E> {
    auditor: &'a Auditor<E>,
    target: &'a Target,
    job: &'a JobView,
    worker: Address,
    replay: Replay,
}

impl<E> Dispute<'_, E>
where
    E: Engine + Send + 'static,
{
    async fn convict(&self) -> Result<Finding, Failed> {
        let own = self.auditor.blocking(self.replay.clone(), |replay, engine| replay.roots(engine)).await?;
        let logs = self.their_logs(&own).await?;
        let mut answers = self.statements().await?;
        let case = self.case().await?;
        let (states, traces) = (own.states.clone(), own.traces);
        let state = states.first().cloned().unwrap_or_default();
        let own = OwnInterval { state, traces };
        let program = &self.replay.shard.program;
        let audit = Audit { case: &case, program, claim: &self.target.claim, logs: &logs, own: &own };
        let verdict = loop {
            match audit.verdict(&answers) {
                Ok(verdict) => break verdict,
                Err(lacking) => self.complete(&mut answers, lacking).await?,
            }
        };
        self.prove(&case, &logs, &answers, &states, verdict).await
    }

    async fn case(&self) -> Result<Case, Failed> {
        let chain = &self.auditor.ports.chain;
        let lane = self.target.claim.lane();
        Ok(Case {
            contracts: self.auditor.ports.contracts,
            worker: self.worker,
            steps_per_interval: self.job.steps_per_interval,
            job_key: self.job.job_key,
            program: chain.program_root(lane.job, lane.stage).await.map_err(fatal)?,
            record: chain.record(lane, self.target.claim.interval).await.map_err(fatal)?,
        })
    }

    /// The claim's logs: what was received from our own replay of it, what was sent from the worker.
    async fn their_logs(&self, own: &Roots) -> Result<BoundaryLists, Failed> {
        let question = Request::SentLogs(self.target.id);
        let Response::SentLogs { to_previous, to_next } = self.auditor.ask(self.worker, &question).await? else {
            return Err(Gap::OffTopic.into());
        };
        let program = &self.replay.shard.program;
        let mut logs = LogBuilder::new(program, self.replay.span.steps)?;
        let mut enter = |edge, roots: Vec<TensorRoot>| -> Result<(), LogError> {
            for (index, root) in (0u32..).zip(roots) {
                logs.record(edge, index / program.micro_batches, index % program.micro_batches, root)?;
            }
            Ok(())
        };
        for edge in [Edge::FromPrevious, Edge::FromNext] {
            let received = own.logs.get(edge).map(|log| log.items().iter().copied().map(TensorRoot).collect());
            enter(edge, received.unwrap_or_default())?;
        }
        enter(Edge::ToPrevious, to_previous)?;
        enter(Edge::ToNext, to_next)?;
        Ok(logs.finish()?)
    }

    async fn statements(&self) -> Result<Vec<Answer>, Failed> {
        let question = Request::Statements(self.target.id);
        let Response::Statements(signed) = self.auditor.ask(self.worker, &question).await? else {
            return Err(Gap::OffTopic.into());
        };
        let steps = self.job.steps_per_interval;
        // Bounds what checking them costs.
        if signed.len() != steps as usize {
            return Err(Gap::Statements(signed.len(), steps).into());
        }
        let answer = |(statement, signature): (_, Vec<u8>)| Answer {
            signed: Signed { statement, signature: signature.into() },
            trace: None,
            post_state: None,
        };
        Ok(signed.into_iter().map(answer).collect())
    }

    /// Asks for the list that the verdict lacks; a list that was given and does not open what was signed ends the audit.
    async fn complete(&self, answers: &mut [Answer], lacking: Undecided) -> Result<(), Failed> {
        let claim = self.target.id;
        let (step, question) = match lacking {
            Undecided::Trace(step) => (step, Request::Trace { claim, step }),
            Undecided::State(step) => (step, Request::State { claim, step }),
            other => return Err(other.into()),
        };
        let answer = answers.iter_mut().find(|answer| answer.signed.statement.step == step).ok_or(lacking)?;
        let list = if matches!(lacking, Undecided::Trace(_)) { &mut answer.trace } else { &mut answer.post_state };
        if list.is_some() {
            return Err(lacking.into());
        }
        let Response::Roots(roots) = self.auditor.ask(self.worker, &question).await? else {
            return Err(Gap::OffTopic.into());
        };
        *list = Some(roots);
        Ok(())
    }

    async fn prove(
        &self,
        case: &Case,
        logs: &BoundaryLists,
        answers: &[Answer],
        states: &[Vec<TensorRoot>],
        verdict: Verdict,
    ) -> Result<Finding, Failed> {
        let (target, program) = (self.target, &self.replay.shard.program);
        let prover = Prover::new(*case, program, &target.claim, target.committed_at, logs).map_err(fatal)?;
        let step_answer = |step: u32| {
            let answer = answers.iter().find(|answer| answer.signed.statement.step == step)?;
            let local = step.checked_sub(self.replay.span.first_step)? as usize;
            Some(StepAnswer {
                said: &answer.signed,
                trace: answer.trace.as_deref().unwrap_or_default(),
                before: states.get(local)?,
                after: answer.post_state.as_deref().unwrap_or_default(),
            })
        };
        match verdict {
            // The claim and all that was signed are what our second execution gave: our first one erred.
            Verdict::Consistent => Err(fatal(AuditError::Unsteady)),
            Verdict::Element { step, operator } => {
                let said = step_answer(step).ok_or(Undecided::Statement(step))?;
                let (tensors, theirs) = self.outputs(step, operator).await?;
                let element = first_element(&tensors.output, &theirs).ok_or(Gap::Record("output"))?;
                let operands: Vec<&Tensor> = tensors.operands.iter().collect();
                // Bytes, not a tensor: what a liar committed may exceed its type.
                let tree = TensorTree::from_bytes(tensors.output.ty().clone(), &theirs)?;
                let proof = prover.element(&said, operator, element, &tree, &operands).map_err(fatal)?;
                let name = program.names.get(operator as usize).cloned().unwrap_or_default();
                let (claimed, right) = (mantissa(tensors.output.ty(), &theirs, element), tensors.output.get(element));
                let fault = format!(
                    "step {step}, operator {operator} ({name}), element {element}: claimed {}, right is {}",
                    claimed.unwrap_or_default(),
                    right.unwrap_or_default()
                );
                Ok(Finding::Wrong { call: Box::new(Call::Prove(Box::new(proof))), fault })
            }
            Verdict::Wiring { step, sink, index } => {
                let said = step_answer(step).ok_or(Undecided::Statement(step))?;
                let own = self.auditor.blocking(self.replay.clone(), |replay, engine| replay.roots(engine)).await?;
                let local = step.saturating_sub(self.replay.span.first_step) as usize;
                // The traces agree where the wiring does not.
                let trace = own.traces.get(local).map(Vec::as_slice).unwrap_or_default();
                let said = StepAnswer { trace, ..said };
                let proof = prover.wiring(&said, sink, index).map_err(fatal)?;
                let fault = format!("step {step}: {sink:?} {index} is not what its operator computed");
                Ok(Finding::Wrong { call: Box::new(Call::ProveWiring(Box::new(proof))), fault })
            }
            Verdict::Contradiction { first, second } => {
                let (Some(a), Some(b)) = (answers.get(first), answers.get(second)) else {
                    return Err(Gap::OffTopic.into());
                };
                let proof = prover.contradiction(&a.signed, &b.signed).map_err(fatal)?;
                let fault = format!(
                    "the signed statements on steps {} and {} contradict each other or the claim",
                    a.signed.statement.step, b.signed.statement.step
                );
                Ok(Finding::Wrong { call: Box::new(Call::ProveContradiction(Box::new(proof))), fault })
            }
        }
    }

    /// Our tensors of an operator, and the bytes of the worker's output.
    async fn outputs(&self, step: u32, operator: u32) -> Result<(OperatorTensors, Vec<u8>), Failed> {
        let question = Request::Output { claim: self.target.id, step, operator };
        let Response::Output(theirs) = self.auditor.ask(self.worker, &question).await? else {
            return Err(Gap::OffTopic.into());
        };
        let find = move |replay: Replay, engine: E| replay.operator(engine, step, operator);
        let tensors = self.auditor.blocking(self.replay.clone(), find).await?;
        Ok((tensors, theirs))
    }
}

/// The mantissa that an element of canonical bytes stands for, in its type or not; none beyond the bytes.
fn mantissa(ty: &TensorType, bytes: &[u8], element: u64) -> Option<i64> {
    let width = ty.width().bytes();
    let bytes = bytes.chunks(width).nth(usize::try_from(element).ok()?)?;
    let sign = if bytes.last()? & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 8];
    wide.iter_mut().zip(bytes).for_each(|(wide, byte)| *wide = *byte);
    Some(i64::from_le_bytes(wide))
}
