//! Lanes of jobs that were settled long ago: their records go, when no reorganisation reaches so far back, no auditor
//! is paid over them, and the history forgets such jobs, too.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tensorlink_node::Ports;
use tensorlink_node::history::Thrift;
use tensorlink_types::Lane;

use crate::error::WorkerError;
use crate::record::LaneLog;

/// Blocks after a job's settlement with which the records of its lanes go.
const KEPT: u64 = Thrift::DEPTH;

/// Lanes of settled jobs by the blocks that settled them.
#[derive(Debug, Default)]
pub(crate) struct Past(Mutex<BTreeSet<(u64, Lane)>>);

impl Past {
    /// What records tell, before any event. A job of which no event tells any more when it was settled is past so many
    /// blocks from now.
    ///
    /// # Errors
    /// When the journal or the chain fails.
    pub(crate) async fn open(ports: &Ports) -> Result<Self, WorkerError> {
        let past = Self::default();
        for log in LaneLog::open_all(&ports.journal)? {
            let record = log.get();
            if let Some(at) = record.settled_at {
                past.add(at, record.lane);
            } else if record.over && ports.chain.is_known_settled(record.lane.job).await {
                let now = ports.chain.head().await?.number;
                log.update(|record| record.settled_at = Some(now))?;
                past.add(now, record.lane);
            }
        }
        Ok(past)
    }

    pub(super) fn add(&self, settled_at: u64, lane: Lane) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((settled_at, lane));
    }

    /// A lane that is past at a block.
    pub(super) fn next(&self, block: u64) -> Option<Lane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (settled_at, _) = lanes.first()?;
        if settled_at.saturating_add(KEPT) <= block { lanes.pop_first().map(|(_, lane)| lane) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::JobId;

    use super::*;

    #[test]
    fn lanes_are_past_in_the_order_of_their_settlements_and_not_a_block_earlier() {
        let lane = |job| Lane { job: JobId(job), stage: 0, replica: 0 };
        let past = Past::default();
        for (settled_at, job) in [(9, 1), (7, 2), (9, 3)] {
            past.add(settled_at, lane(job));
        }
        assert_eq!(past.next(KEPT + 6), None);
        assert_eq!((past.next(KEPT + 7), past.next(KEPT + 8)), (Some(lane(2)), None));
        assert_eq!((past.next(KEPT + 9), past.next(KEPT + 9)), (Some(lane(1)), Some(lane(3))));
        assert_eq!(past.next(u64::MAX), None);
    }
}
