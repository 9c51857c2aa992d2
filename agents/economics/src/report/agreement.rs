//! Closed forms beside simulations.

use super::cheating::hardest;
use super::crowd;
use crate::market::Market;
use crate::rules::Rules;
use crate::simulate::Estimate;
use crate::simulate::lane::Lane;
use crate::simulate::watch::Watch;
use crate::table::{Table, number};
use crate::validating::Audit;

/// A few of the comparisons that the tests make over a grid, small enough to run in a moment.
pub fn table(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new(
        "Closed form beside a simulation from a fixed seed",
        ["what", "closed form", "simulated", "standard error", "apart, errors"],
    );
    let mut row = |name: String, exact: f64, found: Estimate| {
        let apart = number(found.errors_from(exact));
        table.row([name, number(exact), number(found.mean), number(found.error), apart]);
    };
    let audits = rules.audits_per_claim();
    for (blind, wrong) in [(0.0, 0.01), (0.5, 0.1), (0.8, 1.0)] {
        let run = hardest(rules, blind, wrong, 200);
        let lane = Lane { run, crowd: crowd(blind), audits, friend: None };
        let (gain, convicted) = lane.estimate(1, 4_000);
        row(format!("gain of 200 intervals, {wrong} wrong, {blind} blind, prices"), run.gain(), gain);
        row("    chance to be convicted".to_owned(), run.convicted(), convicted);
    }
    let crowd = crowd(0.5);
    let audit = Audit::by(rules, market, &crowd, true);
    let (honest, lazy) = Watch { audit, crowd, audits }.estimate(1, 100, 2_000);
    row("income of the honest, SNO an audit, 0.5 lazy".to_owned(), audit.honest(), honest);
    row("income of the lazy".to_owned(), audit.lazy(), lazy);
    table
}
