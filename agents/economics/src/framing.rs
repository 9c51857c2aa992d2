//! A worker that accuses an honest validator by a false statement. All money is in SNO.
//!
//! The validator has a quarter of the window to convict the worker, at the worst by a challenge with its bond; if it is
//! away, it is penalised and the worker gets the bounty. What the worker risks is its stake, which in a job of its own
//! it convicts itself for, at the price of the burned share: that the framed have a share of the bounty is not counted.
//! The penalty is no more than the stake: were it more, small stakes would be worth risking.
//!
//! Over many claims of one lane the stake is lost once, with the first that is defended, which voids all later ones. So
//! the gambles before it are the same gamble, repeated. That does not hold if validators are away together: then one
//! stake frames them all.

use crate::market::{Market, WON_GAME_GAS};
use crate::rules::Rules;

/// Expected gain of the worker, if the validator is away with the chance `away`; gas not counted. The job is the
/// worker's. `penalty`: by the rules, [`Rules::audit_penalty`] of the stake.
pub fn gain(rules: &Rules, stake: f64, penalty: f64, away: f64) -> f64 {
    away * rules.bounty() * penalty - (1.0 - away) * rules.burn() * stake
}

/// The same over so many audited claims of one lane, each validator being away on its own.
pub fn gain_of_many(rules: &Rules, stake: f64, penalty: f64, away: f64, claims: u32) -> f64 {
    let undefended = (0..claims).map(f64::from).map(|before| away.powf(before)).sum::<f64>();
    undefended * gain(rules, stake, penalty, away)
}

/// Chance that the validators, so many and away together or not at all, are away up to which the worker gains nothing.
pub fn highest_absence(rules: &Rules, stake: f64, penalty: f64, together: f64) -> f64 {
    let (won, lost) = (together * rules.bounty() * penalty, rules.burn() * stake);
    lost / (lost + won)
}

/// Least stake, SNO, with which the worker gains nothing; 0 where none gains, the penalty being the stake at most.
pub fn least_stake(rules: &Rules, away: f64) -> f64 {
    let (won, lost) = (away * rules.bounty(), (1.0 - away) * rules.burn());
    if won <= lost { 0.0 } else { won * rules.highest_penalty() / lost }
}

/// What an honest validator has left that convicts who framed it by a whole game, all its gas counted as
/// the validator's; at the worst, where the worker convicts itself in the end. Having sealed, it has its share then.
pub fn framed_validator(rules: &Rules, market: &Market, stake: f64) -> f64 {
    rules.auditors() * stake - market.gas(WON_GAME_GAS)
}
