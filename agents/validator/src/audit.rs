//! Audits one claim, of an interval or of a text: fetches what the worker recorded and executes it again.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::blocking;
use tensorlink_node::custody::holders;
use tensorlink_node::files;
use tensorlink_node::interval::{Outcome, Span, inputs_len, received_roots};
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{ChainError, Owner};
use tensorlink_node::replay::Replay;
use tensorlink_node::retry::{Failure, retry};
use tensorlink_node::shard::{Room, Shard, ShardError, ShardSource};
use tensorlink_node::wire::rpc::{IntervalRecord, Request, Response};
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::{io_root, is_receipt};
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, Lane};

use crate::auditor::{Auditor, PATIENCE};
use crate::dispute::Dispute;
use crate::finding::{AuditError, Failed, Finding, Gap, fatal};
use crate::target::{Standing, Target};

/// Wait between two looks at the chain's time: the shortest and the longest.
const LOOK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

fn found(tried: Result<Finding, Failed>) -> Result<Finding, AuditError> {
    match tried {
        Ok(finding) => Ok(finding),
        Err(Failed::Gap(gap)) => Ok(Finding::Unproven(gap.to_string())),
        Err(Failed::Audit(error)) => Err(error),
    }
}

/// Whether a shard may be had a little later: a node that has just come up may not have met any holder yet.
fn passing(error: ShardError) -> Failure<ShardError> {
    match error {
        ShardError::Chain(_) | ShardError::Store(_) => Failure::Transient(error),
        error => Failure::Permanent(error),
    }
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
}
