//! Who may talk to us, folded from confirmed events.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use tensorlink_types::{Address, JobId, U256};

use crate::ports::chain::Role;
use crate::ports::{Event, Gate, Protocol};
use crate::wire::gossip::SPEEDS;

/// The members of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Members {
    /// Who pays.
    pub user: Address,
    /// Workers in lane order (`replica · stages + stage`); empty until accepted.
    pub workers: Vec<Address>,
}

#[derive(Default, Debug)]
struct Inner {
    bonded: HashMap<(Address, Role), U256>,
    jobs: HashMap<JobId, Members>,
    settled: HashSet<JobId>,
}

impl Inner {
    /// In whatever role.
    fn has_stake(&self, account: Address) -> bool {
        let bonded = |role: &Role| self.bonded.get(&(account, *role)).is_some_and(|stake| !stake.is_zero());
        [Role::Worker, Role::Validator].iter().any(bonded)
    }
}

/// Stakes and jobs as confirmed events tell them; answers the net's gate from memory.
///
/// Staked accounts may ask; users may ask while their job is open, and about jobs of ours ever after; only members of
/// an open job of ours may open tensor streams. The contracts know slashed stake as bonded stake that is gone, so who
/// lost all may not ask.
#[derive(Debug)]
pub struct Roster {
    own: Address,
    inner: RwLock<Inner>,
}

impl Roster {
    /// An empty roster of the node with address `own`; feed it every event from the deployment's first block.
    pub fn new(own: Address) -> Self {
        Self { own, inner: RwLock::default() }
    }

    /// Forgets everything: a reorganisation has undone some of it, and all events are told anew.
    pub fn forget(&self) {
        *self.inner.write().unwrap_or_else(PoisonError::into_inner) = Inner::default();
    }

    /// Takes in a confirmed event.
    pub fn apply(&self, event: &Event) {
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Staked { account, role, amount } => {
                let stake = inner.bonded.entry((*account, *role)).or_default();
                *stake = stake.saturating_add(*amount);
            }
            Event::UnstakeRequested { account, role, amount, .. } => {
                let stake = inner.bonded.entry((*account, *role)).or_default();
                *stake = stake.saturating_sub(*amount);
            }
            Event::Slashed { account, amount, .. } => {
                let stake = inner.bonded.entry((*account, Role::Worker)).or_default();
                *stake = stake.saturating_sub(*amount);
            }
            Event::JobPosted { job, user, .. } => {
                inner.jobs.insert(*job, Members { user: *user, workers: Vec::new() });
            }
            Event::JobAccepted { job, offers } => {
                if let Some(members) = inner.jobs.get_mut(job) {
                    members.workers = offers.iter().map(|offer| offer.worker).collect();
                }
            }
            Event::JobSettled { job, .. } => {
                // Others' jobs are forgotten; users of ours may still ask for what we computed.
                match inner.jobs.get(job) {
                    Some(members) if members.workers.contains(&self.own) || members.user == self.own => {
                        inner.settled.insert(*job);
                    }
                    _ => drop(inner.jobs.remove(job)),
                }
            }
            _ => {}
        }
    }

    /// The members of a job that is open or was ours.
    pub fn members(&self, job: JobId) -> Option<Members> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).jobs.get(&job).cloned()
    }

    /// Whether the account has bonded stake in a role.
    pub fn is_staked(&self, account: Address, role: Role) -> bool {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        inner.bonded.get(&(account, role)).is_some_and(|stake| !stake.is_zero())
    }

    /// Every account with bonded stake in a role.
    pub fn staked(&self, role: Role) -> Vec<Address> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let staked = inner.bonded.iter().filter(|((_, of), stake)| *of == role && !stake.is_zero());
        staked.map(|((account, _), _)| *account).collect()
    }
}

impl Gate for Roster {
    fn allows(&self, peer: Address, protocol: Protocol) -> bool {
        match protocol {
            // Content is public and verifies itself.
            Protocol::Block => true,
            // Within limits of its own, and only where it is served.
            Protocol::Burst => true,
            // Nor is there anything to pay for what users say of workers: it is asked before there is a job.
            Protocol::Observed => true,
            // Nothing on chain says who may ask for floats.
            Protocol::Native => false,
            Protocol::Rpc => {
                let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
                inner.has_stake(peer) || inner.jobs.values().any(|members| members.user == peer)
            }
            Protocol::Tensor => {
                let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
                inner.jobs.iter().any(|(job, members)| {
                    !inner.settled.contains(job)
                        && members.workers.contains(&peer)
                        && members.workers.contains(&self.own)
                })
            }
        }
    }

    /// Users say how fast workers were while one of their jobs is open: its escrow is theirs to lose.
    fn may_publish(&self, peer: Address, topic: &str) -> Option<bool> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let is_open = |job: &JobId, members: &Members| !members.workers.is_empty() && !inner.settled.contains(job);
        let hires = || inner.jobs.iter().any(|(job, members)| members.user == peer && is_open(job, members));
        (!inner.bonded.is_empty()).then(|| inner.has_stake(peer) || (topic == SPEEDS && hires()))
    }

    /// Nothing is known before the first stake is: the roster of a node that has just started, or that nobody feeds.
    fn has_stake(&self, peer: Address) -> Option<bool> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        (!inner.bonded.is_empty()).then(|| inner.has_stake(peer))
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::abi::Offer;

    use super::*;

    const OWN: Address = Address::repeat_byte(1);
    const OTHER: Address = Address::repeat_byte(2);
    const USER: Address = Address::repeat_byte(3);

    fn accept(roster: &Roster, job: u64, workers: &[Address]) {
        let job_id = JobId(job);
        let offers = workers.iter().map(|worker| Offer {
            terms: Default::default(),
            job,
            stage: 0,
            replica: 0,
            worker: *worker,
            pricePerInterval: 1,
            expires: Default::default(),
        });
        roster.inner.write().unwrap().jobs.insert(job_id, Members { user: USER, workers: Vec::new() });
        roster.apply(&Event::JobAccepted { job: job_id, offers: offers.collect() });
    }

    fn settle(roster: &Roster, job: u64) {
        roster.apply(&Event::JobSettled { job: JobId(job), refund: U256::ZERO });
    }

    #[test]
    fn only_members_of_an_open_job_of_ours_open_tensor_streams() {
        let roster = Roster::new(OWN);
        accept(&roster, 1, &[OTHER]);
        assert!(!roster.allows(OTHER, Protocol::Tensor), "another's job");
        accept(&roster, 2, &[OWN, OTHER]);
        assert!(roster.allows(OTHER, Protocol::Tensor) && !roster.allows(USER, Protocol::Tensor));
        settle(&roster, 2);
        assert!(!roster.allows(OTHER, Protocol::Tensor), "settled");
    }

    #[test]
    fn users_ask_while_their_job_is_open_and_about_ours_ever_after() {
        let roster = Roster::new(OWN);
        assert!(!roster.allows(USER, Protocol::Rpc));
        accept(&roster, 1, &[OTHER]);
        assert!(roster.allows(USER, Protocol::Rpc));
        settle(&roster, 1);
        assert!(!roster.allows(USER, Protocol::Rpc) && roster.members(JobId(1)).is_none());
        accept(&roster, 2, &[OWN]);
        settle(&roster, 2);
        assert!(roster.allows(USER, Protocol::Rpc) && roster.members(JobId(2)).is_some());
    }

    #[test]
    fn users_say_how_fast_workers_are_while_a_job_of_theirs_is_open() {
        let roster = Roster::new(OWN);
        assert_eq!(roster.may_publish(USER, SPEEDS), None, "nothing is known yet");
        roster.apply(&Event::Staked { account: OTHER, role: Role::Worker, amount: U256::from(10) });
        let speaks = |roster: &Roster| [USER, OTHER].map(|peer| roster.may_publish(peer, SPEEDS));
        assert_eq!(speaks(&roster), [Some(false), Some(true)]);
        accept(&roster, 1, &[]);
        assert_eq!(speaks(&roster)[0], Some(false), "posted, and nobody hired");
        accept(&roster, 1, &[OTHER]);
        assert_eq!((speaks(&roster)[0], roster.may_publish(USER, "another")), (Some(true), Some(false)));
        settle(&roster, 1);
        assert_eq!(speaks(&roster)[0], Some(false));
        accept(&roster, 2, &[OWN]);
        assert_eq!(speaks(&roster)[0], Some(true));
        settle(&roster, 2);
        assert_eq!(speaks(&roster)[0], Some(false), "of ours it is remembered");
    }

    #[test]
    fn what_was_undone_is_not_known_any_more() {
        let roster = Roster::new(OWN);
        accept(&roster, 1, &[OWN, OTHER]);
        settle(&roster, 1);
        let staked = Event::Staked { account: OTHER, role: Role::Worker, amount: U256::from(10) };
        roster.apply(&staked);
        roster.forget();
        assert!(roster.members(JobId(1)).is_none() && !roster.is_staked(OTHER, Role::Worker));
        // Told anew, each counts once.
        roster.apply(&staked);
        let part = U256::ZERO;
        roster.apply(&Event::Slashed {
            account: OTHER,
            amount: U256::from(10),
            bounty: part,
            shared: part,
            harm: part,
            burned: part,
        });
        assert!(!roster.is_staked(OTHER, Role::Worker));
        accept(&roster, 1, &[OWN, OTHER]);
        assert!(roster.allows(OTHER, Protocol::Tensor), "its settlement was undone");
    }

    #[test]
    fn who_lost_all_stake_may_not_ask() {
        let roster = Roster::new(OWN);
        let amount = U256::from(10);
        assert_eq!(roster.has_stake(OTHER), None, "nothing is known yet");
        roster.apply(&Event::Staked { account: OTHER, role: Role::Worker, amount });
        assert!(roster.allows(OTHER, Protocol::Rpc) && roster.staked(Role::Worker) == [OTHER]);
        assert_eq!([OTHER, USER].map(|peer| roster.has_stake(peer)), [Some(true), Some(false)]);
        let part = U256::ZERO;
        roster.apply(&Event::Slashed { account: OTHER, amount, bounty: part, shared: part, harm: part, burned: part });
        assert!(!roster.allows(OTHER, Protocol::Rpc) && roster.staked(Role::Worker).is_empty());
        assert_eq!(roster.has_stake(OTHER), Some(false));
        assert!(roster.allows(OTHER, Protocol::Block), "content is public");
        assert!(roster.allows(OTHER, Protocol::Burst), "who wants to hire may measure before there is a job");
    }
}
