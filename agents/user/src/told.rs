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
