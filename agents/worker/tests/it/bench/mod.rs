//! A worker's lane of finished intervals before a chain in memory, whose claims go on for a moment at a time.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::Journal;
use tensorlink_node::ports::chain::JobView;
use tensorlink_types::B256;
use tensorlink_types::abi::{BoundaryLogs, Claim, Holder};
use tensorlink_worker::record::{Interval, LaneLog, LaneRecord};
use tensorlink_worker::training::claimant::{Claimant, ClaimsError};
use tensorlink_worker::training::claims;
use tokio_util::sync::CancellationToken;

use crate::support::{CONTRACTS, MemoryChain, USER, identity, job_view, lane};

/// Key of who keeps the lane's states.
const HOLDER: u8 = 9;
/// Intervals of the job.
pub(crate) const INTERVALS: u32 = 3;

/// The chain and the disk of a worker of the job's only stage.
pub(crate) struct Bench {
    pub(crate) chain: Arc<MemoryChain>,
    pub(crate) folder: tempfile::TempDir,
}

/// The claim of an interval.
pub(crate) fn claim(interval: u32) -> Claim {
    let state = |n: u32| B256::with_last_byte(n as u8 + 1);
    let (job, stage, replica) = (1, 0, 0);
    Claim { job, stage, replica, interval, parentState: state(interval), newState: state(interval + 1), io: B256::ZERO }
}

impl Bench {
    /// Of a job with so many replicas; the worker's is the first.
    pub(crate) fn new(replicas: u16) -> Self {
        let job = JobView { replicas, ..job_view(1, INTERVALS) };
        let chain = MemoryChain::new(job, &[identity(7).address()], &[]);
        Self { chain, folder: tempfile::tempdir().unwrap() }
    }

    /// The log as a process that just started finds it.
    pub(crate) fn log(&self) -> Arc<LaneLog> {
        let journal = Journal::open(self.folder.path()).unwrap();
        Arc::new(LaneLog::open(journal, LaneRecord::new(lane(0), USER, String::new())).unwrap())
    }

    /// The log with so many finished intervals.
    pub(crate) fn computed(&self, intervals: u32) -> Arc<LaneLog> {
        let log = self.log();
        log.update(|record| {
            let zero = B256::ZERO;
            let logs = BoundaryLogs { fromPrevious: zero, fromNext: zero, toPrevious: zero, toNext: zero };
            for n in 0..intervals {
                record.intervals.insert(n, Interval::new(claim(n), logs.clone(), String::new(), String::new()));
            }
            record.next = intervals;
        })
        .unwrap();
        log
    }

    /// Lets the lane's claims go on for a moment.
    pub(crate) async fn run(&self, log: &Arc<LaneLog>) -> Option<Result<(), ClaimsError>> {
        let by = Claimant::new(self.chain.clone(), identity(7), CONTRACTS);
        let run = claims::run(by, log.clone(), CancellationToken::new());
        tokio::time::timeout(Duration::from_millis(300), run).await.ok()
    }

    /// The user attests that it has the state after an interval.
    pub(crate) fn held(&self, log: &LaneLog, interval: u32) {
        let signature = identity(HOLDER).sign(CONTRACTS.holding(CONTRACTS.claim_id(&claim(interval)))).unwrap();
        self.chain.with(|l| l.job.user = identity(HOLDER).address());
        let holder = Holder { signature: signature.into(), ..Holder::default() };
        log.update(|record| record.intervals.get_mut(&interval).unwrap().holder = Some(holder)).unwrap();
    }

    /// How many calls of a kind were sent.
    pub(crate) fn sent(&self, what: &str) -> usize {
        self.chain.with(|l| l.sent.iter().filter(|sent| **sent == what).count())
    }
}
