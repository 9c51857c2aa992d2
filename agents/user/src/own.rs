//! Which events are about jobs that this account posted: of all others a user remembers nothing.

use std::collections::HashSet;

use tensorlink_node::ports::Event;
use tensorlink_types::{Address, JobId, U256};

/// What is ours of what was told.
#[derive(Debug)]
pub(crate) struct Own {
    account: Address,
    jobs: HashSet<JobId>,
    challenges: HashSet<U256>,
    demands: HashSet<U256>,
}

impl Own {
    /// Nothing was told yet.
    pub(crate) fn new(account: Address) -> Self {
        Self { account, jobs: HashSet::new(), challenges: HashSet::new(), demands: HashSet::new() }
    }

    /// Whether an event is about a job of ours, or may be: slashes do not name their job.
    pub(crate) fn concerns(&mut self, event: &Event) -> bool {
        if let Event::JobPosted { job, user, .. } = event
            && *user == self.account
        {
            self.jobs.insert(*job);
        }
        let ours = event.job().is_some_and(|job| self.jobs.contains(&job));
        match event {
            Event::ChallengeOpened { challenge, .. } if ours => self.challenges.insert(*challenge),
            Event::Demanded { id, .. } if ours => self.demands.insert(*id),
            Event::Challenge { challenge, .. } => self.challenges.contains(challenge),
            Event::AttestationGiven { id, .. } | Event::DemandEnded { id, .. } => self.demands.contains(id),
            Event::Slashed { .. } => true,
            _ => ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::abi::{Claim, Demand, JobTerms};
    use tensorlink_types::{ClaimId, Lane};

    use super::*;

    #[test]
    fn of_other_users_jobs_nothing_is_remembered() {
        let account = Address::repeat_byte(1);
        let mut own = Own::new(account);
        let mut told = |job: u64, user: Address| {
            let (id, terms) = (U256::from(job), JobTerms::default());
            let demand = || Box::new(Demand { job, ..Demand::default() });
            let claim = || Claim { job, ..Claim::default() };
            let events = [
                Event::JobPosted { job: JobId(job), user, deposit: U256::ZERO, terms },
                Event::ClaimCommitted { id: ClaimId::default(), claim: claim(), committed_at: 1 },
                Event::Demanded { id, demand: demand() },
                Event::DemandEnded { id, shown: None, convicted: false },
                Event::ClaimsVoided { lane: Lane { job: JobId(job), stage: 0, replica: 0 }, from: 0 },
                Event::JobSettled { job: JobId(job), refund: U256::ZERO },
            ];
            events.map(|event| own.concerns(&event))
        };
        assert_eq!(told(1, account), [true; 6]);
        assert_eq!(told(2, Address::repeat_byte(2)), [false; 6]);
        let slashed = |account| Event::Slashed {
            account,
            amount: U256::ZERO,
            bounty: U256::ZERO,
            shared: U256::ZERO,
            harm: U256::ZERO,
            burned: U256::ZERO,
        };
        assert!(own.concerns(&slashed(account)), "which job it is about, its transaction tells");
    }
}
