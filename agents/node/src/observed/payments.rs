//! What workers were paid in jobs, and by whom.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_types::{Address, JobId, U256};

use crate::ports::Event;

/// Jobs of which it is known, the newest.
const JOBS: usize = 16_384;

/// What a worker was paid in a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payment {
    /// Who paid.
    pub user: Address,
    /// In what: a token, or zero for ETH.
    pub token: Address,
    /// Wei of it.
    pub amount: U256,
    /// When it was paid last, by the chain's time, seconds.
    pub at: u64,
}

#[derive(Debug)]
struct Job {
    user: Address,
    token: Address,
    /// Wei, and when the last of them was paid.
    paid: HashMap<Address, (U256, u64)>,
}

/// What workers were paid in jobs, folded from confirmed events.
#[derive(Debug, Default)]
pub struct Payments(Mutex<BTreeMap<JobId, Job>>);

impl Payments {
    /// Takes in a confirmed event of a time, seconds.
    pub fn apply(&self, event: &Event, time: u64) {
        match event {
            Event::JobPosted { job, user, terms, .. } => {
                let mut jobs = self.jobs();
                jobs.insert(*job, Job { user: *user, token: terms.token, paid: HashMap::new() });
                if jobs.len() > JOBS {
                    jobs.pop_first();
                }
            }
            Event::Paid { lane, worker, amount, .. } if !amount.is_zero() => {
                if let Some(job) = self.jobs().get_mut(&lane.job) {
                    let (paid, last) = job.paid.entry(*worker).or_default();
                    (*paid, *last) = (paid.saturating_add(*amount), time);
                }
            }
            _ => {}
        }
    }

    /// Forgets everything: a reorganisation has undone some of it, and all events are told anew.
    pub fn forget(&self) {
        self.jobs().clear();
    }

    /// What a worker was paid in a job; none where it was paid nothing, or that is not known.
    pub fn of(&self, job: JobId, worker: Address) -> Option<Payment> {
        let jobs = self.jobs();
        let Job { user, token, paid } = jobs.get(&job)?;
        let (amount, at) = paid.get(&worker).copied()?;
        Some(Payment { user: *user, token: *token, amount, at })
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<JobId, Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::Lane;
    use tensorlink_types::abi::JobTerms;

    use super::*;

    const WORKER: Address = Address::repeat_byte(1);

    fn posted(job: u64) -> Event {
        let terms = JobTerms { token: Address::repeat_byte(7), ..JobTerms::default() };
        Event::JobPosted { job: JobId(job), user: Address::repeat_byte(9), deposit: U256::ZERO, terms }
    }

    fn paid(job: u64, stage: u16, amount: u64) -> Event {
        let lane = Lane { job: JobId(job), stage, replica: 0 };
        Event::Paid { lane, worker: WORKER, units: 1, amount: U256::from(amount) }
    }

    #[test]
    fn payments_of_all_lanes_add_up_and_are_of_the_job_s_user() {
        let payments = Payments::default();
        let events = [posted(1), posted(2), paid(1, 0, 3), paid(1, 1, 4), paid(1, 1, 0), paid(2, 0, 0), paid(3, 0, 5)];
        (0..).zip(&events).for_each(|(time, event)| payments.apply(event, time));
        let (user, token) = (Address::repeat_byte(9), Address::repeat_byte(7));
        let payment = Payment { user, token, amount: U256::from(7), at: 3 };
        assert_eq!(payments.of(JobId(1), WORKER), Some(payment));
        assert_eq!(payments.of(JobId(1), Address::ZERO), None, "another");
        assert_eq!([2, 3].map(|job| payments.of(JobId(job), WORKER)), [None; 2], "nothing; of a job that is not known");
        payments.forget();
        assert_eq!(payments.of(JobId(1), WORKER), None);
    }

    #[test]
    fn the_oldest_jobs_are_forgotten() {
        let payments = Payments::default();
        for job in 0..=JOBS as u64 {
            payments.apply(&posted(job), job);
            payments.apply(&paid(job, 0, 1), job);
        }
        assert_eq!([0, 1].map(|job| payments.of(JobId(job), WORKER).is_some()), [false, true]);
        assert_eq!(payments.jobs().len(), JOBS);
    }
}
