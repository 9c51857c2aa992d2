//! Who may talk to us, folded from confirmed events.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use tensorlink_types::{Address, JobId, U256};

use crate::ports::chain::Role;
use crate::ports::{Event, Gate, Protocol};

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

/// Stakes and jobs as confirmed events tell them; answers the net's gate from memory.
///
/// Staked accounts may ask; users of open jobs may ask; only members of an open job of ours may open tensor streams.
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
                inner.settled.insert(*job);
            }
            _ => {}
        }
    }

    /// The members of a job, if it was posted.
    pub fn members(&self, job: JobId) -> Option<Members> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner).jobs.get(&job).cloned()
    }

    /// Whether the account has bonded stake in a role.
    pub fn is_staked(&self, account: Address, role: Role) -> bool {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        inner.bonded.get(&(account, role)).is_some_and(|stake| !stake.is_zero())
    }

    /// Every account with bonded worker stake.
    pub fn staked_workers(&self) -> Vec<Address> {
        let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let staked = inner.bonded.iter().filter(|((_, role), stake)| *role == Role::Worker && !stake.is_zero());
        staked.map(|((account, _), _)| *account).collect()
    }
}

impl Gate for Roster {
    fn allows(&self, peer: Address, protocol: Protocol) -> bool {
        match protocol {
            // Content is public and verifies itself.
            Protocol::Block => true,
            Protocol::Rpc => {
                let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
                [Role::Worker, Role::Validator]
                    .iter()
                    .any(|role| inner.bonded.get(&(peer, *role)).is_some_and(|stake| !stake.is_zero()))
                    || inner.jobs.values().any(|members| members.user == peer)
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
}
