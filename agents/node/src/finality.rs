//! How far a job is claimed and final, by confirmed events: a training that ends early goes on from the last interval
//! that is final in every stage. So all stages have the same states kept by others, and none forgets the state after
//! that interval, however far ahead of the others its own claims are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_types::{JobId, Lane};

use crate::ports::Event;

/// Intervals whose states others keep are this part of a window apart, so that no more than a handful are kept until
/// they are final.
const APART: u64 = 4;

#[derive(Debug)]
struct Job {
    stages: u16,
    intervals: u32,
    /// Least time between intervals whose states others keep, seconds.
    apart: u64,
    /// Intervals that are claimed and not void, of lanes that have any.
    claimed: HashMap<Lane, u32>,
    /// Intervals that are final, of lanes that have any.
    finalized: HashMap<Lane, u32>,
    /// The newest interval whose state every stage has kept by others, and when the last stage claimed it.
    kept: Option<(u32, u64)>,
    closing: bool,
}

impl Job {
    /// Intervals that every stage has reached: of a stage's replicas the furthest counts.
    fn everywhere(&self, lanes: &HashMap<Lane, u32>) -> u32 {
        let of_stage = |stage| {
            let replicas = lanes.iter().filter(|(lane, _)| lane.stage == stage);
            replicas.map(|(_, intervals)| *intervals).max().unwrap_or_default()
        };
        (0..self.stages).map(of_stage).min().unwrap_or_default()
    }

    /// Whether others are to keep the states after the newest interval that every stage has claimed, the last claim of
    /// which was made `at` that time: the first, one that is long after the one before it, and the job's last.
    fn keep(&mut self, at: u64) {
        let Some(newest) = self.everywhere(&self.claimed).checked_sub(1) else { return };
        let due = match self.kept {
            None => true,
            Some((kept, _)) if newest == kept => false,
            Some((_, before)) => {
                self.closing || newest.saturating_add(1) == self.intervals || at >= before.saturating_add(self.apart)
            }
        };
        if due {
            self.kept = Some((newest, at));
        }
    }
}

/// What is claimed and final of the jobs that are open; feed it every event from the deployment's first block.
#[derive(Default, Debug)]
pub struct Finality(Mutex<HashMap<JobId, Job>>);

impl Finality {
    fn jobs(&self) -> MutexGuard<'_, HashMap<JobId, Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a confirmed event.
    pub fn apply(&self, event: &Event) {
        let mut jobs = self.jobs();
        match event {
            Event::JobPosted { job, terms, .. } => {
                let job_of = Job {
                    stages: terms.stages,
                    intervals: terms.intervals,
                    apart: u64::from(terms.challengeWindow) / APART,
                    claimed: HashMap::new(),
                    finalized: HashMap::new(),
                    kept: None,
                    closing: false,
                };
                jobs.insert(*job, job_of);
            }
            Event::ClaimCommitted { claim, committed_at, .. } => {
                let lane = claim.lane();
                if let Some(job) = jobs.get_mut(&lane.job) {
                    let before = job.everywhere(&job.claimed);
                    let of_lane = job.claimed.entry(lane).or_default();
                    *of_lane = (*of_lane).max(claim.interval.saturating_add(1));
                    if job.everywhere(&job.claimed) > before {
                        job.keep(*committed_at);
                    }
                }
            }
            Event::ClaimsVoided { lane, from } => {
                if let Some(job) = jobs.get_mut(&lane.job) {
                    let of_lane = job.claimed.entry(*lane).or_default();
                    *of_lane = (*of_lane).min(*from);
                    let at = job.kept.map_or(0, |(_, at)| at);
                    job.keep(at);
                }
            }
            Event::JobClosing { job, .. } => {
                if let Some(job) = jobs.get_mut(job) {
                    job.closing = true;
                    let at = job.kept.map_or(0, |(_, at)| at);
                    job.keep(at);
                }
            }
            Event::ClaimsFinalized { lane, to, .. } => {
                if let Some(job) = jobs.get_mut(&lane.job) {
                    let of_lane = job.finalized.entry(*lane).or_default();
                    *of_lane = (*of_lane).max(*to);
                }
            }
            Event::JobSettled { job, .. } => drop(jobs.remove(job)),
            _ => {}
        }
    }

    /// The newest interval of an open job whose state every stage is to have kept by others. It follows from confirmed
    /// events alone, so that the workers of all stages choose the same.
    pub fn kept_by_others(&self, job: JobId) -> Option<u32> {
        self.jobs().get(&job).and_then(|job| job.kept).map(|(interval, _)| interval)
    }

    /// Intervals that every stage of an open job has claimed.
    pub fn claimed_everywhere(&self, job: JobId) -> u32 {
        self.jobs().get(&job).map_or(0, |job| job.everywhere(&job.claimed))
    }

    /// The first interval of an open job's lane whose files are still needed: those of its last `repeated` final ones,
    /// and the state that every stage of the job has reached.
    pub fn needed_from(&self, lane: Lane, repeated: u32) -> u32 {
        let jobs = self.jobs();
        let Some(job) = jobs.get(&lane.job) else { return 0 };
        let of_lane = job.finalized.get(&lane).copied().unwrap_or_default();
        of_lane.saturating_sub(repeated).min(job.everywhere(&job.finalized).saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::abi::{Claim, JobTerms};
    use tensorlink_types::{Address, ClaimId, U256};

    use super::*;

    const JOB: JobId = JobId(7);

    fn lane(stage: u16, replica: u16) -> Lane {
        Lane { job: JOB, stage, replica }
    }

    #[test]
    fn what_the_slowest_stage_has_reached_is_needed_of_all() {
        let finality = Finality::default();
        let finalized = |lane, to| finality.apply(&Event::ClaimsFinalized { lane, from: 0, to });
        finalized(lane(0, 0), 9);
        assert_eq!(finality.needed_from(lane(0, 0), 1), 0, "a job that was not posted");
        let terms = JobTerms { stages: 2, replicas: 2, ..JobTerms::default() };
        finality.apply(&Event::JobPosted { job: JOB, user: Address::ZERO, deposit: U256::ZERO, terms });
        finalized(lane(0, 0), 9);
        assert_eq!(finality.needed_from(lane(0, 0), 1), 0, "nothing is final in the other stage");
        finalized(lane(1, 0), 2);
        assert_eq!(finality.needed_from(lane(0, 0), 4), 1, "the state after interval 1 is where the job would go on");
        finalized(lane(1, 1), 8);
        assert_eq!(finality.needed_from(lane(0, 0), 4), 5, "the furthest replica is what counts of a stage");
        assert_eq!(finality.needed_from(lane(1, 0), 4), 0, "a replica that is behind needs its own");
        assert_eq!(finality.needed_from(lane(0, 1), 4), 0);
        finality.apply(&Event::JobSettled { job: JOB, refund: U256::ZERO });
        assert_eq!(finality.needed_from(lane(0, 0), 4), 0, "forgotten");
    }

    #[test]
    fn all_stages_have_the_same_states_kept_by_others() {
        let finality = Finality::default();
        let terms = JobTerms { stages: 2, replicas: 1, intervals: 9, challengeWindow: 40, ..JobTerms::default() };
        finality.apply(&Event::JobPosted { job: JOB, user: Address::ZERO, deposit: U256::ZERO, terms });
        let claimed = |stage, interval, committed_at| {
            let claim = Claim { job: JOB.0, stage, interval, ..Claim::default() };
            finality.apply(&Event::ClaimCommitted { claim, id: ClaimId::default(), committed_at });
            finality.kept_by_others(JOB)
        };
        assert_eq!(claimed(0, 0, 100), None, "the other stage has not claimed it");
        assert_eq!(claimed(0, 1, 104), None);
        assert_eq!(claimed(1, 0, 105), Some(0), "the first that both have claimed");
        assert_eq!(claimed(1, 1, 114), Some(0), "a quarter of a window is not over");
        assert_eq!(claimed(1, 2, 116), Some(0), "one stage alone");
        assert_eq!(claimed(0, 2, 117), Some(2), "what was passed over is not kept");
        assert_eq!(claimed(1, 3, 118), Some(2));
        assert_eq!(claimed(0, 3, 119), Some(2));
        finality.apply(&Event::JobClosing { job: JOB, convicted: false });
        assert_eq!(finality.kept_by_others(JOB), Some(3), "where a job that ends can go on from");
        finality.apply(&Event::ClaimsVoided { lane: lane(1, 0), from: 2 });
        assert_eq!(finality.kept_by_others(JOB), Some(1), "what is void is no place to go on from");
        finality.apply(&Event::JobSettled { job: JOB, refund: U256::ZERO });
        assert_eq!(finality.kept_by_others(JOB), None, "forgotten");
    }

    #[test]
    fn the_last_interval_is_kept_however_soon_it_comes() {
        let finality = Finality::default();
        let terms = JobTerms { stages: 1, replicas: 2, intervals: 2, challengeWindow: 40, ..JobTerms::default() };
        finality.apply(&Event::JobPosted { job: JOB, user: Address::ZERO, deposit: U256::ZERO, terms });
        for (replica, interval) in [(0, 0), (1, 0), (1, 1)] {
            let claim = Claim { job: JOB.0, replica, interval, ..Claim::default() };
            finality.apply(&Event::ClaimCommitted { claim, id: ClaimId::default(), committed_at: 100 });
        }
        assert_eq!(finality.kept_by_others(JOB), Some(1), "of a stage's replicas the furthest counts");
    }
}
