//! What neighbours have claimed, and what came of our demands.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_proof::custody::sent_over;
use tensorlink_types::abi::{Claim, Demand};
use tensorlink_types::{Address, JobId, Lane, U256};

/// Claims of a neighbour that are remembered. It has made none that counts before we have what we need for the first
/// of them.
const CLAIMS: usize = 16;

/// A neighbour's claim.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Claimed {
    pub(super) claim: Claim,
    pub(super) committed_at: u64,
    /// When something can be done about it, seconds by our clock.
    pub(super) from: u64,
}

#[derive(Debug, Default)]
struct Known {
    claims: HashMap<Lane, BTreeMap<u32, Claimed>>,
    /// Of whom we have demanded something.
    asked: HashSet<Lane>,
    /// The same by demand.
    demands: HashMap<U256, Address>,
    /// Who has shown what we asked for, in whatever job. Each of them has cost us a bond: there are not many.
    shown: HashSet<Address>,
}

/// What neighbours have claimed, and what came of our demands: folded from confirmed events, and so the same after
/// a restart.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Known>);

impl Ledger {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a neighbour's claim; `next` is the first interval that our lane has not finished, `now` in seconds.
    pub(super) fn claimed(&self, claim: &Claim, committed_at: u64, (next, now): (u32, u64)) {
        let mut known = self.known();
        let claims = known.claims.entry(claim.lane()).or_default();
        claims.retain(|interval, _| *interval >= next);
        if claim.interval >= next && (claims.len() < CLAIMS || claims.contains_key(&claim.interval)) {
            claims.insert(claim.interval, Claimed { claim: claim.clone(), committed_at, from: now });
        }
    }

    /// Takes in a demand.
    pub(super) fn demanded(&self, id: U256, demand: &Demand, own: Address) {
        if demand.demander == own && sent_over(demand).is_some() {
            let mut known = self.known();
            known.asked.insert(Lane { job: JobId(demand.job), stage: demand.stage, replica: demand.replica });
            known.demands.insert(id, demand.holder);
        }
    }

    /// Takes in the end of a demand.
    pub(super) fn ended(&self, id: U256, shown: bool) {
        let mut known = self.known();
        if let Some(holder) = known.demands.remove(&id)
            && shown
        {
            known.shown.insert(holder);
        }
    }

    /// A job is over.
    pub(super) fn forget(&self, job: JobId) {
        let mut known = self.known();
        known.claims.retain(|lane, _| lane.job != job);
        known.asked.retain(|lane| lane.job != job);
    }

    /// A neighbour's claim for an interval about which something is to be demanded if it goes on keeping it from us.
    pub(super) fn open(&self, lane: Lane, interval: u32) -> Option<Claimed> {
        let known = self.known();
        let claimed = known.claims.get(&lane)?.get(&interval)?;
        (!known.asked.contains(&lane)).then(|| claimed.clone())
    }

    pub(super) fn asked(&self, lane: Lane) {
        self.known().asked.insert(lane);
    }

    pub(super) fn has_shown(&self, worker: Address) -> bool {
        self.known().shown.contains(&worker)
    }

    pub(super) fn put_off(&self, claim: &Claim, from: u64) {
        let mut known = self.known();
        if let Some(claimed) = known.claims.get_mut(&claim.lane()).and_then(|claims| claims.get_mut(&claim.interval)) {
            claimed.from = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::B256;
    use tensorlink_types::abi::DemandKind;

    use super::*;

    const LANE: Lane = Lane { job: JobId(3), stage: 1, replica: 0 };
    const OWN: Address = Address::repeat_byte(1);
    const HOLDER: Address = Address::repeat_byte(2);

    fn claim(interval: u32) -> Claim {
        Claim { job: 3, stage: 1, replica: 0, interval, parentState: B256::ZERO, newState: B256::ZERO, io: B256::ZERO }
    }

    fn demand(interval: u32, kind: DemandKind, demander: Address) -> Demand {
        let claim = claim(interval);
        let claim_id = B256::with_last_byte(claim.interval as u8);
        Demand { kind: kind as u8, claimId: claim_id, job: 3, stage: 1, demander, holder: HOLDER, ..Demand::default() }
    }

    fn is_open(ledger: &Ledger, interval: u32) -> bool {
        ledger.open(LANE, interval).is_some()
    }

    #[test]
    fn a_neighbour_is_asked_once_in_a_job() {
        let ledger = Ledger::default();
        ledger.claimed(&claim(4), 90, (5, 100));
        assert!(!is_open(&ledger, 4), "we have finished it");
        ledger.claimed(&claim(5), 90, (5, 100));
        let open = ledger.open(LANE, 5).unwrap();
        assert_eq!((open.committed_at, open.from, is_open(&ledger, 6)), (90, 100, false));
        ledger.put_off(&claim(5), 130);
        assert_eq!(ledger.open(LANE, 5).unwrap().from, 130);

        // By others, or for another thing.
        ledger.demanded(U256::from(1), &demand(5, DemandKind::SentToNext, Address::ZERO), OWN);
        ledger.demanded(U256::from(2), &demand(5, DemandKind::State, OWN), OWN);
        assert!(is_open(&ledger, 5));
        ledger.demanded(U256::from(3), &demand(5, DemandKind::SentToNext, OWN), OWN);
        ledger.claimed(&claim(6), 95, (5, 110));
        assert!(!is_open(&ledger, 5) && !is_open(&ledger, 6), "nor while the first demand is open");
        ledger.forget(LANE.job);
        ledger.claimed(&claim(6), 95, (6, 110));
        assert!(is_open(&ledger, 6));
        ledger.asked(LANE);
        assert!(!is_open(&ledger, 6), "before its event is confirmed, too");
    }

    #[test]
    fn who_shows_what_it_does_not_send_is_not_paid_for_it_twice() {
        let ledger = Ledger::default();
        ledger.demanded(U256::from(3), &demand(5, DemandKind::SentToPrevious, OWN), OWN);
        ledger.ended(U256::from(4), true);
        assert!(!ledger.has_shown(HOLDER), "that was another's demand");
        ledger.ended(U256::from(3), true);
        ledger.forget(LANE.job);
        assert!(ledger.has_shown(HOLDER), "in no job any more");
        ledger.demanded(U256::from(5), &demand(5, DemandKind::SentToPrevious, OWN), OWN);
        ledger.ended(U256::from(5), false);
        assert!(!ledger.has_shown(OWN));
    }

    #[test]
    fn no_more_claims_are_remembered_than_there_is_a_use_for() {
        let ledger = Ledger::default();
        for interval in 0..100 {
            ledger.claimed(&claim(interval), 1, (0, 1));
        }
        assert!(is_open(&ledger, 0) && is_open(&ledger, 15) && !is_open(&ledger, 16));
        ledger.claimed(&claim(20), 1, (18, 1));
        assert!(!is_open(&ledger, 0) && is_open(&ledger, 20));
    }
}
