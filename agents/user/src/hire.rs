//! The market: what workers advertise, best first.

use std::collections::HashMap;

use tensorlink_node::wire::gossip::WorkerAdvert;
use tensorlink_types::{Address, Lane};
use thiserror::Error;

/// A worker that could be hired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its address.
    pub address: Address,
    /// What it advertised last.
    pub advert: WorkerAdvert,
}

/// A lane, and the worker wanted for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The lane.
    pub lane: Lane,
    /// Who shall hold it.
    pub worker: Address,
    /// Most to pay for an interval, wei of the job's token: what the worker advertised.
    pub limit: u128,
}

/// The market as adverts tell it: the latest of each staked worker.
#[derive(Clone, Debug, Default)]
pub struct Market {
    adverts: HashMap<Address, WorkerAdvert>,
}

/// Not enough workers.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{found} staked workers with a free lane answer, {needed} are needed: wait, lower --stages or --replicas, or start more workers"
)]
pub struct TooFew {
    /// Workers found.
    pub found: usize,
    /// Workers needed.
    pub needed: usize,
}

impl Market {
    /// Takes in an advert; the latest of a worker counts.
    pub fn hear(&mut self, address: Address, advert: WorkerAdvert) {
        self.adverts.insert(address, advert);
    }

    /// All workers that `eligible` admits and that have a free lane, at least `count`, cheapest first; among equals
    /// those with more memory, then by address, so that two looks at one market agree.
    ///
    /// # Errors
    /// [`TooFew`].
    pub fn rank(&self, count: usize, eligible: impl Fn(Address) -> bool) -> Result<Vec<Candidate>, TooFew> {
        let mut candidates: Vec<Candidate> = self
            .adverts
            .iter()
            .filter(|(address, advert)| advert.free_lanes > 0 && eligible(**address))
            .map(|(address, advert)| Candidate { address: *address, advert: advert.clone() })
            .collect();
        candidates.sort_by_key(|c| (c.advert.price_per_gmac, std::cmp::Reverse(c.advert.memory), c.address));
        if candidates.len() < count {
            return Err(TooFew { found: candidates.len(), needed: count });
        }
        Ok(candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advert(price_per_gmac: u128, free_lanes: u16) -> WorkerAdvert {
        WorkerAdvert { memory: 1, free_lanes, price_per_gmac, engine: String::new() }
    }

    #[test]
    fn the_free_and_eligible_are_ranked_by_price() {
        let mut market = Market::default();
        let address = Address::with_last_byte;
        for (n, price, lanes) in [(1, 5, 1), (2, 3, 1), (3, 1, 0), (4, 2, 1), (5, 1, 1)] {
            market.hear(address(n), advert(price, lanes));
        }
        let eligible = |a: Address| a != address(5);
        let chosen = market.rank(2, eligible).unwrap();
        assert_eq!(chosen.iter().map(|c| c.address).collect::<Vec<_>>(), [address(4), address(2), address(1)]);
        assert_eq!(market.rank(4, eligible), Err(TooFew { found: 3, needed: 4 }));
    }

    #[test]
    fn the_latest_advert_counts() {
        let mut market = Market::default();
        market.hear(Address::ZERO, advert(1, 1));
        market.hear(Address::ZERO, advert(1, 0));
        assert!(market.rank(1, |_| true).is_err());
    }
}
