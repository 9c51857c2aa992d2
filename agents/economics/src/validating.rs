//! An audit done against an audit feigned. All money here is in SNO, per audit.
//!
//! Who is lazy answers at random. It spends gas but no work, is paid, and loses the penalty if the claim's worker
//! compares the answer with its own and accuses: a claim that is right needs no cheater to show who looked. The penalty
//! is the lane's stake, up to a share of the collateral: both are looked at here for the least stake. A friend of the
//! accused that got the worker's statement can accuse first and bring the bounty back. Accusations over a claim that is
//! convicted are void, so wrong claims add nothing. Who does not answer earns 0. Looking at a part of the audits is a
//! mixture of the two, and so never better than the better one, unless it tells which workers check: [`Audit::trial`].

use crate::lottery::Crowd;
use crate::market::{ACCUSATION_GAS, AUDIT_GAS, CONVICTION_GAS, Market};
use crate::rules::Rules;

/// What an audit can bring and cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Audit {
    /// Paid for the audit, whatever it says, SNO.
    pub fee: f64,
    /// Cost of computing the interval, SNO.
    pub work: f64,
    /// Cost of answering on chain, SNO.
    pub gas: f64,
    /// Lost for a wrong answer, SNO.
    pub penalty: f64,
    /// Share of the penalty that comes back to who is accused.
    pub recaptured: f64,
    /// Claims whose worker checks, share of all.
    pub checking: f64,
}

impl Audit {
    /// By the rules, at the worst: friends accuse first.
    pub fn by(rules: &Rules, market: &Market) -> Self {
        Self {
            fee: rules.audit_fee() * market.price,
            work: market.audit_work(),
            gas: market.gas(AUDIT_GAS),
            penalty: rules.audit_penalty(rules.stake_at(market.price)),
            recaptured: rules.bounty(),
            checking: market.checking,
        }
    }

    /// Expected income of who looks, SNO an audit. Bounties of cheaters that it finds come on top.
    pub fn honest(&self) -> f64 {
        self.fee - self.work - self.gas
    }

    /// Expected income of who does not look, SNO an audit.
    pub fn lazy(&self) -> f64 {
        self.fee - self.gas - self.checking * self.loss()
    }

    /// Least penalty, SNO, with which not looking gains nothing; infinite if no worker checks.
    pub fn least_penalty(&self) -> f64 {
        self.work / (self.checking * (1.0 - self.recaptured))
    }

    /// Least share of claims whose worker checks with which not looking gains nothing.
    pub fn least_checking(&self) -> f64 {
        self.work / self.loss()
    }

    /// Expected gain, SNO over looking at all of `audits` audits of one worker, of who feigns the first, and all others
    /// if it was not accused; otherwise it looks from then on. Workers check all answers or none: the worst for such a
    /// trial to be up against is that few do.
    pub fn trial(&self, audits: f64) -> f64 {
        self.work * (1.0 + (1.0 - self.checking) * (audits - 1.0)) - self.checking * self.loss()
    }

    /// Audits of one worker from which on the trial gains, if validators do not share what they learn.
    pub fn least_audits_for_trial(&self) -> f64 {
        1.0 + (self.checking * self.loss() / self.work - 1.0) / (1.0 - self.checking)
    }

    /// What a wrong answer costs if the worker accuses, SNO.
    fn loss(&self) -> f64 {
        self.penalty * (1.0 - self.recaptured)
    }
}

/// Least stake of a lane, in prices of an interval, with which not looking gains nothing, whatever the price: both
/// penalty and what is spared grow with it. Infinite if no worker checks.
pub fn least_stake(rules: &Rules, market: &Market) -> f64 {
    market.audit_factor * market.cost_share / (market.checking * (1.0 - rules.bounty()))
}

/// Price of an interval, SNO, from which on the penalty does not grow with the least stake any more.
pub fn price_of_highest_penalty(rules: &Rules) -> f64 {
    rules.highest_penalty() / rules.min_stake()
}

/// Highest price of an interval, SNO, up to which not looking loses at the least stake: beyond
/// [`price_of_highest_penalty`] what is spared grows and the penalty does not. 0 if it gains at any price.
pub fn highest_price(rules: &Rules, market: &Market) -> f64 {
    let least = least_stake(rules, market);
    if least > rules.min_stake() { 0.0 } else { rules.highest_penalty() / least }
}

/// Lowest price of an interval, SNO, from which on the fee pays for an audit and its gas; infinite if it does not pay
/// for the work.
pub fn lowest_price(rules: &Rules, market: &Market) -> f64 {
    let left = rules.audit_fee() - market.audit_factor * market.cost_share;
    if left > 0.0 { market.gas(AUDIT_GAS) / left } else { f64::INFINITY }
}

/// Highest cost of honest work, share of the price, up to which the fee pays for an audit and its gas. A worker that
/// asks less for its work is not audited for the fee.
pub fn highest_cost_share(rules: &Rules, market: &Market) -> f64 {
    (rules.audit_fee() - market.gas(AUDIT_GAS) / market.price) / market.audit_factor
}

/// Share of answers made up from which on a worker gains by checking all.
pub fn feigned_for_checkers(rules: &Rules, market: &Market) -> f64 {
    market.check_cost() / (rules.jackpot(rules.stake_at(market.price)) - market.gas(ACCUSATION_GAS))
}

/// Share of claims that are wrong from which on it pays to audit undrawn, for the bounty alone.
pub fn wrong_for_volunteers(rules: &Rules, market: &Market) -> f64 {
    let bounty = rules.finders() * rules.stake_at(market.price);
    market.audit_work() / (bounty - market.gas(CONVICTION_GAS))
}

/// Shortest challenge window, seconds, in a quarter of which a drawn audit can be answered: the beacon comes up to two
/// periods after the claim, and computing takes as much longer than the interval as it costs more.
pub fn least_window(rules: &Rules, market: &Market) -> f64 {
    4.0 * (2.0 * f64::from(rules.beacon_period_seconds) + market.audit_factor * market.interval_seconds)
}

/// Longest interval, seconds, that can be audited in time, whatever the window: a quarter is no longer than the clock
/// of a challenge.
pub fn longest_interval(rules: &Rules, market: &Market) -> f64 {
    (f64::from(rules.dispute_clock_seconds) - 2.0 * f64::from(rules.beacon_period_seconds)) / market.audit_factor
}

/// Mean audits that a validator is drawn for while a lane commits `claims` claims.
pub fn audits_of_a_lane(rules: &Rules, crowd: &Crowd, claims: f64) -> f64 {
    claims * crowd.chance(rules.audits_per_claim())
}
