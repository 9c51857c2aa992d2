//! How far a job is final, by confirmed events: a training that ends early goes on from the last interval that is final
//! in every stage, so no stage forgets the state after it, however far ahead of the others its own claims are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_types::{JobId, Lane};

use crate::ports::Event;

#[derive(Debug)]
struct Job {
    stages: u16,
    /// Intervals that are final, of lanes that have any.
    lanes: HashMap<Lane, u32>,
}

impl Job {
    /// Intervals that are final in every stage: of a stage's replicas the furthest counts.
    fn everywhere(&self) -> u32 {
        let of_stage = |stage| {
            let replicas = self.lanes.iter().filter(|(lane, _)| lane.stage == stage);
            replicas.map(|(_, intervals)| *intervals).max().unwrap_or_default()
        };
        (0..self.stages).map(of_stage).min().unwrap_or_default()
    }
}

/// What is final of the jobs that are open; feed it every event from the deployment's first block.
#[derive(Default, Debug)]
pub struct Finality(Mutex<HashMap<JobId, Job>>);

impl Finality {
    fn jobs(&self) -> MutexGuard<'_, HashMap<JobId, Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a confirmed event.
    pub fn apply(&self, event: &Event) {
        match event {
            Event::JobPosted { job, terms, .. } => {
                self.jobs().insert(*job, Job { stages: terms.stages, lanes: HashMap::new() });
            }
            Event::ClaimsFinalized { lane, to, .. } => {
                if let Some(job) = self.jobs().get_mut(&lane.job) {
                    let of_lane = job.lanes.entry(*lane).or_default();
                    *of_lane = (*of_lane).max(*to);
                }
            }
            Event::JobSettled { job, .. } => drop(self.jobs().remove(job)),
            _ => {}
        }
    }

    /// The first interval of an open job's lane whose files are still needed: those of its last `repeated` final ones,
    /// and the state that every stage of the job has reached.
    pub fn needed_from(&self, lane: Lane, repeated: u32) -> u32 {
        let jobs = self.jobs();
        let Some(job) = jobs.get(&lane.job) else { return 0 };
        let of_lane = job.lanes.get(&lane).copied().unwrap_or_default();
        of_lane.saturating_sub(repeated).min(job.everywhere().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::{Address, U256, abi::JobTerms};

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
}
