//! The market: what workers advertise, best first; and why none is hired.

use std::cmp::Reverse;
use std::collections::HashMap;

use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{ChainError, NetError};
use tensorlink_node::speed::{Speed, Tier};
use tensorlink_node::wire::Malformed;
use tensorlink_node::wire::gossip::WorkerAdvert;
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_types::abi::Offer;
use tensorlink_types::{Address, Lane};
use thiserror::Error;

/// Adverts that are remembered: more workers than anybody chooses from.
const MAX_ADVERTS: usize = 4096;

/// What a job asks of each of its workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Stake that is free, wei of SNO.
    pub stake: u128,
    /// What it takes: a token, or zero for ETH.
    pub token: Address,
    /// The slowest tier that is hired, by what workers measured.
    pub tier: Tier,
}

impl Asked {
    /// Of workers of any tier.
    pub const fn of_any_tier(stake: u128, token: Address) -> Self {
        Self { stake, token, tier: Tier::C }
    }
}

/// A worker that could be hired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Its address.
    pub address: Address,
    /// What it advertised last.
    pub advert: WorkerAdvert,
    /// What it asks for a billion multiply-adds, wei of the job's token.
    pub price_per_gmac: u128,
}

impl Candidate {
    /// By which candidates are ranked: the cheapest first, among equals those with more memory, then by address.
    pub const fn rank(&self) -> (u128, Reverse<u64>, Address) {
        (self.price_per_gmac, Reverse(self.advert.memory), self.address)
    }
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

/// The market as adverts tell it: the latest of each worker, of 4,096 workers at most.
#[derive(Clone, Debug, Default)]
pub struct Market {
    adverts: HashMap<Address, Heard>,
    /// Adverts heard so far.
    heard: u64,
}

/// An advert, and how many were heard before it.
#[derive(Clone, Debug)]
struct Heard {
    advert: WorkerAdvert,
    before: u64,
    /// The fastest that it said it is, while it was not forgotten.
    fastest: Speed,
}

/// Not enough workers.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{found} staked workers{} with a free lane take the job's currency and answer, {needed} are needed: wait, lower --stages{} or --replicas, or start more workers",
    of_tier(*.tier),
    if *.tier == Tier::C { "" } else { ", --tier" }
)]
pub struct TooFew {
    /// Workers found.
    pub found: usize,
    /// The slowest tier that was asked for.
    pub tier: Tier,
    /// Workers needed.
    pub needed: usize,
}

/// What a message says of the slowest tier that was asked for.
fn of_tier(tier: Tier) -> String {
    if tier == Tier::C { String::new() } else { format!(" of tier {tier} or better") }
}

/// Why hiring failed.
#[derive(Debug, Error)]
pub enum HireError {
    /// The chain refused or failed.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Too few workers.
    #[error(transparent)]
    TooFew(#[from] TooFew),
    /// A worker does not answer.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A worker answers nonsense.
    #[error("{worker}: {source}")]
    Malformed {
        /// Who.
        worker: Address,
        /// What is wrong.
        source: Malformed,
    },
    /// A worker declines.
    #[error("{worker} declines {lane}: {reason}")]
    Declined {
        /// Who.
        worker: Address,
        /// For what.
        lane: Lane,
        /// Why.
        reason: String,
    },
    /// A worker signs something else than it was asked for.
    #[error("{worker} offers {offer:?} when asked for {lane}")]
    Mismatch {
        /// Who.
        worker: Address,
        /// For what.
        lane: Lane,
        /// What it signed.
        offer: Box<Offer>,
    },
    /// A worker asks for more than it advertised.
    #[error(
        "{worker} advertised {limit} wei an interval for {lane} and asks for {asked}: post again to hire by present adverts"
    )]
    Price {
        /// Who.
        worker: Address,
        /// For what.
        lane: Lane,
        /// What it advertised.
        limit: u128,
        /// What it signed.
        asked: u128,
    },
    /// A worker signs badly.
    #[error("{worker}: {source}")]
    Signature {
        /// Who.
        worker: Address,
        /// What is wrong.
        source: SignatureError,
    },
}

impl Market {
    /// Takes in an advert; the latest of a worker counts. Where there is no room, the worker that has been silent
    /// longest is forgotten.
    pub fn hear(&mut self, address: Address, advert: WorkerAdvert) {
        if self.adverts.len() >= MAX_ADVERTS && !self.adverts.contains_key(&address) {
            let silent = self.adverts.iter().min_by_key(|(_, heard)| heard.before).map(|(address, _)| *address);
            if let Some(address) = silent {
                self.forget(address);
            }
        }
        let before = self.adverts.get(&address).map(|heard| heard.fastest);
        let fastest = before.filter(|before| before.teraflops() > advert.speed.teraflops()).unwrap_or(advert.speed);
        self.adverts.insert(address, Heard { advert, before: self.heard, fastest });
        self.heard = self.heard.saturating_add(1);
    }

    /// Forgets a worker.
    pub fn forget(&mut self, address: Address) {
        self.adverts.remove(&address);
    }

    /// The fastest that a worker said it is. By what it says once it has been hired, others would not be chosen.
    pub fn fastest(&self, address: Address) -> Option<Speed> {
        self.adverts.get(&address).map(|heard| heard.fastest)
    }

    /// A worker by what it advertised last; none if that is nothing, or it does not take the token.
    pub fn known(&self, worker: Address, token: Address) -> Option<Candidate> {
        let advert = &self.adverts.get(&worker)?.advert;
        let price_per_gmac = advert.prices.in_token(token)?;
        Some(Candidate { address: worker, advert: advert.clone(), price_per_gmac })
    }

    /// All workers that `eligible` admits, that have a free lane, take the token and are fast enough, at least `count`,
    /// best first, so that two looks at one market agree. The stake is for `eligible` to look at.
    ///
    /// # Errors
    /// [`TooFew`].
    pub fn rank(
        &self,
        count: usize,
        Asked { token, tier, .. }: Asked,
        eligible: impl Fn(Address) -> bool,
    ) -> Result<Vec<Candidate>, TooFew> {
        let mut candidates: Vec<Candidate> = self
            .adverts
            .iter()
            .map(|(address, heard)| (*address, &heard.advert))
            .filter(|(address, advert)| advert.free_lanes > 0 && advert.speed.tier() >= tier && eligible(*address))
            .filter_map(|(address, _)| self.known(address, token))
            .collect();
        candidates.sort_by_key(Candidate::rank);
        if candidates.len() < count {
            return Err(TooFew { found: candidates.len(), tier, needed: count });
        }
        Ok(candidates)
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_node::Speed;
    use tensorlink_node::price::Prices;
    use tensorlink_node::speed::Measured;

    use super::*;

    const SNO: Asked = Asked::of_any_tier(0, Address::repeat_byte(9));

    fn advert(price_per_gmac: u128, free_lanes: u16) -> WorkerAdvert {
        let (prices, engine) = (Prices { sno: price_per_gmac, eth: None }, String::new());
        WorkerAdvert { memory: 1, disk: 1, speed: Speed::LEAST, free_lanes, prices, engine }
    }

    #[test]
    fn the_free_and_eligible_are_ranked_by_price() {
        let mut market = Market::default();
        let address = Address::with_last_byte;
        for (n, price, lanes) in [(1, 5, 1), (2, 3, 1), (3, 1, 0), (4, 2, 1), (5, 1, 1)] {
            market.hear(address(n), advert(price, lanes));
        }
        let eligible = |a: Address| a != address(5);
        let chosen = market.rank(2, SNO, eligible).unwrap();
        assert_eq!(chosen.iter().map(|c| c.address).collect::<Vec<_>>(), [address(4), address(2), address(1)]);
        assert_eq!(market.rank(4, SNO, eligible), Err(TooFew { found: 3, tier: Tier::C, needed: 4 }));
    }

    #[test]
    fn workers_of_a_slower_tier_are_not_hired() {
        let mut market = Market::default();
        let speed = |standard| Measured { fast: 1, standard, reference: 1, memory: 1 }.try_into().unwrap();
        for (n, standard) in [(1, 1_000_000_000), (2, 2_500_000_000_000), (3, 10_000_000_000_000)] {
            market.hear(Address::with_last_byte(n), WorkerAdvert { speed: speed(standard), ..advert(1, 1) });
        }
        let found = |tier| market.rank(0, Asked { tier, ..SNO }, |_| true).unwrap().len();
        assert_eq!([Tier::C, Tier::B, Tier::A].map(found), [3, 2, 1]);
        let few = market.rank(2, Asked { tier: Tier::A, ..SNO }, |_| true).unwrap_err().to_string();
        assert!(few.starts_with("1 staked workers of tier A or better with") && few.contains("--tier"), "{few}");
        let few = market.rank(4, SNO, |_| true).unwrap_err().to_string();
        assert!(few.starts_with("3 staked workers with") && !few.contains("tier"), "{few}");
    }

    #[test]
    fn the_market_is_bounded_and_forgets_whoever_has_been_silent_longest() {
        let mut market = Market::default();
        let address = |n: usize| Address::left_padding_from(&n.to_be_bytes());
        for n in 0..MAX_ADVERTS {
            market.hear(address(n), advert(1, 1));
        }
        market.hear(address(0), advert(1, 1));
        market.hear(address(MAX_ADVERTS), advert(1, 1));
        assert_eq!(market.adverts.len(), MAX_ADVERTS);
        let known = |n| market.adverts.contains_key(&address(n));
        assert_eq!([0, 1, 2, MAX_ADVERTS].map(known), [true, false, true, true]);
    }

    #[test]
    fn the_latest_advert_counts() {
        let mut market = Market::default();
        market.hear(Address::ZERO, advert(1, 1));
        market.hear(Address::ZERO, advert(1, 0));
        assert!(market.rank(1, SNO, |_| true).is_err());
    }
}
