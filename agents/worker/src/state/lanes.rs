//! Lanes of ours: their records, and what stops the work on them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_node::journal::JournalError;
use tensorlink_proof::commit::Contracts;
use tensorlink_types::abi::Offer;
use tensorlink_types::{Address, ClaimId, JobId, Lane};
use tokio_util::sync::CancellationToken;

use crate::record::{Interval, LaneLog, LaneRecord};

/// The lane of a job for which a worker's offer is accepted.
pub(crate) fn lane_of(job: JobId, offers: &[Offer], worker: Address) -> Option<Lane> {
    let offer = offers.iter().find(|offer| offer.worker == worker)?;
    Some(Lane { job, stage: offer.stage, replica: offer.replica })
}

/// What stops the work on a lane.
#[derive(Clone, Debug)]
pub(crate) struct Stops {
    /// Stops computing; claims that are made go on to the chain.
    pub(crate) compute: CancellationToken,
    /// Stops everything.
    pub(crate) all: CancellationToken,
}

/// A lane of ours.
#[derive(Debug)]
struct Ours {
    log: Arc<LaneLog>,
    stops: Stops,
    /// Whether its job is settled: nobody can ask for its files any more.
    settled: bool,
}

/// Lanes of ours, until their records go.
#[derive(Debug)]
pub(crate) struct Lanes {
    all: Mutex<HashMap<Lane, Ours>>,
    /// Stops the worker.
    end: CancellationToken,
}

impl Lanes {
    /// None yet, of a worker that `end` stops.
    pub(crate) fn new(end: CancellationToken) -> Self {
        Self { all: Mutex::default(), end }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Lane, Ours>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane is ours.
    pub(crate) fn add(&self, log: LaneLog) {
        let all = self.end.child_token();
        let stops = Stops { compute: all.child_token(), all };
        let lane = log.get().lane;
        self.all().insert(lane, Ours { log: Arc::new(log), stops, settled: false });
    }

    /// The record of a lane goes.
    pub(crate) fn remove(&self, lane: Lane) {
        self.all().remove(&lane);
    }

    pub(crate) fn contains(&self, lane: Lane) -> bool {
        self.all().contains_key(&lane)
    }

    /// Whether a lane of a job is ours.
    pub(crate) fn has_any(&self, job: JobId) -> bool {
        self.all().keys().any(|lane| lane.job == job)
    }

    /// Our lanes of a job.
    pub(crate) fn of(&self, job: JobId) -> Vec<Lane> {
        self.all().keys().filter(|lane| lane.job == job).copied().collect()
    }

    pub(crate) fn log(&self, lane: Lane) -> Option<Arc<LaneLog>> {
        self.all().get(&lane).map(|ours| ours.log.clone())
    }

    /// Records of our lanes of a job.
    pub(crate) fn logs_of(&self, job: JobId) -> Vec<Arc<LaneLog>> {
        let all = self.all();
        all.iter().filter(|(lane, _)| lane.job == job).map(|(_, ours)| ours.log.clone()).collect()
    }

    /// How many are not over.
    pub(crate) fn busy(&self) -> usize {
        self.all().values().filter(|ours| !ours.log.get().over).count()
    }

    /// A claim of ours that is not forgotten, with its lane's record.
    pub(crate) fn find(&self, id: ClaimId, contracts: &Contracts) -> Option<(Interval, LaneRecord)> {
        let records: Vec<LaneRecord> = self.all().values().map(|ours| ours.log.get()).collect();
        records.into_iter().find_map(|record| {
            let interval = record.intervals.values().find(|interval| contracts.claim_id(&interval.claim) == id)?;
            Some((interval.clone(), record))
        })
    }

    /// What stops the work on a lane.
    pub(crate) fn stops(&self, lane: Lane) -> Option<Stops> {
        self.all().get(&lane).map(|ours| ours.stops.clone())
    }

    /// Whether a lane has not been stopped wholly.
    pub(crate) fn goes_on(&self, lane: Lane) -> bool {
        self.all().get(&lane).is_some_and(|ours| !ours.stops.all.is_cancelled())
    }

    /// Stops everything for a lane.
    pub(crate) fn stop(&self, lane: Lane) {
        if let Some(ours) = self.all().get(&lane) {
            ours.stops.all.cancel();
        }
    }

    /// Stops computing a lane; claims that are made go on to the chain.
    pub(crate) fn stop_computing(&self, lane: Lane) {
        if let Some(ours) = self.all().get(&lane) {
            ours.stops.compute.cancel();
        }
    }

    /// The job of a lane was settled at a block.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn settle(&self, lane: Lane, block: u64) -> Result<(), JournalError> {
        let mut all = self.all();
        let Some(ours) = all.get_mut(&lane) else { return Ok(()) };
        ours.settled = true;
        ours.log.update(|record| (record.over, record.settled_at) = (true, Some(block)))
    }

    /// Whether somebody can ask for a lane's files: it is ours, and its job is not settled.
    pub(crate) fn is_open(&self, lane: Lane) -> bool {
        self.all().get(&lane).is_some_and(|ours| !ours.settled)
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_node::Journal;

    use super::*;

    const LANE: Lane = Lane { job: JobId(1), stage: 0, replica: 0 };

    fn with_one() -> (tempfile::TempDir, CancellationToken, Lanes) {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let end = CancellationToken::new();
        let lanes = Lanes::new(end.clone());
        lanes.add(LaneLog::open(journal, LaneRecord::new(LANE, Address::ZERO, String::new())).unwrap());
        (folder, end, lanes)
    }

    #[test]
    fn computing_stops_alone_or_with_everything_and_all_with_the_worker() {
        let (_folder, end, lanes) = with_one();
        let stops = lanes.stops(LANE).unwrap();
        lanes.stop_computing(LANE);
        assert!(stops.compute.is_cancelled() && lanes.goes_on(LANE));
        end.cancel();
        assert!(stops.all.is_cancelled() && !lanes.goes_on(LANE));

        let (_folder, end, lanes) = with_one();
        let stops = lanes.stops(LANE).unwrap();
        lanes.stop(LANE);
        assert!(stops.compute.is_cancelled() && !lanes.goes_on(LANE) && !end.is_cancelled());
    }

    #[test]
    fn a_settled_lane_is_ours_and_takes_no_place() {
        let (_folder, _, lanes) = with_one();
        assert!(lanes.is_open(LANE) && lanes.busy() == 1);
        lanes.settle(LANE, 9).unwrap();
        assert!(!lanes.is_open(LANE) && lanes.busy() == 0 && lanes.contains(LANE));
        assert_eq!(lanes.log(LANE).unwrap().get().settled_at, Some(9));
        lanes.remove(LANE);
        assert!(lanes.of(LANE.job).is_empty() && lanes.settle(LANE, 10).is_ok());
    }
}
