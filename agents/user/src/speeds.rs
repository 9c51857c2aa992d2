//! How fast workers were in jobs of this user, on disk: whoever says that it is faster is placed by what it did.
//!
//! A worker says how fast its matrix products are where they are large. What it does beside, and how large a model's
//! products are, makes less of that, about as much less of all workers. So a worker is held against the others that
//! computed a model of the same shape.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tensorlink_model::Setting;
use tensorlink_node::journal::{Journal, JournalError};
use tensorlink_placement::measured::Observation;
use tensorlink_types::{Address, B256, JobId};

use crate::hire::Candidate;

const FILE: &str = "speeds";

/// Jobs of a worker that are remembered, the newest; and jobs of all workers.
const OF_WORKER: usize = 8;
const OF_ALL: usize = 4_096;
/// How much more what was seen here counts than what a worker says, while it is new.
const WEIGHT: f64 = 4.0;
/// Who does this part of what others do, by what each says, does what it says: measurements tell no more.
const ENOUGH: f64 = 0.6;
/// The largest part of what they say that is expected of workers. So one that says less than it does, or whose link is
/// not known, makes nobody look slow who does three tenths of what it says: times [`ENOUGH`], that is as much.
const PART: f64 = 0.5;
/// Seconds for which a worker's speed tells what is expected of others.
const TELLS: u64 = 14 * 86_400;

/// How fast a worker was in a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Speed {
    pub(crate) job: JobId,
    pub(crate) worker: Address,
    /// Of the model: workers are held against each other in models of one shape.
    pub(crate) shape: B256,
    pub(crate) setting: Setting,
    /// Multiply-adds a second; and what it said then that it has.
    pub(crate) rate: f64,
    pub(crate) said: f64,
    /// When, seconds of this machine's clock.
    pub(crate) at: u64,
}

/// What can be said of a worker to others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Worth {
    pub(crate) job: JobId,
    pub(crate) worker: Address,
    pub(crate) setting: Setting,
    /// Multiply-adds a second that it would have to say to be as good as its word as others are.
    pub(crate) multiply_adds: f64,
    /// When that was seen, seconds of this machine's clock.
    pub(crate) at: u64,
}

/// How fast workers were, the newest last.
#[derive(Debug)]
pub(crate) struct Speeds {
    journal: Journal,
    seen: Mutex<Vec<Speed>>,
    /// Held while they are written down: who asks need not wait for the disk.
    writing: Mutex<()>,
}

impl Speeds {
    /// Takes up what is on disk. What cannot be read is moved aside: it is no more than a memory.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails, or a newer version wrote it.
    pub(crate) fn open(journal: Journal) -> Result<Self, JournalError> {
        let seen: Vec<Speed> = journal.read_or_move_aside(FILE)?.unwrap_or_default();
        let seen = seen.into_iter().filter(is_told).collect();
        Ok(Self { journal, seen: Mutex::new(seen), writing: Mutex::default() })
    }

    /// Writes down how fast workers were, each in place of what was written of it in the same job. What is known
    /// already is not written again.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails; what was written before stays.
    pub(crate) fn see(&self, speeds: Vec<Speed>) -> Result<(), JournalError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.seen().clone();
        let mut next = before.clone();
        for speed in speeds.into_iter().filter(is_told) {
            let is_same = |other: &Speed| (other.job, other.worker) == (speed.job, speed.worker);
            if next.iter().any(|other| is_same(other) && other.at >= speed.at) {
                continue;
            }
            next.retain(|other| !is_same(other));
            let of_worker = |other: &Speed| other.worker == speed.worker;
            if next.iter().filter(|other| of_worker(other)).count() >= OF_WORKER
                && let Some(oldest) = next.iter().position(of_worker)
            {
                next.remove(oldest);
            }
            next.push(speed);
        }
        next.drain(..next.len().saturating_sub(OF_ALL));
        if before != next {
            self.journal.write(FILE, &next)?;
            *self.seen() = next;
        }
        Ok(())
    }

    /// Whether it is known how fast a worker was in a job at that time, or later.
    pub(crate) fn knows(&self, (job, worker): (JobId, Address), at: u64) -> bool {
        self.seen().iter().any(|speed| (speed.job, speed.worker) == (job, worker) && speed.at >= at)
    }

    /// What was seen of each of these workers, against what it says: nothing where it was alone with its model.
    pub(crate) fn of(&self, candidates: &[Candidate], now: u64) -> Vec<Vec<Observation>> {
        let seen = self.seen();
        let usual = usual(&seen, now);
        let mut of_worker: HashMap<Address, Vec<&Speed>> = HashMap::new();
        seen.iter().for_each(|speed| of_worker.entry(speed.worker).or_default().push(speed));
        let observation = |candidate: &Candidate, speed: &Speed| {
            let says = candidate.advert.speed.multiply_adds(speed.setting) as f64;
            let share = as_good(speed.rate / says / usual.get(&(speed.shape, speed.setting))?);
            let age = now.saturating_sub(speed.at) as f64;
            Some(Observation { share, paid: WEIGHT, age }).filter(|observation| observation.share > 0.0)
        };
        let of = |candidate: &Candidate| {
            let speeds = of_worker.get(&candidate.address).into_iter().flatten();
            speeds.filter_map(|speed| observation(candidate, speed)).collect()
        };
        candidates.iter().map(of).collect()
    }

    /// What can be said of workers to others.
    pub(crate) fn worth(&self, now: u64) -> Vec<Worth> {
        let seen = self.seen();
        let usual = usual(&seen, now);
        let worth = |speed: &Speed| {
            let Speed { job, worker, setting, at, .. } = *speed;
            let multiply_adds = speed.rate / usual.get(&(speed.shape, setting))?;
            Some(Worth { job, worker, setting, multiply_adds, at })
        };
        seen.iter().filter(|speed| now.saturating_sub(speed.at) <= TELLS).filter_map(worth).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Speed>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What part of what they say workers do in models of each shape: the median of the newest of each, of two the larger.
/// Not where there is only one.
fn usual(seen: &[Speed], now: u64) -> HashMap<(B256, Setting), f64> {
    let mut newest: HashMap<(B256, Setting), HashMap<Address, f64>> = HashMap::new();
    for speed in seen.iter().filter(|speed| now.saturating_sub(speed.at) <= TELLS) {
        newest.entry((speed.shape, speed.setting)).or_default().insert(speed.worker, speed.rate / speed.said);
    }
    let median = |(of, parts): (_, HashMap<Address, f64>)| {
        let mut parts: Vec<f64> = parts.into_values().collect();
        parts.sort_unstable_by(f64::total_cmp);
        let median = parts.get(parts.len() / 2)?.min(PART);
        (parts.len() > 1).then_some((of, median))
    };
    newest.into_iter().filter_map(median).collect()
}

/// What to take a worker for that does this part of what is expected of it.
pub(crate) fn as_good(share: f64) -> f64 {
    if share >= ENOUGH { 1.0 } else { share }
}

/// Whether it tells a speed: nothing is divided by 0.
fn is_told(speed: &Speed) -> bool {
    [speed.rate, speed.said].into_iter().all(|number| number.is_finite() && number > 0.0)
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

    /// It did so many billions in a job.
    fn did(job: u64, worker: &Candidate, billions: f64, at: u64) -> Speed {
        let said = worker.advert.speed.multiply_adds(SETTING) as f64;
        let (worker, rate) = (worker.address, billions * 1e9);
        Speed { job: JobId(job), worker, shape: B256::ZERO, setting: SETTING, rate, said, at }
    }

    fn believed(speeds: &Speeds, candidate: &Candidate, now: u64) -> f64 {
        let share = Trust::default().trying().share(&of(speeds, candidate, now)).unwrap();
        (share * 1e6).round() / 1e6
    }

    fn of(speeds: &Speeds, candidate: &Candidate, now: u64) -> Vec<Observation> {
        speeds.of(std::slice::from_ref(candidate), now).remove(0)
    }

    fn fresh() -> (tempfile::TempDir, Speeds) {
        let folder = tempfile::tempdir().unwrap();
        let speeds = Speeds::open(Journal::open(folder.path()).unwrap()).unwrap();
        (folder, speeds)
    }

    #[test]
    fn whoever_says_much_more_than_it_did_is_believed_what_it_did_for_two_weeks() {
        let (folder, speeds) = fresh();
        let (liar, honest, other, stranger) = (says(1, 80), says(2, 10), says(3, 20), says(4, 10));
        // All others do a half of what they say, a tenth more or less.
        speeds.see(vec![did(1, &liar, 5.0, 1_000), did(1, &honest, 4.5, 1_000), did(1, &other, 10.0, 1_000)]).unwrap();
        let share = |now| [&liar, &honest, &other, &stranger].map(|worker| believed(&speeds, worker, now));
        assert_eq!(share(1_000), [0.138889, 1.0, 1.0, 1.0]);
        assert_eq!(share(1_000 + 2 * WEEK), [0.138889, 1.0, 1.0, 1.0]);
        assert_eq!(share(1_001 + 2 * WEEK), [1.0; 4], "it may have another machine");
        let again = Speeds::open(Journal::open(folder.path()).unwrap()).unwrap();
        assert_eq!(believed(&again, &liar, 1_000), 0.138889, "on disk as well");
        assert_eq!(believed(&again, &says(1, 11), 1_000), 1.0, "now it says what it does");
    }

    #[test]
    fn a_model_in_which_all_are_slow_says_nothing_of_any() {
        let (_folder, speeds) = fresh();
        let workers = [says(1, 10), says(2, 20), says(3, 30)];
        speeds
            .see(workers.iter().zip([0.1, 0.2, 0.3]).map(|(worker, did_)| did(1, worker, did_, 0)).collect())
            .unwrap();
        assert_eq!(workers.each_ref().map(|worker| believed(&speeds, worker, 0)), [1.0; 3]);
        // Nor does one in which nobody else was seen.
        let alone = Speed { shape: B256::repeat_byte(1), ..did(2, &workers[0], 0.001, 0) };
        speeds.see(vec![alone]).unwrap();
        assert_eq!(of(&speeds, &workers[0], 0).len(), 1);
    }

    #[test]
    fn of_two_the_one_that_did_less_of_what_it_says_is_the_slower() {
        let (_folder, speeds) = fresh();
        let (liar, honest) = (says(1, 40), says(2, 10));
        speeds.see(vec![did(1, &liar, 5.0, 0), did(1, &honest, 5.0, 0)]).unwrap();
        assert_eq!([&liar, &honest].map(|worker| believed(&speeds, worker, 0)), [0.25, 1.0]);
    }

    #[test]
    fn who_says_less_than_it_does_makes_no_other_look_slow() {
        let (_folder, speeds) = fresh();
        let (modest, honest, liar) = (says(1, 1), says(2, 10), says(3, 40));
        speeds.see(vec![did(1, &modest, 5.0, 0), did(1, &honest, 3.1, 0)]).unwrap();
        assert_eq!([&modest, &honest].map(|worker| believed(&speeds, worker, 0)), [1.0, 1.0]);
        speeds.see(vec![did(1, &liar, 5.0, 0)]).unwrap();
        assert_eq!([&honest, &liar].map(|worker| believed(&speeds, worker, 0)), [1.0, 0.403226]);
        // What others did long ago tells nothing of whoever serves now.
        speeds.see(vec![did(2, &liar, 5.0, 15 * 86_400)]).unwrap();
        assert!(of(&speeds, &liar, 15 * 86_400).is_empty());
    }

    #[test]
    fn a_job_says_one_thing_of_a_worker_and_a_bad_one_does_not_outweigh_others() {
        let (_folder, speeds) = fresh();
        let (worker, other) = (says(1, 10), says(2, 10));
        speeds.see(vec![did(1, &other, 5.0, 0), did(1, &worker, 1.0, 0)]).unwrap();
        speeds.see(vec![did(1, &worker, 9.0, 0)]).unwrap();
        assert_eq!(believed(&speeds, &worker, 0), 0.2, "known already");
        speeds.see(vec![did(1, &worker, 5.0, 1)]).unwrap();
        assert_eq!((of(&speeds, &worker, 1).len(), believed(&speeds, &worker, 1)), (1, 1.0));
        for (job, billions) in [(2, 0.5), (3, 5.0)] {
            speeds.see(vec![did(job, &worker, billions, 0)]).unwrap();
        }
        assert_eq!((of(&speeds, &worker, 0).len(), believed(&speeds, &worker, 0)), (3, 1.0));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_of_it() {
        let (_folder, speeds) = fresh();
        let (worker, other) = (says(1, 10), says(2, 10));
        for job in 0..20 {
            speeds.see(vec![did(job, &worker, 1.0, job), did(job, &other, f64::NAN, 0)]).unwrap();
        }
        speeds.see(vec![did(0, &other, 1.0, 0), did(1, &other, 0.0, 0)]).unwrap();
        let ages: Vec<f64> = of(&speeds, &worker, 19).iter().map(|seen| seen.age).collect();
        assert_eq!(ages, [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        let many = (0..5_000_u64).map(|number| {
            let worker = Address::left_padding_from(&number.to_be_bytes());
            Speed { worker, ..did(20, &other, 1.0, 20) }
        });
        speeds.see(many.collect()).unwrap();
        assert_eq!((of(&speeds, &worker, 20).len(), speeds.seen().len()), (0, OF_ALL));
    }

    #[test]
    fn a_damaged_file_is_moved_aside_and_one_of_a_newer_version_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("speeds.json"), folder.path().join("speeds-unreadable.json"));
        std::fs::write(&path, "[{\"job\":").unwrap();
        let speeds = Speeds::open(Journal::open(folder.path()).unwrap()).unwrap();
        assert_eq!((of(&speeds, &says(1, 1), 0).len(), path.exists(), aside.exists()), (0, false, true));
        speeds.see(vec![did(1, &says(1, 1), 1.0, 0)]).unwrap();
        std::fs::write(&path, r#"{"version": 9, "record": []}"#).unwrap();
        let newer = Speeds::open(Journal::open(folder.path()).unwrap()).unwrap_err();
        assert!(newer.to_string().contains("newer version"), "{newer}");
    }
}
