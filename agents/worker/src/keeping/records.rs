//! The records of our lanes: what is forgotten of them, and when.

use std::sync::Arc;

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::Owner;
use tensorlink_node::{Keeper, Ports};
use tensorlink_types::{Address, JobId, Lane};

use super::past::Past;
use crate::record::{LaneLog, LaneRecord};
use crate::state::Lanes;

/// Intervals kept after they are final: a neighbour that crashed may have to repeat them with us.
const KEEP: u32 = 4;

/// The records of our lanes.
pub(crate) struct Records {
    ports: Ports,
    lanes: Arc<Lanes>,
    keeper: Arc<Keeper>,
    /// Lanes of settled jobs.
    past: Past,
}

impl Records {
    pub(crate) fn new(ports: Ports, lanes: Arc<Lanes>, past: Past, keeper: Arc<Keeper>) -> Self {
        Self { ports, lanes, keeper, past }
    }

    /// A lane is ours: its record is opened.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn open(&self, lane: Lane, user: Address, manifest: String) -> Result<LaneRecord, JournalError> {
        let log = LaneLog::open(self.ports.journal.clone(), LaneRecord::new(lane, user, manifest))?;
        tracing::info!(%lane, "accepted");
        let record = log.get();
        self.lanes.add(log);
        Ok(record)
    }

    /// Forgets what no neighbour repeats and no later job goes on from, of our lanes of a job.
    pub(crate) async fn prune_all(&self, job: JobId) -> Result<(), JournalError> {
        for log in self.lanes.logs_of(job) {
            self.prune(&log, self.keeper.finality().needed_from(log.get().lane, KEEP)).await?;
        }
        Ok(())
    }

    /// Forgets intervals before `keep_from`, and lets go of their files.
    async fn prune(&self, log: &LaneLog, keep_from: u32) -> Result<(), JournalError> {
        let _pins = self.ports.pins.lock().await;
        let record = log.get();
        let store = self.ports.store.of(Owner::Lane(record.lane));
        // Before the first interval stands the shard's own initial state, which is needed to begin anew.
        let dropped =
            record.intervals.range(..keep_from).flat_map(|(n, i)| [(*n > 0).then_some(&i.state), Some(&i.inputs)]);
        for cid in dropped.flatten().filter(|cid| !record.needs(cid, keep_from)) {
            if let Ok(cid) = cid.parse()
                && let Err(error) = store.unpin(&cid).await
            {
                tracing::debug!(%cid, %error, "not unpinned");
            }
        }
        // Last, so that a kill before it leaves nothing pinned for ever: the events tell again.
        log.update(|record| {
            record.intervals.retain(|number, _| *number >= keep_from);
            record.rounds.retain(|number, _| *number >= keep_from);
        })
    }

    /// The job of a lane was settled at a block: nothing is left to do, and some day its record goes.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn settle(&self, lane: Lane, block: u64) -> Result<(), JournalError> {
        self.lanes.settle(lane, block)?;
        self.past.add(block, lane);
        Ok(())
    }

    /// Forgets the lanes that are past at a confirmed block; which.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn forget_past(&self, block: u64) -> Result<Vec<Lane>, JournalError> {
        let mut forgotten = Vec::new();
        while let Some(lane) = self.past.next(block) {
            tracing::debug!(%lane, "its job was settled long ago: its record goes");
            self.lanes.remove(lane);
            LaneLog::remove(&self.ports.journal, lane)?;
            forgotten.push(lane);
        }
        Ok(forgotten)
    }
}
