//! A worker that accuses an honest validator by a false statement. All money is in SNO.
//!
//! The validator has a quarter of the window to convict the worker, at the worst by a challenge with its bond; if it is away, it
//! is penalised and the worker gets the bounty. What the worker risks is its stake, which in a job of its own it convicts itself
//! for, at the price of the burned share. Penalties that do not grow with the lane's stake make small stakes worth risking.

use crate::market::{GAME_GAS, Market};
use crate::rules::Rules;

/// Expected gain of the worker, if the validator is away with the chance `away`; gas not counted. The job is the worker's.
pub fn gain(rules: &Rules, stake: f64, penalty: f64, away: f64) -> f64 {
    away * rules.bounty() * penalty - (1.0 - away) * rules.burn() * stake
}

/// Chance that the validator is away up to which the worker gains nothing.
pub fn highest_absence(rules: &Rules, stake: f64, penalty: f64) -> f64 {
    let (won, lost) = (rules.bounty() * penalty, rules.burn() * stake);
    lost / (lost + won)
}

/// Least stake, SNO, with which the worker gains nothing.
pub fn least_stake(rules: &Rules, penalty: f64, away: f64) -> f64 {
    away * rules.bounty() * penalty / ((1.0 - away) * rules.burn())
}

/// What an honest validator has left that convicts who framed it by a whole game, all its gas counted as the validator's.
pub fn framed_validator(rules: &Rules, market: &Market, stake: f64) -> f64 {
    rules.bounty() * stake - market.gas(GAME_GAS)
}
