//! A worker's own eye on its replicas: where another claims something else of the same stage and interval, that is
//! examined, and its worker convicted of what is wrong, whoever else looks. Needs no collateral.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cid::Cid;
use tensorlink_node::ports::{ChainError, Event, EventAt};
use tensorlink_program::engine::Engine;
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, ClaimId, JobId, Lane};
use tokio_util::sync::CancellationToken;

use crate::auditor::Auditor;
use crate::draw::Rate;
use crate::queue::Queue;
use crate::replicas::Replicas;
use crate::target::{Standing, Target};
use crate::task::Task;

/// A worker that looks at its replicas.
pub struct Witness<E> {
    /// Examines claims, under the worker's own key.
    pub auditor: Arc<Auditor<E>>,
}

/// What events have told of jobs that we work for.
#[derive(Default)]
struct Known {
    lanes: HashSet<Lane>,
    manifests: HashMap<JobId, Cid>,
    replicas: Replicas,
}

impl<E: Engine + Send + 'static> Witness<E> {
    /// Runs until `shutdown`, or the chain cannot be followed.
    ///
    /// # Errors
    /// [`ChainError`] at the start.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), ChainError> {
        let chain = self.auditor.ports.chain.clone();
        let own = self.auditor.ports.identity.address();
        let mut events = chain.events(chain.deployment().block).await?;
        self.auditor.evidence().take_stock().await;
        let mut queue = Queue::new(self.auditor.clone(), Rate::NONE);
        let mut known = Known::default();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                _ended = queue.next() => {}
                event = events.recv(), if queue.has_room() => {
                    let Some(event) = event else { break };
                    self.auditor.apply(&event);
                    known.take_in(event, own).into_iter().for_each(|task| queue.push(task));
                }
            }
        }
        queue.shutdown().await;
        Ok(())
    }
}

impl Known {
    /// Takes in an event; what is to be done about it comes back.
    fn take_in(&mut self, at: EventAt, own: Address) -> Vec<Task> {
        match at.event {
            Event::JobPosted { job, terms, .. } if terms.replicas > 1 => {
                if let Ok(cid) = Cid::try_from(terms.manifest.as_ref()) {
                    self.manifests.insert(job, cid);
                    self.replicas.posted(job, terms.replicas);
                }
            }
            Event::JobAccepted { job, offers } if self.manifests.contains_key(&job) => {
                let ours = offers.iter().filter(|offer| offer.worker == own);
                self.lanes.extend(ours.map(|offer| Lane { job, stage: offer.stage, replica: offer.replica }));
                if !self.lanes.iter().any(|lane| lane.job == job) {
                    self.manifests.remove(&job);
                }
            }
            Event::JobSettled { job, .. } => {
                self.lanes.retain(|lane| lane.job != job);
                self.manifests.remove(&job);
                self.replicas.settled(job);
            }
            Event::ClaimCommitted { id, claim, committed_at } if self.is_beside(claim.lane()) => {
                let target = self.target(id, claim, committed_at);
                return target
                    .filter(|target| self.replicas.claimed(target, false))
                    .into_iter()
                    .map(Task::Claim)
                    .collect();
            }
            Event::ClaimsFinalized { lane, to, .. } => self.replicas.finalized(lane, to),
            Event::ReplicasDiffer { job, stage, interval, .. } => {
                let targets = self.replicas.differ((job, stage, interval));
                if !targets.is_empty() {
                    tracing::warn!(%job, stage, interval, claims = targets.len(), "others claim something else: it is examined");
                }
                return targets.into_iter().map(Task::Claim).collect();
            }
            // After a restart; whoever opened it just now plays it.
            Event::ChallengeOpened { id, claim, challenger, .. } if challenger == own => {
                return self.target(id, claim, 0).map(Task::Challenged).into_iter().collect();
            }
            _ => {}
        }
        Vec::new()
    }

    fn target(&self, id: ClaimId, claim: Claim, at: u64) -> Option<Target> {
        let manifest = self.manifests.get(&JobId(claim.job)).copied()?;
        Some(Target { id, claim, standing: Standing::Committed { at }, manifest, listed: None })
    }

    /// Whether a lane is another's, of a stage that we work on.
    fn is_beside(&self, lane: Lane) -> bool {
        let beside = |own: &Lane| (own.job, own.stage) == (lane.job, lane.stage);
        !self.lanes.contains(&lane) && self.lanes.iter().any(beside)
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::B256;
    use tensorlink_types::abi::{JobTerms, Offer};

    use super::*;

    const OWN: Address = Address::repeat_byte(7);
    const OTHER: Address = Address::repeat_byte(8);

    fn at(event: Event) -> EventAt {
        let (block_hash, transaction) = (B256::ZERO, B256::ZERO);
        EventAt { block: 1, block_hash, timestamp: 1, log_index: 0, transaction, event }
    }

    /// A job of two stages and two replicas, in which the first lane is ours.
    fn known(own: Address) -> Known {
        let mut known = Known::default();
        let terms = JobTerms { replicas: 2, manifest: Cid::default().to_bytes().into(), ..JobTerms::default() };
        let offer = |stage, replica, worker| Offer { job: 1, stage, replica, worker, ..Offer::default() };
        let offers = vec![offer(0, 0, own), offer(1, 0, OTHER), offer(0, 1, OTHER), offer(1, 1, OTHER)];
        for event in [
            Event::JobPosted { job: JobId(1), user: Address::ZERO, deposit: Default::default(), terms },
            Event::JobAccepted { job: JobId(1), offers },
        ] {
            assert!(known.take_in(at(event), OWN).is_empty());
        }
        known
    }

    fn claimed(stage: u16, replica: u16) -> EventAt {
        let claim = Claim { job: 1, stage, replica, interval: 3, ..Claim::default() };
        at(Event::ClaimCommitted { id: ClaimId(B256::repeat_byte(replica as u8)), claim, committed_at: 5 })
    }

    fn differ(stage: u16) -> EventAt {
        at(Event::ReplicasDiffer { claim: ClaimId(B256::ZERO), job: JobId(1), stage, interval: 3 })
    }

    fn lanes(tasks: &[Task]) -> Vec<(u16, u16)> {
        let lane = |task: &Task| match task {
            Task::Claim(target) => (target.claim.stage, target.claim.replica),
            _ => panic!("a claim to look into"),
        };
        tasks.iter().map(lane).collect()
    }

    #[test]
    fn who_claims_otherwise_than_we_do_is_examined_and_nobody_else() {
        let mut known = known(OWN);
        for (stage, replica) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            assert!(known.take_in(claimed(stage, replica), OWN).is_empty(), "nothing differs yet");
        }
        assert_eq!(lanes(&known.take_in(differ(0), OWN)), [(0, 1)], "not our own");
        assert!(known.take_in(differ(1), OWN).is_empty(), "of a stage that we do not work on");
        known.take_in(at(Event::JobSettled { job: JobId(1), refund: Default::default() }), OWN);
        assert!(known.lanes.is_empty() && known.manifests.is_empty());
    }

    #[test]
    fn who_claims_after_others_differed_is_examined_at_once() {
        let mut known = known(OWN);
        known.take_in(claimed(0, 0), OWN);
        known.take_in(claimed(0, 1), OWN);
        known.take_in(differ(0), OWN);
        assert_eq!(lanes(&known.take_in(claimed(0, 1), OWN)), [(0, 1)]);
    }

    #[test]
    fn jobs_of_others_are_forgotten() {
        let mut known = known(OTHER);
        assert!(known.manifests.is_empty());
        known.take_in(claimed(0, 1), OWN);
        assert!(known.take_in(differ(0), OWN).is_empty());
    }
}
