//! Audits one claim, of an interval or of a text: fetches what the worker recorded and executes it again.

use std::sync::Arc;
use std::time::Duration;

use cid::Cid;
use tensorlink_node::blocking;
use tensorlink_node::budget::{Budget, Room};
use tensorlink_node::custody::holders;
use tensorlink_node::files::{self, FileError};
use tensorlink_node::interval::{Outcome, Span, inputs_len, received_roots};
use tensorlink_node::journal::JournalError;
use tensorlink_node::pipeline::PipelineError;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{Call, ChainError, NetError, Owner, Protocol, StoreError};
use tensorlink_node::replay::{Replay, ReplayError};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::shard::{Shard, ShardError, ShardSource};
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_node::{Games, Ports};
use tensorlink_program::engine::{Engine, EngineError};
use tensorlink_proof::audit::Undecided;
use tensorlink_proof::challenge::Stuck;
use tensorlink_proof::commit::program::ProgramTooLarge;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::commit::{Boundary, LogError, io_root, is_receipt};
use tensorlink_proof::fraud::FraudError;
use tensorlink_proof::merkle::OpeningError;
use tensorlink_types::abi::{AuditedClaim, Claim, JobKind};
use tensorlink_types::{Address, B256, ClaimId, Lane};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::answers::Answers;
use crate::claims::Claims;
use crate::dispute::Dispute;
use crate::hunts::Hunts;
use crate::receipt::LastStage;

/// Attempts to get an answer or a file from a worker; it may be restarting.
pub(crate) const PATIENCE: Policy =
    Policy { attempts: 5, first: Duration::from_millis(500), longest: Duration::from_secs(4) };

/// Wait between two looks at the chain's time: the shortest and the longest.
const LOOK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Audits that hold a shard at once on a node of its own: one executes while another waits for its worker's answers.
pub const TURNS: usize = 2;

/// Challenges that are played at once on a node of its own. They mostly wait.
pub const PLAYS: usize = 64;

/// A claim.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// Its id.
    pub id: ClaimId,
    /// The claim.
    pub claim: Claim,
    /// How it binds its worker.
    pub standing: Standing,
    /// CID of the job's manifest.
    pub manifest: Cid,
    /// Of a receipt: where it stands on chain.
    pub listed: Option<Listed>,
}

/// A receipt's place in the list of a redeemed epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The epoch.
    pub epoch: u32,
    /// When it was redeemed, seconds.
    pub redeemed_at: u64,
    /// Root of its list.
    pub receipts: B256,
    /// The receipt's index in it.
    pub index: u32,
    /// And its path there.
    pub siblings: Vec<B256>,
}

impl Target {
    /// As the chain draws for it: the claim since when it is fixed. None of a receipt that no redeemed epoch lists.
    pub fn audited(&self) -> Option<AuditedClaim> {
        let claim = self.claim.clone();
        match (self.standing, self.listed.clone()) {
            (Standing::Committed { at }, _) => Some(AuditedClaim { claim, fixedAt: at, ..AuditedClaim::default() }),
            (Standing::Receipt, Some(listed)) => {
                let Listed { epoch, redeemed_at, receipts, index, siblings } = listed;
                Some(AuditedClaim { claim, fixedAt: redeemed_at, epoch, receipts, index, siblings })
            }
            (Standing::Receipt, None) => None,
        }
    }

    /// Since when it is fixed.
    pub fn fixed_at(&self) -> Option<u64> {
        match self.standing {
            Standing::Committed { at } => Some(at),
            Standing::Receipt => self.listed.as_ref().map(|listed| listed.redeemed_at),
        }
    }
}

/// How a claim binds its worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It is on chain.
    Committed {
        /// Timestamp of its block.
        at: u64,
    },
    /// It is a receipt of a serving job (rule C-12).
    Receipt,
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
    /// The claim is wrong; what convicts its worker is told once nobody can answer for the claim any more, at this
    /// time, seconds. [`Auditor::prove`] it then.
    Withheld {
        /// Timestamp of a block.
        until: u64,
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
    Pipeline(#[from] PipelineError),
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
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Sign(#[from] SignatureError),
    #[error("the auditor is closed")]
    Closed,
}

/// What keeps a worker's answers from deciding.
#[derive(Debug, Error)]
pub(crate) enum Gap {
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
    #[error("of an output of {length} bytes it shows {given}, too slowly or in crumbs")]
    Slow { given: u64, length: u64 },
    #[error("what it shows is not what it signed: {0}")]
    Shown(FraudError),
    #[error("it signs {0} statements about {1} steps")]
    Statements(usize, u32),
    #[error("{0}")]
    Undecided(#[from] Undecided),
    #[error("its cid: {0}")]
    Cid(#[from] cid::Error),
    #[error("the claim of a serving job names a state: it is no receipt")]
    NoReceipt,
    #[error("the neighbour at stage {0} has no claim that tells what it sent, or a wrong one: audit that first")]
    Neighbour(u16),
    #[error("{0}")]
    Stuck(#[from] Stuck),
    #[error("the bounty would not make up for a lost bond: a challenge is not opened")]
    Unworthy,
    #[error("what it logged as received ({0:?}) is not signed by the worker that sends it")]
    Unsigned(Boundary),
    #[error(
        "it was misled by its neighbour ({0:?}), which is convicted of it; the challenge stands against the one that was misled"
    )]
    Misled(Boundary),
    #[error("it took part in no training: what it received cannot be worked out without it")]
    Alone,
}

/// Either kind of failure inside an audit.
pub(crate) enum Failed {
    Gap(Gap),
    Audit(AuditError),
}

impl<T: Into<Gap>> From<T> for Failed {
    fn from(gap: T) -> Self {
        Self::Gap(gap.into())
    }
}

fn found(tried: Result<Finding, Failed>) -> Result<Finding, AuditError> {
    match tried {
        Ok(finding) => Ok(finding),
        Err(Failed::Gap(gap)) => Ok(Finding::Unproven(gap.to_string())),
        Err(Failed::Audit(error)) => Err(error),
    }
}

pub(crate) fn fatal(error: impl Into<AuditError>) -> Failed {
    Failed::Audit(error.into())
}

/// Whether a shard may be had a little later: a node that has just come up may not have met any holder yet.
fn passing(error: ShardError) -> Failure<ShardError> {
    match error {
        ShardError::Chain(_) | ShardError::Store(_) => Failure::Transient(error),
        error => Failure::Permanent(error),
    }
}

/// Audits claims.
pub struct Auditor<E> {
    /// Its world.
    pub ports: Ports,
    /// Makes engines.
    pub engine: Arc<dyn Fn() -> Result<E, EngineError> + Send + Sync>,
    /// Memory that audits take together.
    pub memory: Arc<Budget>,
    /// Audits that may hold a shard at once. Waiting for a worker's first answer takes no permit, so that silent
    /// workers hold up nobody.
    pub turns: Semaphore,
    /// The serving stage that was audited last.
    pub stages: LastStage,
    /// Our challenges.
    pub games: Arc<Games>,
    /// Challenges that this node plays at once, beside those that were open when it started.
    pub plays: Semaphore,
    /// Claims that are looked into.
    pub hunts: Hunts,
    /// Claims on record.
    pub claims: Claims,
    /// Our answers for claims that we are drawn for.
    pub answers: Answers,
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
        let audited = found(self.try_audit(target, false).await);
        self.drop_unanswered(target.id).await;
        audited
    }

    /// The same of a claim that an audit found wrong: what was executed then is not executed again, and nothing is
    /// withheld.
    ///
    /// # Errors
    /// As [`Self::audit`].
    pub async fn prove(&self, target: &Target) -> Result<Finding, AuditError> {
        found(self.try_audit(target, true).await)
    }

    async fn try_audit(&self, target: &Target, is_wrong: bool) -> Result<Finding, Failed> {
        let lane = target.claim.lane();
        let job = self.ports.chain.job(lane.job).await.map_err(fatal)?.ok_or_else(|| fatal(AuditError::NoJob))?;
        let (worker, _) = self.ports.chain.assignment(lane).await.map_err(fatal)?;
        let record = self.record(target, worker).await?;
        if matches!(target.standing, Standing::Committed { .. }) {
            self.senders_signed(target, &record).await?;
        }
        let turn = self.turns.acquire().await.map_err(|_| fatal(AuditError::Closed))?;
        let holders = holders(self.ports.chain.as_ref(), &job, lane).await.map_err(fatal)?;
        let source = ShardSource { job: job.id, stage: lane.stage, manifest: target.manifest, holders };
        let (replay, programs) = match (target.standing, job.kind) {
            (Standing::Committed { .. }, JobKind::Training) => {
                let shard = self.shard(target, &job, lane.stage).await?;
                (self.replay(target, &job, (worker, &record), shard).await?, None)
            }
            (Standing::Receipt, JobKind::Serving) if is_receipt(&target.claim) => {
                let fetch = || async { self.stage(&source, job.steps_per_interval).await.map_err(passing) };
                let stage = retry(self.ports.clock.as_ref(), PATIENCE, fetch).await.map_err(fatal)?;
                (self.repeat(target, (&stage, &job), (worker, &record)).await?, Some(Arc::clone(&stage.programs)))
            }
            _ => return Err(Gap::NoReceipt.into()),
        };

        if !is_wrong {
            let outcome = self.outcome(target, &job, &replay, &record).await?;
            if outcome.state_root == target.claim.newState && outcome.logs.roots() == record.logs {
                drop(turn);
                let found = self.compare_boundaries(target, &job, &record.logs, &record.signatures).await?;
                self.forget(&record).await;
                return Ok(found.unwrap_or(Finding::Right));
            }
            tracing::warn!(claim = %target.id, %lane, "the claim differs from its re-execution");
            if let Some(until) = self.withheld(target, &job).await? {
                return Ok(Finding::Withheld { until });
            }
        }
        let dispute = Dispute { auditor: self, target, job: &job, worker, replay, programs };
        dispute.convict().await
    }

    /// Executes what was recorded; where we are drawn to answer for it, the answer is taken on the way.
    async fn outcome(
        &self,
        target: &Target,
        job: &JobView,
        replay: &Replay,
        record: &IntervalRecord,
    ) -> Result<Outcome, Failed> {
        // A worker with less at risk than a challenge costs could frame us for nothing; and nobody works for nothing.
        let safe = job.worker_stake >= self.answers.parameters.dispute_bond;
        if !safe || job.audit_budget == 0 || !self.answers.is_due(target.id) {
            return self.blocking(replay.clone(), |replay, engine| replay.outcome(engine)).await;
        }
        let (outcome, answer) = self.blocking(replay.clone(), |replay, engine| replay.answer(engine)).await?;
        let logs = outcome.logs.roots();
        // What follows from other tensors than the claim's own says nothing about the claim.
        if (logs.fromPrevious, logs.fromNext) == (record.logs.fromPrevious, record.logs.fromNext) {
            self.answer_with(target, job, (answer, record)).await.map_err(Failed::Audit)?;
        }
        Ok(outcome)
    }

    /// Until when a worker does not tell what the chain's auditors must answer without it; none if it does already.
    async fn withheld(&self, target: &Target, job: &JobView) -> Result<Option<u64>, Failed> {
        let Some(at) = target.fixed_at().filter(|_| job.user != self.ports.identity.address()) else { return Ok(None) };
        let Some(until) = self.answers.told_from(at, job.challenge_window) else { return Ok(None) };
        let now = self.ports.chain.head().await.map_err(fatal)?.timestamp;
        Ok((now < until).then_some(until))
    }

    /// Waits until the chain's time is `until`; a chain that does not answer is asked again.
    pub(crate) async fn await_time(&self, until: u64) {
        loop {
            let now = match self.ports.chain.head().await {
                Ok(head) => head.timestamp,
                Err(error) => {
                    tracing::warn!(%error, "the chain cannot be asked");
                    0
                }
            };
            if now >= until {
                return;
            }
            let left = Duration::from_secs(until.saturating_sub(now));
            self.ports.clock.sleep(left.clamp(LOOK.0, LOOK.1)).await;
        }
    }

    /// Waits while an audit of ours looks into a claim whose worker accuses an auditor, at most until nobody can accuse
    /// any more: it may convict by the worker's own answers, which costs no challenge.
    pub(crate) async fn await_hunt(&self, target: &Target) -> Result<(), ChainError> {
        let Some(at) = target.fixed_at() else { return Ok(()) };
        let Some(job) = self.ports.chain.job(target.claim.lane().job).await? else { return Ok(()) };
        let until = self.answers.accused_until(at, job.challenge_window);
        while self.hunts.is_on(target.id) && self.ports.chain.head().await?.timestamp < until {
            self.ports.clock.sleep(LOOK.0).await;
        }
        Ok(())
    }

    /// Where the worker keeps the interval.
    pub(crate) async fn record(&self, target: &Target, worker: Address) -> Result<IntervalRecord, Gap> {
        match self.ask(worker, &Request::Interval(target.id)).await? {
            Response::Interval(record) if io_root(&record.logs) == target.claim.io => Ok(record),
            Response::Interval(_) => Err(Gap::Record("boundary logs")),
            _ => Err(Gap::OffTopic),
        }
    }

    /// A shard of a training job, from whoever holds it.
    pub(crate) async fn shard(&self, target: &Target, job: &JobView, stage: u16) -> Result<Arc<Shard>, Failed> {
        let lane = Lane { stage, ..target.claim.lane() };
        let holders = holders(self.ports.chain.as_ref(), job, lane).await.map_err(fatal)?;
        let source = ShardSource { job: job.id, stage, manifest: target.manifest, holders };
        let (chain, store) = (self.ports.chain.as_ref(), self.ports.store.of(Owner::Nobody));
        let room = (job.steps_per_interval, self as &dyn Room);
        let fetch = || async { Shard::fetch(chain, store.as_ref(), &source, room).await.map_err(passing) };
        Ok(Arc::new(retry(self.ports.clock.as_ref(), PATIENCE, fetch).await.map_err(fatal)?))
    }

    /// The recorded interval, checked to start where the claimed one does, and from what that received.
    pub(crate) async fn replay(
        &self,
        target: &Target,
        job: &JobView,
        (worker, record): (Address, &IntervalRecord),
        shard: Arc<Shard>,
    ) -> Result<Replay, Failed> {
        let program = shard.program.clone();
        let types = || program.state.iter().map(|slot| &slot.ty);
        let state = self.fetch_for(target, &record.state, (worker, files::file_len(types()))).await?;
        let state = files::split(&state, types())?;
        if tensorlink_node::interval::state_root_of(&state) != target.claim.parentState {
            return Err(Gap::Record("state before the interval").into());
        }
        let steps = job.steps_per_interval;
        let inputs = self.fetch_for(target, &record.inputs, (worker, inputs_len(&program, steps))).await?;
        let span = Span { first_step: target.claim.interval.saturating_mul(steps), steps };
        // What follows from other inputs says nothing about the claim, and would lose us a challenge.
        let received = {
            let (program, inputs) = (program.clone(), inputs.clone());
            blocking(move || received_roots(&program, &inputs, span)).await
        };
        if received != Some((record.logs.fromPrevious, record.logs.fromNext)) {
            return Err(Gap::Record("input").into());
        }
        Ok(Replay { shard, lineage: job.lineage, span, state, inputs })
    }

    pub(crate) async fn ask(&self, worker: Address, question: &Request) -> Result<Response, Gap> {
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

    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        replay: Replay,
        job: impl FnOnce(Replay, E) -> Result<T, ReplayError> + Send + 'static,
    ) -> Result<T, Failed> {
        let engine = self.engine.clone();
        blocking(move || job(replay, engine().map_err(ReplayError::from)?)).await.map_err(fatal)
    }
}
