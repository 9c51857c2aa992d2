//! Looking against not looking; what planted claims cost.

use super::{BLIND, crowd};
use crate::lottery::Crowd;
use crate::market::Market;
use crate::probing;
use crate::rules::{Rules, share};
use crate::table::{Table, number, percent};
use crate::validating::{Audit, highest_price};

/// Incomes, least penalties, and the users' bill.
pub fn tables(rules: &Rules, market: &Market) -> String {
    [incomes(rules, market), penalties(rules, market), prices(rules, market), bill(rules, market)]
        .map(|table| table.to_string())
        .concat()
}

fn incomes(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new(
        "A validator's expected income, SNO an audit, where no cheater is about",
        ["lazy validators", "honest", "honest, jackpots", "lazy", "honest, no probes", "lazy, no probes"],
    );
    let unplanted = Rules { probe_rate_bps: 0, ..*rules };
    for lazy in BLIND {
        let audit = |rules, jackpots| Audit::by(rules, market, &crowd(lazy), jackpots);
        let (without, with, none) = (audit(rules, false), audit(rules, true), audit(&unplanted, false));
        let cells = [without.honest(), with.honest(), without.lazy(), none.honest(), none.lazy()];
        table.row([percent(lazy)].into_iter().chain(cells.map(number)));
    }
    table
}

fn penalties(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new(
        "Least penalty with which not looking gains nothing, basis points of the collateral, by price of an interval and rate of probes",
        ["price of an interval", "no probes", "5 bps", "10 bps", "20 bps", "50 bps", "100 bps"],
    );
    for price in [1.0, 10.0, 30.0, 100.0] {
        let cell = |probe_rate_bps| {
            let rules = Rules { probe_rate_bps, ..*rules };
            let audit = Audit::by(&rules, &Market { price, ..*market }, &Crowd::of(super::VALIDATORS, 0.0, 0.0), false);
            number(audit.least_penalty() / rules.collateral() / share(1))
        };
        table.row([format!("{} SNO", number(price))].into_iter().chain([0, 5, 10, 20, 50, 100].map(cell)));
    }
    table
}

fn prices(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new(
        "Highest price of an interval, SNO, up to which not looking loses, without jackpots, by penalty and rate of probes",
        ["penalty", "5 bps", "10 bps", "20 bps", "50 bps", "100 bps"],
    );
    for audit_penalty_bps in [50, 100, 500, 1_000] {
        let cell =
            |probe_rate_bps| number(highest_price(&Rules { probe_rate_bps, audit_penalty_bps, ..*rules }, market));
        table.row([format!("{audit_penalty_bps} bps")].into_iter().chain([5, 10, 20, 50, 100].map(cell)));
    }
    table
}

/// What safety costs a user, and what keeps others looking.
fn bill(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new("What safety costs, and what else holds", ["what", "value", "unit"]);
    let audits = rules.audits_per_claim() * rules.audit_fee();
    let crowd = crowd(0.0);
    let probes = probing::cost_per_claim(rules, market, &crowd, probing::COVER);
    let probe = probing::cost(rules, market, &crowd, probing::COVER);
    let stake = rules.min_stake() * market.price;
    let audit = Audit::by(rules, market, &crowd, false);
    let volunteers = Audit::rate_for_volunteers(audit.cost, rules.bounty() * stake);
    table.row(["audits", &percent(audits), "of the price"]);
    table.row(["planted claims, one of them", &number(probe), "SNO"]);
    table.row(["planted claims", &percent(probes), "of the price"]);
    table.row(["both together (a second replica: 100 %)", &percent(audits + probes), "of the price"]);
    let interest = market.interest(stake, market.interval_seconds) / market.price;
    table.row(["interest on a lane's stake", &percent(interest), "of the price"]);
    table.row(["wrong claims from which on undrawn audits pay", &percent(volunteers), "of claims"]);
    table
}
