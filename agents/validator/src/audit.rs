//! Audits one claim, of an interval or of a text: fetches what the worker recorded and executes it again.

use std::sync::Arc;

use tensorlink_node::Ports;
use tensorlink_node::interval::Outcome;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::replay::Replay;
use tensorlink_node::wire::rpc::IntervalRecord;
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::is_receipt;
use tensorlink_types::abi::JobKind;

use crate::answers::Answers;
use crate::boundary::Boundaries;
use crate::dispute::Dispute;
use crate::evidence::Evidence;
use crate::executor::Executor;
use crate::finding::{AuditError, Failed, Finding, Gap, fatal};
use crate::giving::Giving;
use crate::receipt::repeat;
use crate::records::{record, replay};
use crate::shards::Shards;
use crate::target::{Standing, Target};

fn found(tried: Result<Finding, Failed>) -> Result<Finding, AuditError> {
    match tried {
        Ok(finding) => Ok(finding),
        Err(Failed::Gap(gap)) => Ok(Finding::Unproven(gap.to_string())),
        Err(Failed::Audit(error)) => Err(error),
    }
}

/// Audits claims.
pub(crate) struct Audits<'a, E> {
    ports: &'a Ports,
    answers: &'a Answers,
    evidence: Evidence<'a>,
    giving: Giving<'a>,
    boundaries: Boundaries<'a>,
    executor: Executor<'a, E>,
    shards: Shards<'a>,
}

impl<'a, E> Audits<'a, E>
where
    E: Engine + Send + 'static,
{
    /// With what executes them; what the chain draws this node for is answered on the way.
    pub(crate) const fn new(
        ports: &'a Ports,
        answers: &'a Answers,
        boundaries: Boundaries<'a>,
        executor: Executor<'a, E>,
        shards: Shards<'a>,
    ) -> Self {
        let (evidence, giving) = (Evidence::new(ports, answers), Giving::new(ports, answers));
        Self { ports, answers, evidence, giving, boundaries, executor, shards }
    }

    /// Audits a claim.
    ///
    /// # Errors
    /// [`AuditError`]: something on our side; try again.
    pub(crate) async fn audit(&self, target: &Target) -> Result<Finding, AuditError> {
        let audited = found(self.try_audit(target, false).await);
        self.evidence.drop_unanswered(target.id).await;
        audited
    }

    /// The same of a claim that an audit found wrong: what was executed then is not executed again, and nothing is
    /// withheld.
    ///
    /// # Errors
    /// As [`Self::audit`].
    pub(crate) async fn prove(&self, target: &Target) -> Result<Finding, AuditError> {
        found(self.try_audit(target, true).await)
    }

    async fn try_audit(&self, target: &Target, is_wrong: bool) -> Result<Finding, Failed> {
        let lane = target.claim.lane();
        let job = self.ports.chain.job(lane.job).await.map_err(fatal)?.ok_or_else(|| fatal(AuditError::NoJob))?;
        let (worker, _) = self.ports.chain.assignment(lane).await.map_err(fatal)?;
        let record = record(self.ports, target, worker).await?;
        if matches!(target.standing, Standing::Committed { .. }) {
            self.boundaries.senders_signed(target, &record).await?;
        }
        let turn = self.executor.turn().await?;
        let (replay, programs) = match (target.standing, job.kind) {
            (Standing::Committed { .. }, JobKind::Training) => {
                let shard = self.shards.training(target, &job, lane.stage).await?;
                (replay(self.evidence, target, &job, (worker, &record), shard).await?, None)
            }
            (Standing::Receipt, JobKind::Serving) if is_receipt(&target.claim) => {
                let stage = self.shards.serving(target, &job).await?;
                let replay = repeat(self.evidence, target, (&stage, &job), (worker, &record)).await?;
                (replay, Some(Arc::clone(&stage.programs)))
            }
            _ => return Err(Gap::NoReceipt.into()),
        };

        if !is_wrong {
            let outcome = self.outcome(target, &job, &replay, &record).await?;
            if outcome.state_root == target.claim.newState && outcome.logs.roots() == record.logs {
                drop(turn);
                let found = self.boundaries.compare(target, &job, &record.logs, &record.signatures).await?;
                self.evidence.forget(&record).await;
                return Ok(found.unwrap_or(Finding::Right));
            }
            tracing::warn!(claim = %target.id, %lane, "the claim differs from its re-execution");
            if let Some(until) = self.withheld(target, &job).await? {
                return Ok(Finding::Withheld { until });
            }
        }
        let dispute =
            Dispute { ports: self.ports, executor: self.executor, target, job: &job, worker, replay, programs };
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
            return self.executor.run(replay.clone(), |replay, engine| replay.outcome(engine)).await;
        }
        let (outcome, answer) = self.executor.run(replay.clone(), |replay, engine| replay.answer(engine)).await?;
        let logs = outcome.logs.roots();
        // What follows from other tensors than the claim's own says nothing about the claim.
        if (logs.fromPrevious, logs.fromNext) == (record.logs.fromPrevious, record.logs.fromNext) {
            self.giving.answer(target, job, (answer, record)).await.map_err(Failed::Audit)?;
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
}
