//! What a worker forgets of its lanes, and when.

use tensorlink_model::CacheEngine;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::Owner;
use tensorlink_types::JobId;

use crate::lane::KEEP;
use crate::record::LaneLog;
use crate::role::Worker;

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Forgets what no neighbour repeats and no later job goes on from, of our lanes of a job.
    pub(crate) async fn prune_all(&self, job: JobId) -> Result<(), JournalError> {
        for lane in self.lanes_of(job) {
            if let Some(log) = self.log_of(lane) {
                self.prune(&log, self.keeper.finality().needed_from(lane, KEEP)).await?;
            }
        }
        Ok(())
    }

    /// Forgets intervals before `keep_from`, and lets go of their files.
    async fn prune(&self, log: &LaneLog, keep_from: u32) -> Result<(), JournalError> {
        let _pins = self.context.ports.pins.lock().await;
        let record = log.get();
        let store = self.context.ports.store.of(Owner::Lane(record.lane));
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

    /// Forgets the lanes that are past at a confirmed block.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn forget_past(&self, block: u64) -> Result<(), JournalError> {
        while let Some(lane) = self.past.next(block) {
            tracing::debug!(%lane, "its job was settled long ago: its record goes");
            self.lanes().remove(&lane);
            LaneLog::remove(&self.context.ports.journal, lane)?;
        }
        Ok(())
    }
}
