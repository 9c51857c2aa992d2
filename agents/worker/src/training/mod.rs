//! Lanes of training jobs: the shard of each is fetched, its intervals are computed and claimed, until it is over.
//!
//! | module | what lives there |
//! |---|---|
//! | [`lane`] | the work on a lane: meet the neighbours, execute, write down; where it leaves its bounds, go no further |
//! | [`schedule`], [`link`], [`boundary`] | order of micro-batches; stream to a neighbour; signed logs |
//! | [`claims`], [`claimant`], [`sealing`] | how claims get on chain; each of them; those of replicas |
//! | [`metrics`] | progress for people |

pub mod boundary;
pub mod claimant;
pub mod claims;
pub mod lane;
pub mod link;
pub mod metrics;
pub mod schedule;
pub mod sealing;

use std::sync::Arc;

use tensorlink_node::Keeper;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::Event;
use tensorlink_program::engine::Engine;
use tensorlink_types::abi::Claim;
use tokio_util::sync::CancellationToken;

use self::claimant::Claimant;
use self::lane::LaneTask;
use crate::context::{BACK_OFF, Context};
use crate::custody::Holders;
use crate::evidence::Withheld;
use crate::keeping::{Files, Payout, Shards};
use crate::record::LaneLog;
use crate::state::{Lanes, Stops, unsettled_job};

/// The training of a worker.
pub(crate) struct Training<E> {
    context: Arc<Context<E>>,
    lanes: Arc<Lanes>,
    shards: Arc<Shards<E>>,
    files: Arc<Files>,
    payout: Arc<Payout>,
    keeper: Arc<Keeper>,
    withheld: Arc<Withheld>,
    holders: Holders,
}

impl<E> Training<E>
where
    E: Engine + Send + 'static,
    E::Tensor: Send + 'static,
{
    pub(crate) fn new(
        context: Arc<Context<E>>,
        lanes: Arc<Lanes>,
        shards: Arc<Shards<E>>,
        files: Arc<Files>,
        payout: Arc<Payout>,
        keeper: Arc<Keeper>,
        withheld: Arc<Withheld>,
    ) -> Self {
        let holders = Holders::new(context.ports.clone());
        Self { context, lanes, shards, files, payout, keeper, withheld, holders }
    }

    /// Takes in a confirmed event: what it tells of claims is on record.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn apply(&self, event: &Event) -> Result<(), JournalError> {
        let Some(job) = event.job_of_claims() else { return Ok(()) };
        let kept_by_others = self.keeper.finality().kept_by_others(job);
        for log in self.lanes.logs_of(job) {
            sealing::told(&log, event)?;
            if !log.get().over {
                log.update(|record| record.kept_by_others = kept_by_others)?;
            }
        }
        if let Event::ReplicasDiffer { job, stage, interval, claim } = event
            && self.lanes.of(*job).iter().any(|lane| lane.stage == *stage)
        {
            tracing::warn!(%job, stage, interval, %claim, "replicas of this stage differ: not all have computed right");
        }
        Ok(())
    }

    /// A claim is confirmed: a lane of ours stops where it is not the one that we made.
    pub(crate) fn confirmed(&self, claim: &Claim, committed_at: u64) {
        let lane = claim.lane();
        if let Some(log) = self.lanes.log(lane)
            && let Err(error) = claims::confirmed(&log, claim, committed_at)
            && self.lanes.goes_on(lane)
        {
            tracing::error!(%lane, %error, "this lane stops");
            self.lanes.stop(lane);
        }
    }

    /// Everything a running lane needs, until it is over.
    pub(crate) async fn work(self: Arc<Self>, log: Arc<LaneLog>) {
        let lane = log.get().lane;
        let Some(Stops { compute, all }) = self.lanes.stops(lane) else { return };
        let Some(task) = self.prepare(&log, &all).await else { return };
        let (job, awaited) = (task.job.clone(), task.awaited.clone());
        let computing = async {
            match task.run(compute).await {
                Ok(()) => tracing::info!(%lane, "computed"),
                Err(error) => tracing::error!(%lane, %error, "computing stops"),
            }
        };
        let claiming = async {
            let ports = &self.context.ports;
            let by = Claimant::new(ports.chain.clone(), ports.identity.clone(), ports.contracts);
            // Until the settlement is confirmed: a reorganisation may undo it, and what made the last claims final.
            while !all.is_cancelled() {
                if let Err(error) = claims::run(by.clone(), log.clone(), all.clone()).await {
                    tracing::error!(%lane, %error, "this lane is over");
                    self.lanes.stop(lane);
                    if let Err(error) = log.update(|record| record.over = true) {
                        tracing::error!(%lane, %error, "its record cannot be closed");
                    }
                    return;
                }
                if log.get().barred_from.is_some() {
                    self.lanes.stop_computing(lane);
                }
                self.payout.settle(lane.job, &all).await;
            }
        };
        let demanding = self.withheld.demand_what_is_owed(&log, &job, &awaited, &all);
        let holders =
            async { tokio::join!(self.holders.find(&log, &job, &all), self.holders.mirror(&log, &job, &all)) };
        tokio::join!(computing, claiming, demanding, holders);
        self.files.let_go_if_settled(lane).await;
    }

    /// Fetches what a lane needs; retries until it has it or the lane is stopped.
    async fn prepare(&self, log: &Arc<LaneLog>, stop: &CancellationToken) -> Option<LaneTask<E>> {
        let record = log.get();
        let lane = record.lane;
        loop {
            match self.try_prepare(log).await {
                Ok(task) => return task,
                Err(error) => tracing::warn!(%lane, error, "cannot begin yet"),
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = self.context.ports.clock.sleep(BACK_OFF) => {}
            }
        }
    }

    async fn try_prepare(&self, log: &Arc<LaneLog>) -> Result<Option<LaneTask<E>>, String> {
        let record = log.get();
        let lane = record.lane;
        let Some(job) = unsettled_job(self.context.ports.chain.as_ref(), lane).await? else { return Ok(None) };
        // The confirmed event is the law; an endpoint that lags or forked says otherwise.
        if record.lineage != Some(job.lineage) {
            return Err("the endpoint has another job key or first step than was confirmed".to_owned());
        }
        let shard = self.shards.of(&record, &job).await?;
        let members = self.context.roster.members(lane.job).ok_or_else(|| "the job is not confirmed".to_owned())?;
        let worker = |stage: u16| {
            let index = usize::from(lane.replica) * usize::from(job.stages) + usize::from(stage);
            members.workers.get(index).copied()
        };
        let previous = lane.stage.checked_sub(1).and_then(worker);
        let next = Some(lane.stage + 1).filter(|stage| *stage < job.stages).and_then(worker);
        let context = self.context.clone();
        let awaited = self.withheld.awaited(lane);
        Ok(Some(LaneTask { context, job, log: log.clone(), shard, neighbours: (previous, next), awaited }))
    }
}
