//! Whom to ask for the blocks of one file, in which order, and whom no longer.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tensorlink_types::Address;

/// Failed requests after which a holder is not asked again for this file.
const STRIKES: usize = 3;

#[derive(Debug)]
struct Holder {
    address: Address,
    strikes: usize,
    lied: bool,
}

/// The holders of a file while it is fetched. Those that fail go to the back, and drop out before they hold up
/// every block.
#[derive(Debug)]
pub(crate) struct Holders(Mutex<Vec<Holder>>);

impl Holders {
    /// Holders in the order in which to ask them, without `own` and without repetition.
    pub(crate) fn new(addresses: &[Address], own: Address) -> Self {
        let mut seen = HashSet::from([own]);
        let fresh = addresses.iter().filter(|address| seen.insert(**address));
        Self(Mutex::new(fresh.map(|&address| Holder { address, strikes: 0, lied: false }).collect()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Holder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The best holder that has not been `asked` for the block at hand; adds it there.
    pub(crate) fn next(&self, asked: &mut HashSet<Address>) -> Option<Address> {
        let holders = self.lock();
        let fit = holders.iter().filter(|h| !h.lied && h.strikes < STRIKES && !asked.contains(&h.address));
        // The first of those with the fewest strikes.
        let best = fit.min_by_key(|h| h.strikes)?.address;
        asked.insert(best);
        Some(best)
    }

    /// A holder gave no answer.
    pub(crate) fn failed(&self, address: Address) {
        if let Some(holder) = self.lock().iter_mut().find(|h| h.address == address) {
            holder.strikes += 1;
        }
    }

    /// A holder gave wrong bytes: never ask it again.
    pub(crate) fn lied(&self, address: Address) {
        if let Some(holder) = self.lock().iter_mut().find(|h| h.address == address) {
            holder.lied = true;
        }
    }

    /// One that gave wrong bytes.
    pub(crate) fn liar(&self) -> Option<Address> {
        self.lock().iter().find(|h| h.lied).map(|h| h.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_that_fail_go_to_the_back_and_drop_out_and_liars_at_once() {
        let [own, a, b, c] = [1, 2, 3, 4].map(Address::repeat_byte);
        let holders = Holders::new(&[a, own, b, a, c], own);
        let order = || {
            let mut asked = HashSet::new();
            std::iter::from_fn(|| holders.next(&mut asked)).collect::<Vec<_>>()
        };
        assert_eq!(order(), [a, b, c]);
        holders.failed(a);
        assert_eq!(order(), [b, c, a]);
        holders.lied(b);
        assert_eq!((order(), holders.liar()), (vec![c, a], Some(b)));
        holders.failed(a);
        holders.failed(a);
        assert_eq!(order(), [c]);
    }
}
