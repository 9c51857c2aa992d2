//! What runs for a lane of a training job: its shard is fetched, its intervals are computed and claimed, until it is
//! over.

use std::sync::Arc;

use tensorlink_model::CacheEngine;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::shard::Shard;
use tokio_util::sync::CancellationToken;

use crate::claimant::Claimant;
use crate::claims;
use crate::lane::LaneTask;
use crate::quote::fetch;
use crate::record::{LaneLog, LaneRecord};
use crate::role::{BACK_OFF, Worker};

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Everything a running lane needs, until it is over.
    pub(crate) async fn work(self: Arc<Self>, log: Arc<LaneLog>) {
        let lane = log.get().lane;
        let Some((compute, all)) = self.lanes().get(&lane).map(|r| (r.compute.clone(), r.all.clone())) else { return };
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
                    self.stop(lane, true);
                    if let Err(error) = log.update(|record| record.over = true) {
                        tracing::error!(%lane, %error, "its record cannot be closed");
                    }
                    return;
                }
                if log.get().barred_from.is_some() {
                    self.stop(lane, false);
                }
                self.settle(lane.job, &all).await;
            }
        };
        let demanding = self.demand_what_is_owed(&log, &job, &awaited, &all);
        tokio::join!(computing, claiming, demanding, self.find_holders(&log, &job, &all));
        self.let_go_if_settled(lane).await;
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
        let Some(job) = self.unsettled_job(lane).await? else { return Ok(None) };
        // The confirmed event is the law; an endpoint that lags or forked says otherwise.
        if record.lineage != Some(job.lineage) {
            return Err("the endpoint has another job key or first step than was confirmed".to_owned());
        }
        let shard = self.shard(&record, &job).await?;
        let members = self.context.roster.members(lane.job).ok_or_else(|| "the job is not confirmed".to_owned())?;
        let worker = |stage: u16| {
            let index = usize::from(lane.replica) * usize::from(job.stages) + usize::from(stage);
            members.workers.get(index).copied()
        };
        let previous = lane.stage.checked_sub(1).and_then(worker);
        let next = Some(lane.stage + 1).filter(|stage| *stage < job.stages).and_then(worker);
        let context = self.context.clone();
        let awaited = self.lanes().get(&lane).map(|running| running.awaited.clone()).unwrap_or_default();
        Ok(Some(LaneTask { context, job, log: log.clone(), shard, neighbours: (previous, next), awaited }))
    }

    /// The shard of a lane, fetched once.
    pub(crate) async fn shard(&self, record: &LaneRecord, job: &JobView) -> Result<Arc<Shard>, String> {
        let lane = record.lane;
        if let Some(shard) = self.lanes().get(&lane).and_then(|running| running.shard.clone()) {
            return Ok(shard);
        }
        let (owner, room) = (self.owner_for(lane), self.promises.owed(lane));
        let fetched = fetch(&self.context, job, (lane.stage, record.manifest()?), (owner, &room)).await;
        self.let_go_if_settled(lane).await;
        let shard = fetched.map_err(|e| e.to_string())?;
        self.promises.fetched(lane);
        if let Some(running) = self.lanes().get_mut(&lane).filter(|running| !running.settled) {
            running.shard = Some(shard.clone());
        }
        Ok(shard)
    }
}
