//! The tier of each worker of a job, by the speed that it advertised when it was hired: written down where the job was
//! hired, as the chain does not have it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tensorlink_node::Journal;
use tensorlink_node::journal::JournalError;
use tensorlink_node::speed::Tier;
use tensorlink_types::{Address, JobId};
use tensorlink_user::hire::Candidate;

/// The best first.
const ALL: [Tier; 3] = [Tier::A, Tier::B, Tier::C];

/// `A`, `B` or `C` of each worker.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tiers(BTreeMap<Address, String>);

fn name(job: JobId) -> String {
    format!("tiers-{job}")
}

impl Tiers {
    /// Of these workers.
    pub fn of<'a>(workers: impl IntoIterator<Item = &'a Candidate>) -> Self {
        let tier = |worker: &Candidate| (worker.address, worker.advert.speed.tier().to_string());
        Self(workers.into_iter().map(tier).collect())
    }

    /// Of these workers only.
    pub fn only(mut self, workers: &[Address]) -> Self {
        self.0.retain(|worker, _| workers.contains(worker));
        self
    }

    /// Writes them down.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails.
    pub fn write(&self, journal: &Journal, job: JobId) -> Result<(), JournalError> {
        journal.write(&name(job), self)
    }

    /// Of the workers of a job; nobody's where it was hired elsewhere, or by an earlier version.
    ///
    /// # Errors
    /// [`JournalError`] if they cannot be read.
    pub fn read(journal: &Journal, job: JobId) -> Result<Self, JournalError> {
        Ok(journal.read(&name(job))?.unwrap_or_default())
    }

    /// A worker's tier, if it is known.
    pub fn get(&self, worker: Address) -> Option<&str> {
        self.0.get(&worker).map(String::as_str)
    }

    /// `0x…, tier B`, or the worker alone.
    pub fn words(&self, worker: Address) -> String {
        words(worker, self.get(worker))
    }

    /// `1 of tier A and 2 of tier C`; nothing where none is known.
    pub fn counted(&self) -> String {
        let counted = ALL.map(|tier| {
            let tier = tier.to_string();
            (self.0.values().filter(|other| **other == tier).count(), tier)
        });
        let some = counted.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(count, tier)| format!("{count} of tier {tier}")).collect::<Vec<_>>().join(" and ")
    }
}

/// A worker and its tier, if that is known.
pub fn words(worker: Address, tier: Option<&str>) -> String {
    tier.map_or_else(|| worker.to_string(), |tier| format!("{worker}, tier {tier}"))
}

#[cfg(test)]
mod tests {
    use tensorlink_node::Speed;
    use tensorlink_node::price::Prices;
    use tensorlink_node::speed::Measured;
    use tensorlink_node::wire::gossip::WorkerAdvert;

    use super::*;

    fn candidate(n: u8, standard: u64) -> Candidate {
        let speed: Speed = Measured { fast: 1, standard, reference: 1, memory: 1 }.try_into().unwrap();
        let (prices, engine) = (Prices { sno: 1, eth: None }, String::new());
        let advert = WorkerAdvert { memory: 1, disk: 1, speed, free_lanes: 1, prices, engine };
        Candidate { address: Address::repeat_byte(n), advert, price_per_gmac: 1 }
    }

    /// Of a slow worker, a fast one and another slow one.
    fn tiers() -> Tiers {
        let (slow, fast) = (10_000_000_000, 40_000_000_000_000);
        Tiers::of(&[candidate(1, slow), candidate(2, fast), candidate(3, slow)])
    }

    #[test]
    fn workers_are_counted_by_tier_the_best_first() {
        assert_eq!(tiers().counted(), "1 of tier A and 2 of tier C");
        assert_eq!(tiers().only(&[Address::repeat_byte(3)]).counted(), "1 of tier C");
        assert_eq!(Tiers::default().counted(), "");
    }

    #[test]
    fn what_was_hired_is_known_of_that_job_alone() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(folder.path()).unwrap();
        let [hired, other] = [2, 9].map(Address::repeat_byte);
        tiers().write(&journal, JobId(7)).unwrap();
        let known = Tiers::read(&journal, JobId(7)).unwrap();
        assert_eq!(known, tiers());
        assert_eq!(known.words(hired), format!("{hired}, tier A"));
        assert_eq!(known.words(other), other.to_string());
        assert_eq!(Tiers::read(&journal, JobId(8)).unwrap(), Tiers::default());
        assert_eq!(serde_json::to_value(known.only(&[hired])).unwrap()[hired.to_string().to_lowercase()], "A");
    }
}
