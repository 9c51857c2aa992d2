//! What peers share: so many places, so many bytes. One peer never gets all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_types::Address;

/// How much of something each peer holds.
#[derive(Default)]
struct Shares {
    used: usize,
    held: HashMap<Address, usize>,
}

impl Shares {
    fn of(&self, peer: Address) -> usize {
        self.held.get(&peer).copied().unwrap_or_default()
    }

    fn take(&mut self, peer: Address, n: usize) {
        self.used = self.used.saturating_add(n);
        let held = self.held.entry(peer).or_default();
        *held = held.saturating_add(n);
    }

    fn give_back(&mut self, peer: Address, n: usize) {
        self.used = self.used.saturating_sub(n);
        if let Entry::Occupied(mut held) = self.held.entry(peer) {
            *held.get_mut() = held.get().saturating_sub(n);
            if *held.get() == 0 {
                held.remove();
            }
        }
    }
}

fn lock(shares: &Mutex<Shares>) -> MutexGuard<'_, Shares> {
    shares.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Places, of which each peer may hold some.
pub(crate) struct Seats {
    all: usize,
    each: usize,
    shares: Arc<Mutex<Shares>>,
}

/// A place; given back on drop.
pub(crate) struct Seat {
    peer: Address,
    shares: Arc<Mutex<Shares>>,
}

impl Seats {
    pub(crate) fn new(all: usize, each: usize) -> Self {
        Self { all, each, shares: Arc::default() }
    }

    /// A place for a peer, if one is left and it has not its share already.
    pub(crate) fn take(&self, peer: Address) -> Option<Seat> {
        let mut shares = lock(&self.shares);
        if shares.used >= self.all || shares.of(peer) >= self.each {
            return None;
        }
        shares.take(peer, 1);
        Some(Seat { peer, shares: self.shares.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.shares).give_back(self.peer, 1);
    }
}

/// A peer may hold one part where so many are left for others.
const LEFT: usize = 3;

/// Bytes of memory. A peer may hold no more than a third of what is then left for others, so one alone gets a quarter,
/// and each that comes next a quarter of what is left.
pub(crate) struct Budget {
    all: usize,
    shares: Arc<Mutex<Shares>>,
}

/// What a peer holds of a [`Budget`]; given back on drop.
pub(crate) struct Memory {
    peer: Address,
    all: usize,
    bytes: usize,
    shares: Arc<Mutex<Shares>>,
}

impl Budget {
    pub(crate) fn new(all: usize) -> Self {
        Self { all, shares: Arc::default() }
    }

    /// Nothing yet, for a peer.
    pub(crate) fn open(&self, peer: Address) -> Memory {
        Memory { peer, all: self.all, bytes: 0, shares: self.shares.clone() }
    }
}

impl Memory {
    /// Takes more; whether there was room.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let mut shares = lock(&self.shares);
        let left = self.all.saturating_sub(shares.used).checked_sub(bytes);
        let room = left.is_some_and(|left| shares.of(self.peer).saturating_add(bytes) <= left / LEFT);
        if room {
            shares.take(self.peer, bytes);
            self.bytes = self.bytes.saturating_add(bytes);
        }
        room
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        lock(&self.shares).give_back(self.peer, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address::repeat_byte(1);
    const B: Address = Address::repeat_byte(2);

    #[test]
    fn seats_are_bounded_by_peer_and_in_all_and_come_back() {
        let seats = Seats::new(3, 2);
        let mut held: Vec<_> = (0..2).map(|_| seats.take(A).unwrap()).collect();
        assert!(seats.take(A).is_none());
        let other = seats.take(B).unwrap();
        assert!(seats.take(B).is_none(), "none is left");
        held.pop();
        assert!(seats.take(B).is_some());
        drop((held, other));
        assert!(lock(&seats.shares).held.is_empty() && lock(&seats.shares).used == 0);
    }

    #[test]
    fn whoever_comes_next_finds_memory_left() {
        let budget = Budget::new(1 << 20);
        let mut all = Vec::new();
        for n in 1..=16 {
            let mut memory = budget.open(Address::repeat_byte(n));
            assert!(memory.grow(1 << 10), "peer {n}");
            // It takes whatever it gets, in ever smaller pieces, by many requests.
            for size in [1 << 16, 1 << 12, 1 << 8, 1] {
                while memory.grow(size) {}
            }
            all.push(memory);
        }
        let mut again = budget.open(Address::repeat_byte(1));
        assert!(!again.grow(1), "its share is that of its key, not of its request");
        drop((all, again));
        assert_eq!(lock(&budget.shares).used, 0);
    }

    #[test]
    fn one_alone_gets_a_quarter() {
        let budget = Budget::new(1600);
        let mut memory = budget.open(A);
        assert!(memory.grow(400) && !memory.grow(1));
        let (mut other, mut more) = (budget.open(B), budget.open(B));
        assert!(other.grow(300) && !more.grow(1), "a quarter of what is left");
        drop(other);
        assert!(more.grow(300));
        drop(memory);
        assert!(!budget.open(A).grow(usize::MAX));
    }
}
