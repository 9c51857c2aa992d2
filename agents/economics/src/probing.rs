//! What planted wrong claims cost, SNO.
//!
//! Somebody posts a job, is its own worker, and commits one wrong claim among right ones. The draw is public once made: if
//! nobody is drawn the claim costs nothing more; if only lazy validators are, it convicts itself and loses the burned share; if
//! an honest one is, that one gets the bounty too. Prices and the harm it pays to itself.

use crate::lottery::Crowd;
use crate::market::{CLAIM_GAS, CONVICTION_GAS, Market};
use crate::rules::Rules;

/// Right claims that hide a wrong one, if there is no reason for another number. Without any, only a lane's first claim would
/// have to be looked at.
pub const COVER: u32 = 10;

/// Expected cost of planting one claim behind `cover` right ones, SNO.
pub fn cost(rules: &Rules, market: &Market, crowd: &Crowd, cover: u32) -> f64 {
    let audits = rules.audits_per_claim();
    let interval = market.cost() + market.gas(CLAIM_GAS) + audits * rules.audit_fee() * market.price;
    let stake = rules.min_stake() * market.price;
    let found = crowd.caught(audits);
    let feigned = (1.0 - found) * crowd.feigned(audits);
    f64::from(cover) * interval
        + interval
        + found * (rules.burn() + rules.bounty()) * stake
        + feigned * (rules.burn() * stake + market.gas(CONVICTION_GAS))
}

/// The same for each claim of the network, share of its price: what users pay for validators that stay awake.
pub fn cost_per_claim(rules: &Rules, market: &Market, crowd: &Crowd, cover: u32) -> f64 {
    rules.probe_rate() * cost(rules, market, crowd, cover) / market.price
}
