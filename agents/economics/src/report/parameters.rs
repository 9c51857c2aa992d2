//! The values recommended, their margins, and a parameter file beside them.

use super::cheating::hardest;
use super::crowd;
use crate::cheating::{least_caught, least_stake};
use crate::deployed::Deployed;
use crate::dispute::{least_bond, pay_in_window};
use crate::market::Market;
use crate::rules::{Rules, share};
use crate::table::{Table, number, percent};
use crate::validating::{self, Audit, highest_price, least_window, longest_interval, price_of_highest_penalty};

/// One parameter, as a row of `contracts/SPEC.md`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recommendation {
    /// Name, as the contracts spell it.
    pub name: &'static str,
    /// Value and unit.
    pub value: String,
    /// What it is for.
    pub why: &'static str,
    /// How far it is from where that ends.
    pub margin: String,
}

impl Recommendation {
    /// As a row of a Markdown table.
    pub fn markdown(&self) -> String {
        format!("| {} | {} | {} | {} |", self.name, self.value, self.why, self.margin)
    }
}

/// Share of validators that do not look up to which the hardest run of cheating loses; none at all: 0.
pub fn blind_limit(rules: &Rules) -> f64 {
    let percents = (0..=100_u32).map(|percent| f64::from(percent) / 100.0);
    percents.take_while(|blind| hardest(rules, *blind, 1.0, 1).gain() < 0.0).last().unwrap_or(0.0)
}

/// All of them.
pub fn recommendations(rules: &Rules, market: &Market) -> Vec<Recommendation> {
    let row = |name, value: String, why, margin: String| Recommendation { name, value, why, margin };
    let half = crowd(0.5);
    let audit = Audit::by(rules, market);
    let times = |value: f64, least: f64| format!("{} times the least, {}", number(value / least), number(least));

    let stake = least_stake(half.caught(rules.audits_per_claim()), 1.0, rules.bounty());
    let audits = half.audits_for(least_caught(rules.min_stake(), 1.0, rules.bounty())).unwrap_or(f64::INFINITY);
    let fee = market.audit_cost() / market.price;
    let penalty = audit.least_penalty() / rules.collateral() / share(1);
    let bond = least_bond(rules, market, pay_in_window(rules, market));
    let unbonding = rules.max_challenge_window_seconds.saturating_mul(2).saturating_add(rules.dispute_period_seconds());

    vec![
        row(
            "minStakeIntervals",
            format!("{} prices of an interval", rules.min_stake_intervals),
            "no run of cheating gains, though half of the validators are blind; nor does not looking",
            format!(
                "{}; holds up to {} blind; as a penalty {}",
                times(rules.min_stake(), stake),
                percent(blind_limit(rules)),
                times(rules.min_stake(), validating::least_stake(rules, market))
            ),
        ),
        row(
            "auditsPerClaimBps",
            format!("{} bps of an audit", rules.audits_per_claim_bps),
            "the same, at that stake",
            times(f64::from(rules.audits_per_claim_bps), audits / share(1)),
        ),
        row(
            "auditFeeBps",
            format!("{} bps of the price", rules.audit_fee_bps),
            "an audit pays for itself without any bounty",
            times(f64::from(rules.audit_fee_bps), fee / share(1)),
        ),
        row(
            "auditPenaltyBps",
            format!("{} bps of the collateral", rules.audit_penalty_bps),
            "at most the stake; not looking loses, though one worker in twenty checks and a friend accuses first",
            format!(
                "{}; binds above {} SNO an interval, holds up to {}",
                times(f64::from(rules.audit_penalty_bps), penalty),
                number(price_of_highest_penalty(rules)),
                number(highest_price(rules, market))
            ),
        ),
        row(
            "beaconPeriod",
            format!("{} s", rules.beacon_period_seconds),
            "nobody knows the draw when claiming, and a quarter of the window is enough to answer",
            format!(
                "for intervals of {} s a window of {} s; intervals of at most {} s",
                number(market.interval_seconds),
                number(least_window(rules, market)),
                number(longest_interval(rules, market))
            ),
        ),
        row(
            "validatorCollateral",
            format!("{} SNO", rules.validator_collateral_sno),
            "the same as the penalty, which is a share of it",
            times(rules.collateral(), rules.collateral() * penalty * share(1) / share(rules.audit_penalty_bps)),
        ),
        row(
            "disputeBond",
            format!("{} SNO", rules.dispute_bond_sno),
            "with the deposit for gas, a challenge without substance costs an honest worker nothing",
            times(rules.bond(), bond),
        ),
        row(
            "bountyBps / harmBps",
            format!("{} / {} bps", rules.bounty_bps, rules.harm_bps),
            "convicting oneself loses; auditors gain; users are compensated",
            format!(
                "a loss of {} for a stranger's job, {} for one's own; of {} and {} where all auditors are one's own",
                percent(1.0 - rules.finders()),
                percent(1.0 - rules.finders() - rules.harm()),
                percent(1.0 - rules.bounty()),
                percent(rules.burn())
            ),
        ),
        row(
            "unbondingDelay",
            format!("{} s", rules.unbonding_delay_seconds),
            "stake is there until its last claim is final",
            times(f64::from(rules.unbonding_delay_seconds), f64::from(unbonding)),
        ),
    ]
}

/// The recommendations, and the parameter file beside them.
pub fn tables(rules: &Rules, market: &Market, deployed: &Deployed) -> String {
    let mut table = Table::new("Recommended", ["parameter", "value", "margin"]);
    for row in recommendations(rules, market) {
        table.row([row.name.to_owned(), row.value, row.margin]);
    }
    let mut beside = Table::new("The parameter file", ["key", "deployed", "recommended", ""]);
    for row in deployed.compare(rules) {
        let verdict = if row.agrees() { "agrees" } else { "differs" };
        beside.row([row.key.to_owned(), row.deployed.to_string(), row.recommended.to_string(), verdict.to_owned()]);
    }
    format!("{table}{beside}")
}
