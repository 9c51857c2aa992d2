//! A job that is stopped before its last interval.

use std::time::{Duration, Instant};

use tensorlink_node::ports::ChainError;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::wire::gossip::Progress;
use tensorlink_types::JobId;

use super::settling::close;
use super::stops::{Judge, Stop};
use crate::live::say;
use crate::node::Node;
use crate::report::Report;

/// Longest wait for the claims of the interval whose loss ends a job.
const CLAIMS: Duration = Duration::from_secs(120);

/// A job that is being stopped early.
pub(super) struct Ending {
    pub(super) why: Stop,
    /// Intervals whose claims are waited for, and since when.
    intervals: u32,
    since: Instant,
}

/// Tells the judge what a report says. Whether there was anything new in it. The last interval's is of no consequence:
/// the job ends anyway.
pub(super) fn heard(judge: &mut Judge, view: &JobView, report: &Progress) -> bool {
    let intervals = report.step.checked_div(view.steps_per_interval).unwrap_or(0);
    if !(1..view.intervals).contains(&intervals) {
        return false;
    }
    let heard = judge.hear(intervals, report.saturation, report.loss);
    report.halted.is_some_and(|excess| judge.halted(intervals, excess)) || heard
}

impl Ending {
    /// By the judge's verdict, if there is one.
    pub(super) fn of(judge: &Judge, job: JobId) -> Option<Self> {
        let (why, intervals) = judge.verdict()?;
        say!("job {job} is stopped: {why}");
        Some(Self { why, intervals, since: Instant::now() })
    }

    /// Cancels the job once each lane has claimed what it computed: a job that is closed takes no more claims. Not only
    /// once: a reorganisation may undo it.
    pub(super) async fn go_on(&self, node: &Node, view: &JobView, report: &Report) -> Result<(), ChainError> {
        let claimed = !report.lanes.is_empty() && report.lanes.values().all(|lane| lane.claims >= self.intervals);
        if !claimed && self.since.elapsed() <= CLAIMS {
            return Ok(());
        }
        match close(node, view.id).await {
            Err(error @ (ChainError::Unavailable(_) | ChainError::Pending(_))) => {
                tracing::warn!(job = %view.id, %error, "the job cannot be cancelled yet");
                Ok(())
            }
            closed => closed,
        }
    }
}
