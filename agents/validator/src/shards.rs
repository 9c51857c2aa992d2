//! Shards of what is audited, from whoever holds them, in memory that audits take together: who finds none waits until
//! others give it back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tensorlink_node::Ports;
use tensorlink_node::budget::{Budget, Hold};
use tensorlink_node::custody::holders;
use tensorlink_node::footprint::Footprint;
use tensorlink_node::ports::Owner;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::retry::{Failure, retry};
use tensorlink_node::serving::ServingShard;
use tensorlink_node::shard::{Room, Shard, ShardError, ShardSource};
use tensorlink_types::Lane;

use crate::ask::PATIENCE;
use crate::finding::{Failed, fatal};
use crate::receipt::LastStage;
use crate::target::Target;

/// Longest wait for memory. Who waits may have what others wait for.
const WAIT: Duration = Duration::from_secs(60);

/// Whether a shard may be had a little later: a node that has just come up may not have met any holder yet.
fn passing(error: ShardError) -> Failure<ShardError> {
    match error {
        ShardError::Chain(_) | ShardError::Store(_) => Failure::Transient(error),
        error => Failure::Permanent(error),
    }
}

/// Fetches shards.
#[derive(Clone, Copy)]
pub(crate) struct Shards<'a> {
    ports: &'a Ports,
    memory: &'a Arc<Budget>,
    stages: &'a LastStage,
}

impl<'a> Shards<'a> {
    /// Into this memory; of serving jobs the last stage is kept.
    pub(crate) const fn new(ports: &'a Ports, memory: &'a Arc<Budget>, stages: &'a LastStage) -> Self {
        Self { ports, memory, stages }
    }

    /// A shard of a training job.
    pub(crate) async fn training(&self, target: &Target, job: &JobView, stage: u16) -> Result<Arc<Shard>, Failed> {
        let source = self.source(target, job, stage).await?;
        let (chain, store) = (self.ports.chain.as_ref(), self.ports.store.of(Owner::Nobody));
        let room = (job.steps_per_interval, self as &dyn Room);
        let fetch = || async { Shard::fetch(chain, store.as_ref(), &source, room).await.map_err(passing) };
        Ok(Arc::new(retry(self.ports.clock.as_ref(), PATIENCE, fetch).await.map_err(fatal)?))
    }

    /// A stage of a serving job, checked against the chain when it was fetched.
    pub(crate) async fn serving(&self, target: &Target, job: &JobView) -> Result<Arc<ServingShard>, Failed> {
        let source = self.source(target, job, target.claim.stage).await?;
        let (chain, store) = (self.ports.chain.as_ref(), self.ports.store.of(Owner::Nobody));
        let fetch = || async {
            let room = (job.steps_per_interval, self as &dyn Room);
            let fetched = ServingShard::fetch(chain, store.as_ref(), &source, room);
            self.stages.of((source.job, source.stage), fetched).await.map_err(passing)
        };
        retry(self.ports.clock.as_ref(), PATIENCE, fetch).await.map_err(fatal)
    }

    async fn source(&self, target: &Target, job: &JobView, stage: u16) -> Result<ShardSource, Failed> {
        let lane = Lane { stage, ..target.claim.lane() };
        let holders = holders(self.ports.chain.as_ref(), job, lane).await.map_err(fatal)?;
        Ok(ShardSource { job: job.id, stage, manifest: target.manifest, holders })
    }
}

#[async_trait]
impl Room for Shards<'_> {
    async fn take(&self, needs: Footprint) -> Result<Option<Hold>, ShardError> {
        // A repetition beside it never is.
        let needed = needs.lane;
        if let Some(hold) = self.memory.take(needed) {
            return Ok(Some(hold));
        }
        self.stages.forget();
        let hold = tokio::select! {
            hold = self.memory.wait(needed) => hold,
            () = self.ports.clock.sleep(WAIT) => None,
        };
        let (left, limit) = (self.memory.left(), self.memory.total());
        hold.map(Some).ok_or(ShardError::Memory { needed, left, limit })
    }
}
