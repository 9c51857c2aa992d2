//! What a silent worker must have received and computed, without a word from it: its neighbours' records tell what they
//! sent, and the shard where it began. Where the neighbours are silent, too, the whole pipeline is executed from the
//! job's first step on.

use std::sync::Arc;

use bytes::Bytes;
use tensorlink_node::Ports;
use tensorlink_node::interval::{Outcome, Span, state_root_of};
use tensorlink_node::pipeline::Pipeline;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::replay::Replay;
use tensorlink_node::shard::Shard;
use tensorlink_program::engine::Engine;
use tensorlink_proof::commit::Boundary;
use tensorlink_types::Lane;

use crate::claims::Claims;
use crate::evidence::Evidence;
use crate::executor::Executor;
use crate::finding::{Failed, Gap, fatal};
use crate::records::{record, replay};
use crate::shards::Shards;
use crate::target::{Standing, Target};

/// Works intervals out without their workers.
pub(crate) struct Rebuilding<'a, E> {
    ports: &'a Ports,
    claims: &'a Claims,
    evidence: Evidence<'a>,
    executor: Executor<'a, E>,
    shards: Shards<'a>,
}

impl<'a, E> Rebuilding<'a, E>
where
    E: Engine + Send + 'static,
{
    /// From what is on record of claims, and what their workers show.
    pub(crate) const fn new(
        ports: &'a Ports,
        claims: &'a Claims,
        evidence: Evidence<'a>,
        executor: Executor<'a, E>,
        shards: Shards<'a>,
    ) -> Self {
        Self { ports, claims, evidence, executor, shards }
    }

    /// The target's interval, worked out without its worker.
    pub(crate) async fn rebuild(&self, target: &Target, job: &JobView) -> Result<Replay, Failed> {
        let Standing::Committed { .. } = target.standing else { return Err(Gap::Alone.into()) };
        let replay = match self.rebuild_from_neighbours(target, job).await {
            Err(Failed::Gap(gap @ (Gap::Net(_) | Gap::Store(_) | Gap::Declined(_)))) => {
                tracing::info!(lane = %target.claim.lane(), %gap, "nor does a neighbour: the whole pipeline is executed");
                self.rebuild_from_the_start(target, job).await?
            }
            done => done?,
        };
        // It may have claimed to start from what it did not compute: then an earlier claim is wrong.
        if state_root_of(&replay.state) != target.claim.parentState {
            return Err(Gap::Record("state before the interval").into());
        }
        Ok(replay)
    }

    /// From what every stage computes where all are honest. Where several claim something else, one may have misled the
    /// others: the first of them is gone into alone. If it was misled itself, it has the liar's signature on what it
    /// received, and shows it.
    async fn rebuild_from_the_start(&self, target: &Target, job: &JobView) -> Result<Replay, Failed> {
        let mut shards = Vec::new();
        for stage in 0..job.stages {
            shards.push(self.shards.training(target, job, stage).await?);
        }
        let pipeline = Pipeline { shards, lineage: job.lineage, steps: job.steps_per_interval };
        let (stage, interval) = (target.claim.stage, target.claim.interval);
        let executed = self.executor.run_all(pipeline, stage, interval).await?;
        for (before, due) in (0..stage).zip(executed.claims) {
            let claimed = self.claims.beside(target, Lane { stage: before, ..target.claim.lane() }, interval);
            if claimed.is_some_and(|other| (other.claim.newState, other.claim.io) != (due.new_state, due.io)) {
                return Err(Gap::Neighbour(before).into());
            }
        }
        Ok(executed.replay)
    }

    /// From what neighbours recorded, from the lane's first interval on: as many are executed as the claim has
    /// before it.
    async fn rebuild_from_neighbours(&self, target: &Target, job: &JobView) -> Result<Replay, Failed> {
        let shard = self.shards.training(target, job, target.claim.stage).await?;
        let mut state = shard.initial_state.to_vec();
        for interval in 0..=target.claim.interval {
            let inputs = self.inputs(target, job, interval).await?;
            let steps = job.steps_per_interval;
            let span = Span { first_step: interval.saturating_mul(steps), steps };
            let replay = Replay { shard: shard.clone(), lineage: job.lineage, span, state, inputs };
            if interval == target.claim.interval {
                return Ok(replay);
            }
            state = self.executor.run(replay, |replay, engine| replay.outcome(engine)).await?.state;
        }
        Err(Gap::Record("interval").into())
    }

    /// What the lane received in an interval: for each step first all from the previous stage, then all from the next.
    async fn inputs(&self, target: &Target, job: &JobView, interval: u32) -> Result<Bytes, Failed> {
        let stage = target.claim.stage;
        let mut received = Vec::new();
        if let Some(previous) = stage.checked_sub(1) {
            received.push(self.sent_by(target, job, (previous, interval), Boundary::ToNext).await?);
        }
        if let Some(next) = stage.checked_add(1).filter(|next| *next < job.stages) {
            received.push(self.sent_by(target, job, (next, interval), Boundary::ToPrevious).await?);
        }
        let steps = job.steps_per_interval as usize;
        let mut inputs = Vec::new();
        for step in 0..steps {
            for tensors in &received {
                let per_step = tensors.len().checked_div(steps).unwrap_or_default();
                let of_step = tensors.iter().skip(step.saturating_mul(per_step)).take(per_step);
                of_step.for_each(|tensor| inputs.extend_from_slice(tensor));
            }
        }
        Ok(inputs.into())
    }

    /// What a neighbour sent in an interval, by its own record, which is right given what it received.
    async fn sent_by(
        &self,
        target: &Target,
        job: &JobView,
        (stage, interval): (u16, u32),
        over: Boundary,
    ) -> Result<Vec<Bytes>, Failed> {
        let lane = Lane { stage, ..target.claim.lane() };
        let neighbour = self.claims.beside(target, lane, interval).ok_or(Gap::Neighbour(stage))?;
        let (worker, _) = self.ports.chain.assignment(lane).await.map_err(fatal)?;
        let record = record(self.ports, &neighbour, worker).await?;
        let shard: Arc<Shard> = self.shards.training(target, job, stage).await?;
        let replay = replay(self.evidence, &neighbour, job, (worker, &record), shard).await?;
        let sent = move |replay: Replay, engine: E| replay.sent(engine, over);
        let (outcome, sent): (Outcome, Vec<Bytes>) = self.executor.run(replay, sent).await?;
        if outcome.state_root != neighbour.claim.newState || outcome.logs.roots() != record.logs {
            return Err(Gap::Neighbour(stage).into());
        }
        Ok(sent)
    }
}
