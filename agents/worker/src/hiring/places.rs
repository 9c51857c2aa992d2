//! Places for what a worker does for others side by side, of which nobody gets all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_types::Address;

/// How many places each asker holds.
type Held = HashMap<Address, usize>;

/// So many places in all, and so many for one asker.
#[derive(Debug)]
pub(crate) struct Places {
    all: usize,
    each: usize,
    held: Arc<Mutex<Held>>,
}

/// A place; given back on drop.
#[derive(Debug)]
pub(crate) struct Place {
    asker: Address,
    held: Arc<Mutex<Held>>,
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    pub(crate) fn new(all: usize, each: usize) -> Self {
        Self { all, each, held: Arc::default() }
    }

    /// A place, if one is left and the asker has not as many as it may have.
    pub(crate) fn take(&self, asker: Address) -> Option<Place> {
        let mut held = lock(&self.held);
        let of_asker = held.get(&asker).copied().unwrap_or_default();
        if of_asker >= self.each || held.values().sum::<usize>() >= self.all {
            return None;
        }
        held.insert(asker, of_asker.saturating_add(1));
        Some(Place { asker, held: self.held.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = lock(&self.held);
        match held.get_mut(&self.asker) {
            Some(n) if *n > 1 => *n -= 1,
            _ => drop(held.remove(&self.asker)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_asker_leaves_places_for_others_and_all_come_back() {
        let places = Places::new(3, 2);
        let [a, b] = [1, 2].map(Address::repeat_byte);
        let mut of_a: Vec<_> = (0..2).map(|_| places.take(a).unwrap()).collect();
        assert!(places.take(a).is_none());
        let of_b = places.take(b).unwrap();
        assert!(places.take(b).is_none(), "none is left");
        of_a.pop();
        let again = places.take(b).unwrap();
        drop((of_a, of_b, again));
        assert!(lock(&places.held).is_empty());
    }
}
