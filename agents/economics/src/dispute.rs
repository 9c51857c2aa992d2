//! Bonds, spam against honest workers, friendly challengers.

use crate::cheating::Run;
use crate::market::{CONVICTION_GAS, ENDING_GAS, Market, WON_GAME_GAS, WORST_ANSWERS_GAS};
use crate::rules::Rules;

/// Who may challenge a claim that is challenged already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// Anybody: the rule (P-16).
    Open,
    /// Nobody: not the rule, here to show why.
    Exclusive,
}

impl Slot {
    /// The same run while a friend challenges every wrong claim and lets its time run out. The bond comes back, being
    /// the worker's; gas is not counted.
    pub fn shielded(self, run: &Run) -> Run {
        match self {
            Self::Open => *run,
            Self::Exclusive => Run { caught: 0.0, ..*run },
        }
    }
}

/// Least bond, SNO, that makes an honest worker whole: the interest on `held` SNO of pay that one dispute period holds
/// back, and the gas of ending the game. Its answers the challenger's deposit pays, at their own base fee (P-42).
pub fn least_bond(rules: &Rules, market: &Market, held: f64) -> f64 {
    market.gas(ENDING_GAS) + market.interest(held, f64::from(rules.dispute_period_seconds()))
}

/// What the worst game takes of its challenger's deposit, SNO.
pub fn worst_deposit(market: &Market) -> f64 {
    market.gas(WORST_ANSWERS_GAS)
}

/// What an honest worker gains by a challenge without substance, SNO, at the least.
pub fn spammed_worker(rules: &Rules, market: &Market, held: f64) -> f64 {
    rules.bond() - least_bond(rules, market, held)
}

/// What a challenge without substance costs its sender, SNO, at the least: the bond; what it asks for comes on top.
pub fn spammer_loss(rules: &Rules) -> f64 {
    rules.bond()
}

/// Least stake of a lane, SNO, whose bounty, the finder's half, pays for the gas of a conviction by signed answers, and
/// of a whole game.
pub fn stake_that_pays_gas(rules: &Rules, market: &Market) -> (f64, f64) {
    (market.gas(CONVICTION_GAS) / rules.finders(), market.gas(WON_GAME_GAS) / rules.finders())
}

/// Pay that waits for the longest window, SNO: what spam can hold back at most.
pub fn pay_in_window(rules: &Rules, market: &Market) -> f64 {
    f64::from(rules.max_challenge_window_seconds) / market.interval_seconds * market.price
}
