//! How fast workers were that this user paid, on disk: whoever says that it is faster is placed by what it did.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tensorlink_model::Setting;
use tensorlink_node::journal::{Journal, JournalError};
use tensorlink_placement::measured::Observation;
use tensorlink_types::{Address, JobId};

use crate::hire::Candidate;

const FILE: &str = "speeds";

/// Jobs of a worker that are remembered, the newest; and jobs of all workers.
const OF_WORKER: usize = 8;
const OF_ALL: usize = 4_096;
/// What a worker says is the speed of products alone, and it also hashes, signs and may serve others: who does this
/// part of what it says does what it says.
const PART: f64 = 0.5;
/// How much more what was seen here counts than what a worker says, while it is new.
const WEIGHT: f64 = 4.0;

/// How fast a worker was in a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Speed {
    job: JobId,
    worker: Address,
    setting: Setting,
    /// Multiply-adds a second.
    rate: f64,
    /// When, seconds of this machine's clock.
    at: u64,
}

/// How fast workers were, the newest last.
#[derive(Debug)]
pub(crate) struct Speeds {
    journal: Journal,
    seen: Mutex<Vec<Speed>>,
}

impl Speeds {
    /// Takes up what is on disk.
    ///
    /// # Errors
    /// [`JournalError`] if it cannot be read.
    pub(crate) fn open(journal: Journal) -> Result<Self, JournalError> {
        let seen = Mutex::new(journal.read(FILE)?.unwrap_or_default());
        Ok(Self { journal, seen })
    }

    /// Writes down how fast workers are in a job, which takes the place of what was written of them in it.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails; what was written before stays.
    pub(crate) fn see(
        &self,
        (job, setting): (JobId, Setting),
        rates: &[(Address, f64)],
        now: u64,
    ) -> Result<(), JournalError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = seen.clone();
        for (worker, rate) in rates.iter().filter(|(_, rate)| rate.is_finite() && *rate > 0.0) {
            next.retain(|speed| (speed.job, speed.worker) != (job, *worker));
            next.push(Speed { job, worker: *worker, setting, rate: *rate, at: now });
            let of_worker = next.iter().filter(|speed| speed.worker == *worker).count();
            if of_worker > OF_WORKER
                && let Some(oldest) = next.iter().position(|speed| speed.worker == *worker)
            {
                next.remove(oldest);
            }
        }
        next.drain(..next.len().saturating_sub(OF_ALL));
        self.journal.write(FILE, &next)?;
        *seen = next;
        Ok(())
    }

    /// What was seen of a worker, against what it says.
    pub(crate) fn of(&self, candidate: &Candidate, now: u64) -> Vec<Observation> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let of_worker = seen.iter().filter(|speed| speed.worker == candidate.address);
        let observation = |speed: &Speed| Observation {
            share: speed.rate / PART / candidate.advert.speed.multiply_adds(speed.setting) as f64,
            paid: WEIGHT,
            age: now.saturating_sub(speed.at) as f64,
        };
        of_worker.map(observation).collect()
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_node::price::Prices;
    use tensorlink_node::speed::Measured;
    use tensorlink_node::wire::gossip::WorkerAdvert;
    use tensorlink_placement::measured::Trust;

    use super::*;

    const SETTING: Setting = Setting::Standard;
    const WEEK: u64 = 7 * 86_400;

    /// A worker that says it computes so many billions.
    fn says(number: u8, billions: u64) -> Candidate {
        let rate = billions * 1_000_000_000;
        let speed = Measured { fast: rate * 2, standard: rate, reference: rate / 2, memory: 1 }.try_into().unwrap();
        let (prices, engine) = (Prices { sno: 1, eth: None }, String::new());
        let advert = WorkerAdvert { memory: 1, disk: 1, free_lanes: 1, prices, speed, engine };
        Candidate { address: Address::with_last_byte(number), advert, price_per_gmac: 1 }
    }

    fn believed(speeds: &Speeds, candidate: &Candidate, now: u64) -> f64 {
        Trust::default().trying().share(&speeds.of(candidate, now)).unwrap()
    }

    #[test]
    fn whoever_says_much_more_than_it_did_is_believed_what_it_did_for_two_weeks() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let speeds = Speeds::open(journal.clone()).unwrap();
        let (liar, honest, stranger) = (says(1, 80), says(2, 10), says(3, 10));
        let rates = [(liar.address, 5e9), (honest.address, 6e9), (honest.address, f64::NAN), (liar.address, 0.0)];
        speeds.see((JobId(1), SETTING), &rates, 1_000).unwrap();
        let share = |now| [&liar, &honest, &stranger].map(|worker| believed(&speeds, worker, now));
        assert_eq!(share(1_000), [0.125, 1.0, 1.0]);
        assert_eq!(share(1_000 + 2 * WEEK), [0.125, 1.0, 1.0]);
        assert_eq!(share(1_001 + 2 * WEEK), [1.0, 1.0, 1.0], "it may have another machine");
        // What it says in another setting is held against it too, and what it says later.
        assert_eq!(believed(&Speeds::open(journal).unwrap(), &says(1, 40), 1_000), 0.25, "on disk as well");
    }

    #[test]
    fn a_job_says_one_thing_of_a_worker_and_a_bad_one_does_not_outweigh_others() {
        let folder = tempfile::tempdir().unwrap();
        let speeds = Speeds::open(Journal::open(folder.path()).unwrap()).unwrap();
        let worker = says(1, 10);
        for rate in [1e9, 2e9, 5e9] {
            speeds.see((JobId(1), SETTING), &[(worker.address, rate)], 0).unwrap();
        }
        assert_eq!((speeds.of(&worker, 0).len(), believed(&speeds, &worker, 0)), (1, 1.0));
        speeds.see((JobId(2), SETTING), &[(worker.address, 5e8)], 0).unwrap();
        speeds.see((JobId(3), SETTING), &[(worker.address, 5e9)], 0).unwrap();
        assert_eq!(believed(&speeds, &worker, 0), 1.0);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let speeds = Speeds::open(Journal::open(folder.path()).unwrap()).unwrap();
        let worker = says(1, 10);
        for job in 0..20 {
            speeds.see((JobId(job), SETTING), &[(worker.address, 1e9)], job).unwrap();
        }
        let ages: Vec<f64> = speeds.of(&worker, 19).iter().map(|seen| seen.age).collect();
        assert_eq!(ages, [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        let many = (0..5_000_u64).map(|number| (Address::left_padding_from(&number.to_be_bytes()), 1e9));
        speeds.see((JobId(20), SETTING), &many.collect::<Vec<_>>(), 20).unwrap();
        assert_eq!(speeds.of(&worker, 20).len(), 0);
        assert_eq!(speeds.seen.lock().unwrap().len(), OF_ALL);
    }
}
