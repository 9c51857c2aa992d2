//! Shards of our lanes in training jobs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_node::ports::chain::JobView;
use tensorlink_node::shard::Shard;
use tensorlink_program::engine::Engine;
use tensorlink_types::Lane;

use super::files::Files;
use crate::context::Context;
use crate::hiring::fetch;
use crate::hiring::promises::Promises;
use crate::record::LaneRecord;
use crate::state::Lanes;

/// Shards that were fetched, of lanes whose jobs are not settled.
pub(crate) struct Shards<E> {
    context: Arc<Context<E>>,
    lanes: Arc<Lanes>,
    promises: Arc<Promises>,
    files: Arc<Files>,
    here: Mutex<HashMap<Lane, Arc<Shard>>>,
}

impl<E: Engine> Shards<E> {
    pub(crate) fn new(context: Arc<Context<E>>, lanes: Arc<Lanes>, promises: Arc<Promises>, files: Arc<Files>) -> Self {
        Self { context, lanes, promises, files, here: Mutex::default() }
    }

    fn here(&self) -> MutexGuard<'_, HashMap<Lane, Arc<Shard>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shard of a lane, fetched once.
    ///
    /// # Errors
    /// For people, where it cannot be had now.
    pub(crate) async fn of(&self, record: &LaneRecord, job: &JobView) -> Result<Arc<Shard>, String> {
        let lane = record.lane;
        if let Some(shard) = self.here().get(&lane).cloned() {
            return Ok(shard);
        }
        let (owner, room) = (self.files.owner_for(lane), self.promises.owed(lane));
        let fetched = fetch(&self.context, job, (lane.stage, record.manifest()?), (owner, &room)).await;
        self.files.let_go_if_settled(lane).await;
        let shard = fetched.map_err(|e| e.to_string())?;
        self.promises.fetched(lane);
        let mut here = self.here();
        // Asked while it is held: who settles the lane drops its shard afterwards.
        if self.lanes.is_open(lane) {
            here.insert(lane, shard.clone());
        }
        drop(here);
        Ok(shard)
    }

    /// A lane's shard makes room, but for who computes with it now: its job is settled.
    pub(crate) fn forget(&self, lane: Lane) {
        self.here().remove(&lane);
    }
}
