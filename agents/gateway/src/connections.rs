//! Who is connected: so many at once, so many of one address, and whoever rests longest makes room.
//!
//! A client that has just come, or has just been answered, is about to ask: its next request may be on its way.
//! So only who has rested for [`SETTLED`] makes room.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// After which a connection that rests may be ended for another.
const SETTLED: Duration = Duration::from_secs(1);
/// Between two lines of the log that say that somebody was turned away.
const TOLD: Duration = Duration::from_secs(60);

/// The connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    most_of_one: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: BTreeMap<u64, Entry>,
    next: u64,
    told: Option<Instant>,
}

#[derive(Debug)]
struct Entry {
    from: IpAddr,
    activity: Arc<Activity>,
    end: CancellationToken,
}

/// What a connection is at.
#[derive(Debug)]
pub(super) struct Activity {
    /// Requests whose answers are not all sent.
    requests: AtomicUsize,
    /// When it last began or ended one, or came.
    since: Mutex<Instant>,
}

/// A request under way; until this is dropped its connection does not rest.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl Activity {
    /// A request begins.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.requests.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }

    /// Since when it rests; nothing while it does not.
    fn resting(&self) -> Option<Instant> {
        (self.requests.load(Ordering::Acquire) == 0).then(|| *self.since.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Busy {
    /// Does nothing but keep this until what calls it is dropped.
    pub(super) const fn follow(&self) {}
}

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A place among the connections, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    connections: Arc<Connections>,
    pub(super) activity: Arc<Activity>,
    /// Cancelled when it has to make room.
    pub(super) end: CancellationToken,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.table().entries.remove(&self.number);
    }
}

impl Connections {
    /// At most `most` connections at once, `most_of_one` of them from one address.
    pub(super) fn new(most: usize, most_of_one: usize) -> Arc<Self> {
        Arc::new(Self { most, most_of_one, table: Mutex::default() })
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from an address. Where there is none, the connection of that address, or of any, that
    /// has rested longest makes room. Nothing if none has rested for [`SETTLED`].
    pub(super) fn admit(self: &Arc<Self>, from: IpAddr, now: Instant) -> Option<Place> {
        let mut table = self.table();
        let of_one = table.entries.values().filter(|entry| entry.from == from).count();
        let full = if of_one >= self.most_of_one {
            Some(Some(from))
        } else {
            (table.entries.len() >= self.most).then_some(None)
        };
        if let Some(whose) = full {
            let ended = table.end_longest_resting(whose, now);
            if table.told.is_none_or(|told| now.saturating_duration_since(told) >= TOLD) {
                table.told = Some(now);
                let most = if whose.is_some() { self.most_of_one } else { self.most };
                let made = if ended { "the one that rested longest was ended" } else { "a new one was refused" };
                tracing::warn!(%from, "{most} connections {}: {made}", if whose.is_some() { "of one address" } else { "in all" });
            }
            if !ended {
                return None;
            }
        }
        let number = table.next;
        table.next = table.next.wrapping_add(1);
        let activity = Arc::new(Activity { requests: AtomicUsize::new(0), since: Mutex::new(now) });
        let end = CancellationToken::new();
        table.entries.insert(number, Entry { from, activity: Arc::clone(&activity), end: end.clone() });
        Some(Place { number, connections: Arc::clone(self), activity, end })
    }
}

impl Table {
    /// Ends the connection that has rested longest, of an address or of all. Whether there was one.
    fn end_longest_resting(&mut self, whose: Option<IpAddr>, now: Instant) -> bool {
        let candidates = self.entries.iter().filter(|(_, entry)| whose.is_none_or(|from| entry.from == from));
        let resting = candidates.filter_map(|(number, entry)| entry.activity.resting().map(|since| (since, *number)));
        let settled = resting.filter(|(since, _)| now.saturating_duration_since(*since) >= SETTLED);
        let Some((_, number)) = settled.min() else { return false };
        if let Some(entry) = self.entries.remove(&number) {
            entry.end.cancel();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn whoever_rests_longest_makes_room() {
        let (connections, start) = (Connections::new(3, 3), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let places: Vec<Place> = (0..3).map(|n| connections.admit(address(n), at(n.into())).unwrap()).collect();
        let busy = places[0].activity.begin();
        let fourth = connections.admit(address(9), at(9)).unwrap();
        let ended: Vec<bool> = places.iter().map(|place| place.end.is_cancelled()).collect();
        assert_eq!(ended, [false, true, false], "the first is at a request");
        let more = [places[2].activity.begin(), fourth.activity.begin()];
        assert!(connections.admit(address(9), at(10)).is_none(), "nobody rests");
        drop((busy, more));
        drop(fourth);
        assert!(connections.admit(address(9), at(11)).is_some(), "a place was given back");
    }

    #[test]
    fn an_address_takes_only_so_much() {
        let (connections, start) = (Connections::new(10, 2), Instant::now());
        let other = connections.admit(address(1), start).unwrap();
        let first = connections.admit(address(2), start).unwrap();
        let second = connections.admit(address(2), start + Duration::from_secs(1)).unwrap();
        let third = connections.admit(address(2), start + Duration::from_secs(2)).unwrap();
        assert!(connections.admit(address(2), start + Duration::from_secs(1)).is_none(), "both have just come");
        let ended: Vec<bool> = [&other, &first, &second, &third].iter().map(|place| place.end.is_cancelled()).collect();
        assert_eq!(ended, [false, true, false, false]);
    }
}
