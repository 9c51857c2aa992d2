//! Who is asked for a lane when another does not take it.

use tensorlink_types::{Address, Lane};
use tensorlink_user::HireError;
use tensorlink_user::hire::Wanted;

use super::Hiring;
use crate::live::say;

/// Seconds after which nobody else is asked: offers expire ten minutes after they were signed.
const WITHIN: u64 = 300;

/// Workers that answer and have no lane of the job, best first.
pub(super) struct Bench<'a> {
    hiring: &'a Hiring<'a>,
    /// Those that were asked.
    asked: Vec<Address>,
    /// The price of each lane's unit as it is wanted now, wei, in the order of lanes.
    prices: Vec<u128>,
    /// Until when others are asked, by the node's clock.
    until: u64,
}

impl<'a> Bench<'a> {
    pub(super) fn new(hiring: &'a Hiring<'a>, lanes: &[Wanted]) -> Self {
        let until = hiring.node.ports.clock.now().saturating_add(WITHIN);
        let prices = lanes.iter().map(|wanted| wanted.limit).collect();
        Self { hiring, asked: Vec::new(), prices, until }
    }

    /// Who is asked in place of a worker that does not offer, if there is anybody; says so.
    pub(super) fn instead(&mut self, before: &Wanted, error: &HireError) -> Option<Wanted> {
        if self.hiring.node.ports.clock.now() >= self.until {
            return None;
        }
        let next = self.next(before.lane)?;
        say!("{error}; asking {} instead", next.worker);
        Some(next)
    }

    /// The cheapest whose memory is enough for the lane, and that the deposit pays for.
    fn next(&mut self, lane: Lane) -> Option<Wanted> {
        let Hiring { stages, others, other_prices, needs, .. } = self.hiring;
        let stage = usize::from(lane.stage);
        let place = usize::from(lane.replica).saturating_mul(usize::from(*stages)).saturating_add(stage);
        let needed = needs.get(stage).copied().unwrap_or_default();
        for (other, prices) in others.iter().zip(other_prices) {
            if self.asked.contains(&other.address) || other.advert.memory < needed {
                continue;
            }
            let Some(limit) = prices.get(stage).copied().flatten() else { continue };
            let mut with = self.prices.clone();
            *with.get_mut(place)? = limit;
            if self.hiring.covers(&with).is_err() {
                continue;
            }
            self.prices = with;
            self.asked.push(other.address);
            return Some(Wanted { lane, worker: other.address, limit });
        }
        None
    }
}
