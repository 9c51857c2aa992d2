//! Claims of replicas, remembered so that all of a stage and interval are examined once two of them differ, whatever
//! the rate: one at least is wrong, or received or continues what is (rule P-26).

use std::collections::{BTreeMap, HashSet};

use tensorlink_node::ports::Event;
use tensorlink_types::{JobId, Lane};

use crate::target::Target;

/// A stage and interval of a job.
type Place = (JobId, u16, u32);

/// What is claimed of a place.
#[derive(Default)]
struct Claimed {
    differ: bool,
    /// The claims, and whether each is examined anyhow.
    claims: Vec<(Target, bool)>,
}

/// The claims that are not final of all jobs with several replicas.
#[derive(Default)]
pub(crate) struct Replicas {
    jobs: HashSet<JobId>,
    places: BTreeMap<Place, Claimed>,
}

impl Replicas {
    /// Takes in an event; of claims that are made and of replicas that differ it is told by itself.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::JobPosted { job, terms, .. } => self.posted(*job, terms.replicas),
            Event::JobSettled { job, .. } => self.settled(*job),
            Event::ClaimsFinalized { lane, to, .. } => self.finalized(*lane, *to),
            _ => {}
        }
    }

    /// A job was posted.
    pub(crate) fn posted(&mut self, job: JobId, replicas: u16) {
        if replicas > 1 {
            self.jobs.insert(job);
        }
    }

    /// A job is settled.
    pub(crate) fn settled(&mut self, job: JobId) {
        if self.jobs.remove(&job) {
            self.places.retain(|place, _| place.0 != job);
        }
    }

    /// A claim was made, which was drawn or not; whether it is to be examined.
    pub(crate) fn claimed(&mut self, target: &Target, drawn: bool) -> bool {
        let lane = target.claim.lane();
        if !self.jobs.contains(&lane.job) {
            return drawn;
        }
        let claimed = self.places.entry((lane.job, lane.stage, target.claim.interval)).or_default();
        let examined = drawn || claimed.differ;
        claimed.claims.push((target.clone(), examined));
        examined
    }

    /// Replicas differ; which claims are to be examined now.
    pub(crate) fn differ(&mut self, place: Place) -> Vec<Target> {
        let Some(claimed) = self.places.get_mut(&place) else { return Vec::new() };
        claimed.differ = true;
        let fresh = claimed.claims.iter_mut().filter(|(_, examined)| !examined);
        fresh
            .map(|(target, examined)| {
                *examined = true;
                target.clone()
            })
            .collect()
    }

    /// Claims of a lane are final, up to `to`.
    pub(crate) fn finalized(&mut self, lane: Lane, to: u32) {
        if !self.jobs.contains(&lane.job) {
            return;
        }
        let (first, last) = ((lane.job, lane.stage, 0), (lane.job, lane.stage, to));
        for (_, claimed) in self.places.range_mut(first..last) {
            claimed.claims.retain(|(target, _)| target.claim.lane() != lane);
        }
        self.places.retain(|_, claimed| !claimed.claims.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use cid::Cid;
    use tensorlink_types::abi::Claim;
    use tensorlink_types::{B256, ClaimId};

    use super::*;
    use crate::target::Standing;

    const JOB: JobId = JobId(7);
    const PLACE: Place = (JOB, 0, 3);

    fn target(replica: u16, interval: u32) -> Target {
        let (parent, new, io) = (B256::repeat_byte(1), B256::repeat_byte(2), B256::ZERO);
        let claim = Claim { job: JOB.0, stage: 0, replica, interval, parentState: parent, newState: new, io };
        let id = ClaimId(B256::repeat_byte(replica as u8 + 10 * interval as u8));
        Target { id, claim, standing: Standing::Committed { at: 1 }, manifest: Cid::default(), listed: None }
    }

    fn ids(targets: &[Target]) -> Vec<(u16, u32)> {
        targets.iter().map(|target| (target.claim.replica, target.claim.interval)).collect()
    }

    #[test]
    fn all_claims_of_the_place_are_examined_once() {
        let mut replicas = Replicas::default();
        replicas.posted(JOB, 3);
        assert!(!replicas.claimed(&target(0, 2), false));
        assert!(!replicas.claimed(&target(0, 3), false));
        assert!(replicas.claimed(&target(1, 3), true), "drawn");
        assert_eq!(ids(&replicas.differ(PLACE)), [(0, 3)], "the other is examined anyhow");
        assert!(replicas.claimed(&target(2, 3), false), "with certainty from now on");
        assert!(replicas.differ(PLACE).is_empty());
        assert!(!replicas.claimed(&target(1, 2), false), "of another interval");
    }

    #[test]
    fn what_is_final_is_forgotten() {
        let mut replicas = Replicas::default();
        replicas.posted(JOB, 2);
        replicas.claimed(&target(0, 3), false);
        replicas.claimed(&target(1, 3), false);
        replicas.finalized(target(0, 3).claim.lane(), 4);
        assert_eq!(ids(&replicas.differ(PLACE)), [(1, 3)]);
        replicas.settled(JOB);
        assert!(replicas.places.is_empty());
    }

    #[test]
    fn single_replicas_are_not_remembered() {
        let mut replicas = Replicas::default();
        replicas.posted(JOB, 1);
        assert!(!replicas.claimed(&target(0, 3), false) && replicas.claimed(&target(0, 4), true));
        assert!(replicas.places.is_empty());
    }
}
