//! Closed forms beside simulations.

use super::VALIDATORS;
use super::beacon::biased;
use super::cheating::hardest;
use super::crowd;
use crate::beacon::Bias;
use crate::budget::Size;
use crate::copying::{COVER, Planted, Soil};
use crate::finding::Find;
use crate::lottery::Crowd;
use crate::market::Market;
use crate::rules::Rules;
use crate::simulate::Estimate;
use crate::simulate::finding::finding;
use crate::simulate::lane::Lane;
use crate::simulate::proposer::Proposer;
use crate::simulate::purse;
use crate::simulate::watch::{Watch, planting, trial};
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
    let audit = Audit::by(rules, market);
    let lazy = Watch { audit, crowd, audits }.estimate(1, 100, 2_000);
    row("income of the lazy, SNO an audit, 0.5 lazy".to_owned(), audit.lazy(), lazy);
    row("trial of a worker over 10 audits, SNO".to_owned(), audit.trial(10.0), trial(&audit, 10, 1, 10_000));
    let planted = Planted::by(rules, market, Soil::Own { cover: COVER }, rules.stake_at(market.price));
    let found = planting(&planted, &crowd, audits, 1, 10_000);
    row("gain by a planted claim, 0.5 copy, SNO".to_owned(), planted.gain(&crowd, audits), found);
    let find = Find { crowd: Crowd::of(VALIDATORS, 0.2, 0.3), audits };
    let (back, got) = finding(&find, rules, 1, 200_000);
    row("found, convicts itself: comes back, share of the stake".to_owned(), find.recaptured(rules), back);
    row("    each that found it gets, share of the stake".to_owned(), find.found(rules), got);
    let size = Size { lanes: 2, intervals: 5, parts: 1 };
    let fees = size.fees(rules);
    let found = purse::runs_out(size, audits, VALIDATORS, fees, 1, 4_000);
    row("budget of 2 lanes, 5 intervals runs out".to_owned(), size.runs_out(rules, VALIDATORS, fees), found);
    for slots in 0..=2 {
        let bias = Bias { reward: 10.0, ..biased(rules, market, slots) };
        let found = Proposer { bias, crowd, audits }.estimate(1, 10_000);
        row(format!("gain of one wrong claim with {slots} slots, a block 10 prices"), bias.gain(), found);
    }
    table
}
