//! What the chain has told of this account's jobs, for whoever watches.

use std::collections::BTreeMap;
use std::ops::Range;

use tensorlink_node::ports::{Event, EventAt};
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, Lane};
use tokio::sync::watch;

use crate::own::Own;

/// Tells of confirmed events of jobs that this account posted, and of convictions and slashes, in order. Dropping it
/// tells whoever watches that the chain is not followed any more.
#[derive(Debug)]
pub(crate) struct Telling {
    account: Address,
    own: Own,
    told: watch::Sender<Vec<EventAt>>,
}

impl Telling {
    /// Nothing is told yet; who watches has the other end.
    pub(crate) fn new(account: Address) -> (Self, watch::Receiver<Vec<EventAt>>) {
        let (told, events) = watch::channel(Vec::new());
        (Self { account, own: Own::new(account), told }, events)
    }

    /// Takes in an event.
    pub(crate) fn apply(&mut self, at: EventAt) {
        // Told anew after a reorganisation: what it left is there.
        let is_new = |last: Option<&EventAt>| last.is_none_or(|last| last.place() < at.place());
        if self.own.concerns(&at.event) && is_new(self.told.borrow().last()) {
            self.told.send_modify(|events| events.push(at));
        }
    }

    /// A reorganisation has undone this block and later ones; events are told anew, from the first on.
    pub(crate) fn take_back(&mut self, from: u64) {
        self.told.send_modify(|events| events.retain(|at| at.block < from));
        self.own = Own::new(self.account);
    }
}

/// Confirmed claims of a lane, each in the version that was confirmed last, in order.
pub(crate) fn claims_of(
    events: &[EventAt],
    lane: Lane,
    intervals: Range<u32>,
) -> impl Iterator<Item = (Claim, u64)> + use<> {
    let mut claims = BTreeMap::new();
    for at in events {
        if let Event::ClaimCommitted { claim, committed_at, .. } = &at.event
            && claim.lane() == lane
            && intervals.contains(&claim.interval)
        {
            claims.insert(claim.interval, (claim.clone(), *committed_at));
        }
    }
    claims.into_values()
}

#[cfg(test)]
mod tests {
    use tensorlink_types::abi::{Claim, JobTerms};
    use tensorlink_types::{B256, ClaimId, JobId, U256};

    use super::*;

    const USER: Address = Address::repeat_byte(1);

    fn at(block: u64, event: Event) -> EventAt {
        let hash = B256::ZERO;
        EventAt { block, block_hash: hash, timestamp: block, log_index: 0, transaction: hash, event }
    }

    fn posted(block: u64) -> EventAt {
        let (job, terms) = (JobId(1), JobTerms::default());
        at(block, Event::JobPosted { job, user: USER, deposit: U256::ZERO, terms })
    }

    fn claimed(block: u64, interval: u32) -> EventAt {
        let claim = Claim { job: 1, interval, ..Claim::default() };
        at(block, Event::ClaimCommitted { id: ClaimId::default(), claim, committed_at: block })
    }

    #[test]
    fn what_a_reorganisation_leaves_is_told_once_and_what_it_undoes_is_not_told() {
        let (mut telling, events) = Telling::new(USER);
        for event in [posted(1), claimed(2, 0), claimed(3, 1)] {
            telling.apply(event);
        }
        telling.take_back(3);
        for event in [posted(1), claimed(2, 0), claimed(4, 2)] {
            telling.apply(event);
        }
        assert_eq!(*events.borrow(), [posted(1), claimed(2, 0), claimed(4, 2)]);
        let lane = Lane { job: JobId(1), stage: 0, replica: 0 };
        let claims: Vec<u32> = claims_of(&events.borrow(), lane, 0..2).map(|(claim, _)| claim.interval).collect();
        assert_eq!(claims, [0]);
        drop(telling);
        assert!(events.has_changed().is_err(), "nobody tells any more");
    }
}
