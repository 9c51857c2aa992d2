//! Which records of others we keep for the DHT.
//!
//! A record counts only under its signer's own address, so each key has one. There may be any number of keys, so the
//! number of records is bounded: where there is no room, those of keys without stake go first, the oldest of them
//! before the others. A key publishes its record anew every ten minutes, so what was lost comes back.

use libp2p::kad::store::RecordStore;
use libp2p::kad::{Record, RecordKey, store};
use tensorlink_types::Address;

use crate::directory::{RecordError, check_record, record_owner};

/// The share of the records that goes at once, so that the oldest need not be looked for each time.
const BATCH: usize = 64;

/// What became of a record.
#[derive(Debug)]
pub(crate) enum Kept {
    /// It is kept.
    Yes,
    /// We have a later one.
    Older,
    /// All that we keep are of keys with stake, and its own has none.
    NoRoom,
}

/// Why a record cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeepError {
    /// It does not check.
    #[error(transparent)]
    Bad(#[from] RecordError),
    /// The store would not take it.
    #[error("the store does not take it: {0}")]
    Store(#[from] store::Error),
}

/// Keeps a record if it checks, and if we have none that is later. At most `capacity` are kept, of which ours, the
/// record of `own`, never makes room. `now` is unix seconds.
pub(crate) fn keep<S: RecordStore>(
    store: &mut S,
    record: Record,
    (own, capacity): (Address, usize),
    staked: impl Fn(Address) -> bool,
    now: u64,
) -> Result<Kept, KeepError> {
    let (owner, route) = check_record(&record, now)?;
    match store.get(&record.key).map(|kept| check_record(&kept, now)) {
        Some(Ok((_, kept))) if kept.since > route.since => return Ok(Kept::Older),
        Some(_) => {}
        None => {
            let full = store.records().count() >= capacity;
            if full && !make_room(store, (own, capacity), staked(owner), &staked) {
                return Ok(Kept::NoRoom);
            }
        }
    }
    store.put(record)?;
    Ok(Kept::Yes)
}

/// Forgets the least useful records; whether there is room then. For who has no stake no record of who has goes.
fn make_room<S: RecordStore>(
    store: &mut S,
    (own, capacity): (Address, usize),
    for_staked: bool,
    staked: &impl Fn(Address) -> bool,
) -> bool {
    let mut kept: Vec<_> = store
        .records()
        .map(|record| (record_owner(&record.key), record))
        .filter(|(owner, _)| !matches!(owner, Ok(owner) if *owner == own))
        .map(|(owner, record)| (owner.is_ok_and(staked), record.expires, record.key.clone()))
        .filter(|(of_staked, ..)| for_staked || !of_staked)
        .collect();
    // What came first expires first.
    kept.sort_unstable_by_key(|(of_staked, expires, _)| (*of_staked, *expires));
    // Of those with stake no more than must.
    let strangers = kept.iter().filter(|(of_staked, ..)| !of_staked).count();
    let going: Vec<RecordKey> =
        kept.into_iter().map(|(.., key)| key).take((capacity / BATCH).max(1).min(strangers.max(1))).collect();
    for key in &going {
        store.remove(key);
    }
    !going.is_empty()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use libp2p::kad::store::MemoryStore;

    use super::*;
    use crate::directory::{record_key, sign_record};
    use crate::identity::Identity;

    const NOW: u64 = u64::MAX / 2;

    fn identity(n: u8) -> Identity {
        Identity::from_secret([n; 32]).unwrap()
    }

    fn own() -> Address {
        identity(99).address()
    }

    /// A record that came so many seconds after the first.
    fn record(n: u8, second: u64, start: Instant) -> Record {
        let at = vec!["/ip4/127.0.0.1/tcp/4001".parse().unwrap()];
        let mut record = sign_record(&identity(n), at).unwrap();
        record.expires = Some(start + Duration::from_secs(3600 + second));
        record
    }

    fn has(store: &MemoryStore, n: u8) -> bool {
        store.get(&record_key(identity(n).address())).is_some()
    }

    #[test]
    fn a_full_store_takes_new_records_in_place_of_the_oldest_without_stake() {
        let (mut store, start) = (MemoryStore::new(identity(99).peer_id()), Instant::now());
        let staked = |address| [1, 5].iter().any(|n| identity(*n).address() == address);
        let mut put = |n: u8, second| keep(&mut store, record(n, second, start), (own(), 3), staked, NOW).unwrap();
        for (n, second) in [(1, 0), (2, 2), (3, 1)] {
            assert!(matches!(put(n, second), Kept::Yes));
        }
        assert!(matches!(put(4, 3), Kept::Yes), "without eviction it is refused");
        assert_eq!([1, 2, 3, 4].map(|n| has(&store, n)), [true, true, false, true]);
        let mut put = |n: u8, second| keep(&mut store, record(n, second, start), (own(), 3), staked, NOW).unwrap();
        assert!(matches!(put(5, 4), Kept::Yes) && matches!(put(4, 5), Kept::Yes), "its own is replaced");
        assert_eq!([1, 2, 4, 5].map(|n| has(&store, n)), [true, false, true, true]);
        assert_eq!(store.records().count(), 3);
    }

    #[test]
    fn who_has_no_stake_pushes_out_nobody_who_has() {
        let (mut store, start) = (MemoryStore::new(identity(99).peer_id()), Instant::now());
        let staked = |address| address != identity(9).address();
        let mut put = |n: u8, second| keep(&mut store, record(n, second, start), (own(), 2), staked, NOW).unwrap();
        assert!(matches!((put(1, 0), put(2, 1)), (Kept::Yes, Kept::Yes)));
        assert!(matches!(put(9, 2), Kept::NoRoom));
        assert!(matches!(put(3, 3), Kept::Yes));
        assert_eq!([1, 2, 3, 9].map(|n| has(&store, n)), [false, true, true, false]);
    }

    #[test]
    fn our_own_record_is_there_however_old_it_is() {
        let (mut store, start) = (MemoryStore::new(identity(99).peer_id()), Instant::now());
        let mut put = |n: u8, second| keep(&mut store, record(n, second, start), (own(), 3), |_| true, NOW).unwrap();
        for (n, second) in [(99, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)] {
            assert!(matches!(put(n, second), Kept::Yes));
        }
        assert_eq!([99, 1, 2, 3, 4, 5].map(|n| has(&store, n)), [true, false, false, false, true, true]);
    }
}
