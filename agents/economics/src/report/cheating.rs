//! Where cheating loses, and how much.

use super::{BLIND, LAG, crowd};
use crate::cheating::{Run, least_stake};
use crate::rules::Rules;
use crate::table::{Table, number, percent};

/// Runs are looked at up to here, intervals.
pub const LONGEST: u32 = 10_000;
const AUDITS: [f64; 5] = [0.02, 0.05, 0.1, 0.2, 0.5];
const STAKES: [f64; 4] = [10.0, 30.0, 100.0, 300.0];

/// The hardest run to deter by these rules: cheating saves the whole price, and the bounty comes back, for the cheater
/// convicts itself once it is found. `blind`: share of validators that do not look.
pub fn hardest(rules: &Rules, blind: f64, wrong: f64, length: u32) -> Run {
    Run {
        length,
        wrong,
        saving: 1.0,
        lag: LAG,
        stake: rules.min_stake(),
        recaptured: rules.bounty(),
        caught: crowd(blind).caught(rules.audits_per_claim()),
    }
}

/// Least stakes, regions for several stakes, and gains at the rules given.
pub fn tables(rules: &Rules) -> String {
    let mut text = stakes(rules).to_string();
    for stake in STAKES {
        text += &region(rules, stake).to_string();
    }
    text += &gains(rules, 0.01).to_string();
    text += &gains(rules, 1.0).to_string();
    text
}

/// Least stake, prices of an interval, by audits per claim and by validators that do not look.
fn stakes(rules: &Rules) -> Table {
    let mut table = by_audits(
        "Least stake, prices of an interval, with which no run of cheating gains (all of the price saved, bounty recaptured)",
    );
    for blind in BLIND {
        let cell = |audits: f64| number(least_stake(crowd(blind).caught(audits), 1.0, rules.bounty()));
        table.row([percent(blind)].into_iter().chain(AUDITS.map(cell)));
    }
    table
}

/// Which runs lose.
fn region(rules: &Rules, stake: f64) -> Table {
    let mut table = by_audits(&format!(
        "Runs that lose at a stake of {} prices, one interval in a hundred cheated on (of 1 to {LONGEST} intervals)",
        number(stake)
    ));
    for blind in BLIND {
        let cell = |audits: f64| {
            let caught = crowd(blind).caught(audits);
            match (Run { stake, caught, ..hardest(rules, blind, 0.01, 1) }).loses_from(LONGEST) {
                Some(1) => "all".to_owned(),
                Some(length) => format!("from {length}"),
                None => "none".to_owned(),
            }
        };
        table.row([percent(blind)].into_iter().chain(AUDITS.map(cell)));
    }
    table
}

fn by_audits(title: &str) -> Table {
    Table::new(title, ["blind validators".to_owned()].into_iter().chain(AUDITS.map(|n| format!("{n} audits"))))
}

/// Gains of runs, prices, and the chance to be convicted.
fn gains(rules: &Rules, wrong: f64) -> Table {
    let title = format!(
        "Gain over honest work, prices (and chance to be convicted), cheating on {} of intervals, stake {}, {} audits a claim",
        percent(wrong),
        number(rules.min_stake()),
        number(rules.audits_per_claim())
    );
    let lengths = [1, 10, 100, 1_000, LONGEST];
    let names = lengths.map(|length| format!("{length} intervals"));
    let mut table = Table::new(title, ["blind validators".to_owned()].into_iter().chain(names));
    for blind in BLIND {
        let cell = |length| {
            let run = hardest(rules, blind, wrong, length);
            format!("{} ({})", number(run.gain()), percent(run.convicted()))
        };
        table.row([percent(blind)].into_iter().chain(lengths.map(cell)));
    }
    table
}
