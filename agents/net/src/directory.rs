//! From Ethereum address to PeerId and multiaddrs: signed records in the DHT, and the book of those we learnt.
//!
//! A record lives under `tensorlink/peer/<20 bytes>` and is a libp2p signed peer record. It counts only if its
//! signature is that of its PeerId and the PeerId's key hashes to the address in the DHT key, so nobody can publish
//! for another.

use std::collections::HashMap;
use std::time::Duration;

use libp2p::core::{PeerRecord, SignedEnvelope};
use libp2p::kad::{Record, RecordKey};
use libp2p::{Multiaddr, PeerId};
use rand::seq::IteratorRandom;
use tensorlink_types::Address;
use thiserror::Error;

use crate::identity::{Identity, address_of};

/// What every key of a peer's record starts with.
const PREFIX: &[u8] = b"tensorlink/peer/";
/// Most multiaddrs a record may list.
pub(crate) const MAX_ADDRESSES: usize = 16;
/// Most bytes a record may have.
pub(crate) const MAX_RECORD_BYTES: usize = 4096;
/// How far a record's clock may run ahead of ours, so that nobody pins a record for ever.
const MAX_SKEW: Duration = Duration::from_secs(600);

/// Why a record does not count. None of these can be mended by its receiver.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    /// The key is not that of a peer's record.
    #[error("the record's key is not `tensorlink/peer/` and 20 bytes")]
    Key,
    /// Too many bytes or addresses.
    #[error("the record exceeds {MAX_RECORD_BYTES} bytes or {MAX_ADDRESSES} addresses")]
    TooLarge,
    /// The signature or the envelope is wrong.
    #[error("the record is not a signed peer record: {0}")]
    Signature(String),
    /// The record is somebody else's.
    #[error("the record under {key} is signed by {signer:?}")]
    Owner {
        /// The address in the key.
        key: Address,
        /// The address of the signer, if it has one.
        signer: Option<Address>,
    },
    /// The record claims to be of the future.
    #[error("the record is dated {ahead:?} ahead of our clock")]
    Future {
        /// By how much.
        ahead: Duration,
    },
}

/// Where a peer can be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Route {
    /// Its libp2p name.
    pub peer: PeerId,
    /// Its addresses, without `/p2p`.
    pub addresses: Vec<Multiaddr>,
    /// Unix seconds at which it said so; the later record wins.
    pub since: u64,
}

/// The addresses to try first: TCP where there is any. QUIC shakes hands faster and would win a race, but moves half as
/// much (`cargo bench -p tensorlink-net`), so it is for peers that TCP does not reach.
pub(crate) fn preferred(addresses: &[Multiaddr]) -> Vec<Multiaddr> {
    let tcp = |a: &&Multiaddr| a.iter().any(|part| matches!(part, libp2p::multiaddr::Protocol::Tcp(_)));
    let tcp: Vec<_> = addresses.iter().filter(tcp).cloned().collect();
    if tcp.is_empty() { addresses.to_vec() } else { tcp }
}

/// The DHT key of an address.
pub(crate) fn record_key(address: Address) -> RecordKey {
    RecordKey::new(&[PREFIX, address.as_slice()].concat())
}

/// Whose record lives under a DHT key.
pub(crate) fn record_owner(key: &RecordKey) -> Result<Address, RecordError> {
    let bytes = key.as_ref().strip_prefix(PREFIX).ok_or(RecordError::Key)?;
    Address::try_from(bytes).map_err(|_| RecordError::Key)
}

/// Our own record, signed now.
pub(crate) fn sign_record(identity: &Identity, mut addresses: Vec<Multiaddr>) -> Result<Record, RecordError> {
    addresses.truncate(MAX_ADDRESSES);
    let record = PeerRecord::new(identity.keypair(), addresses).map_err(|e| RecordError::Signature(e.to_string()))?;
    let value = record.into_signed_envelope().into_protobuf_encoding();
    if value.len() > MAX_RECORD_BYTES {
        return Err(RecordError::TooLarge);
    }
    Ok(Record::new(record_key(identity.address()), value))
}

/// Checks a record from the DHT. `now` is unix seconds.
pub(crate) fn check_record(record: &Record, now: u64) -> Result<(Address, Route), RecordError> {
    let key = record_owner(&record.key)?;
    if record.value.len() > MAX_RECORD_BYTES {
        return Err(RecordError::TooLarge);
    }
    let envelope =
        SignedEnvelope::from_protobuf_encoding(&record.value).map_err(|e| RecordError::Signature(e.to_string()))?;
    let signed = PeerRecord::from_signed_envelope(envelope).map_err(|e| RecordError::Signature(e.to_string()))?;
    let signer = address_of(&signed.peer_id()).ok();
    if signer != Some(key) {
        return Err(RecordError::Owner { key, signer });
    }
    if signed.addresses().len() > MAX_ADDRESSES {
        return Err(RecordError::TooLarge);
    }
    let ahead = Duration::from_secs(signed.seq().saturating_sub(now));
    if ahead > MAX_SKEW {
        return Err(RecordError::Future { ahead });
    }
    Ok((key, Route { peer: signed.peer_id(), addresses: signed.addresses().to_vec(), since: signed.seq() }))
}

/// The routes we know, at most `capacity`; the one that was said longest ago goes first.
#[derive(Debug)]
pub(crate) struct Book {
    routes: HashMap<Address, Route>,
    capacity: usize,
}

impl Book {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { routes: HashMap::new(), capacity }
    }

    pub(crate) fn get(&self, address: Address) -> Option<&Route> {
        self.routes.get(&address)
    }

    /// Some routes, by chance.
    pub(crate) fn some(&self, most: usize) -> Vec<Route> {
        self.routes.values().cloned().choose_multiple(&mut rand::rng(), most)
    }

    /// Remembers a route unless we know a later one.
    pub(crate) fn learn(&mut self, address: Address, mut route: Route) {
        route.addresses.truncate(MAX_ADDRESSES);
        if self.routes.get(&address).is_some_and(|known| known.since > route.since) {
            return;
        }
        if self.routes.len() >= self.capacity
            && !self.routes.contains_key(&address)
            && let Some(oldest) = self.routes.iter().min_by_key(|(_, r)| r.since).map(|(a, _)| *a)
        {
            self.routes.remove(&oldest);
        }
        self.routes.insert(address, route);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(n: u8) -> Identity {
        Identity::from_secret([n; 32]).unwrap()
    }

    fn addresses() -> Vec<Multiaddr> {
        vec!["/ip4/127.0.0.1/tcp/4001".parse().unwrap()]
    }

    fn now() -> u64 {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
    }

    #[test]
    fn a_record_gives_back_its_route() {
        let me = identity(1);
        let record = sign_record(&me, addresses()).unwrap();
        let (address, route) = check_record(&record, now()).unwrap();
        assert_eq!((address, route.peer, route.addresses), (me.address(), me.peer_id(), addresses()));
    }

    #[test]
    fn a_record_under_the_address_of_another_is_refused() {
        let (thief, victim) = (identity(1), identity(2));
        let mut record = sign_record(&thief, addresses()).unwrap();
        record.key = record_key(victim.address());
        let refused = check_record(&record, now()).unwrap_err();
        assert!(matches!(refused, RecordError::Owner { key, signer }
            if key == victim.address() && signer == Some(thief.address())));
    }

    #[test]
    fn a_flipped_bit_anywhere_is_refused() {
        let record = sign_record(&identity(1), addresses()).unwrap();
        for at in 0..record.value.len() {
            let mut bad = record.clone();
            bad.value[at] ^= 1;
            assert!(check_record(&bad, now()).is_err(), "byte {at}");
        }
    }

    #[test]
    fn records_of_the_future_and_foreign_keys_are_refused() {
        let record = sign_record(&identity(1), addresses()).unwrap();
        assert!(matches!(check_record(&record, now() - 3600), Err(RecordError::Future { .. })));
        let mut other = record.clone();
        other.key = RecordKey::new(b"something/else");
        assert!(matches!(check_record(&other, now()), Err(RecordError::Key)));
        let mut large = record;
        large.value.resize(MAX_RECORD_BYTES + 1, 0);
        assert!(matches!(check_record(&large, now()), Err(RecordError::TooLarge)));
    }

    #[test]
    fn quic_is_for_those_whom_tcp_does_not_reach() {
        let quic: Multiaddr = "/ip4/127.0.0.1/udp/4001/quic-v1".parse().unwrap();
        let both = [vec![quic.clone()], addresses()].concat();
        assert_eq!(preferred(&both), addresses());
        assert_eq!(preferred(std::slice::from_ref(&quic)), [quic]);
    }

    #[test]
    fn the_book_is_bounded_and_keeps_the_latest() {
        let mut book = Book::new(2);
        let route = |since| Route { peer: identity(9).peer_id(), addresses: addresses(), since };
        book.learn(Address::repeat_byte(1), route(5));
        book.learn(Address::repeat_byte(1), route(4));
        assert_eq!(book.get(Address::repeat_byte(1)).unwrap().since, 5);
        book.learn(Address::repeat_byte(2), route(7));
        book.learn(Address::repeat_byte(3), route(6));
        assert!(book.get(Address::repeat_byte(1)).is_none());
        assert!(book.get(Address::repeat_byte(3)).is_some());
        assert_eq!((book.some(1).len(), book.some(3).len()), (1, 2));
    }
}
