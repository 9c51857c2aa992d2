//! Convicting oneself, bonds, spam, shields, framing.

use super::VALIDATORS;
use super::cheating::hardest;
use crate::dispute::{
    Slot, least_bond, pay_in_window, spammed_worker, spammer_loss, stake_that_pays_gas, worst_deposit,
};
use crate::finding::Find;
use crate::framing::{framed_validator, highest_absence, least_stake};
use crate::lottery::Crowd;
use crate::market::Market;
use crate::rules::Rules;
use crate::slash::Disguise;
use crate::table::{Table, number, percent};

/// Wei of one SNO.
const WEI: u128 = 1_000_000_000_000_000_000;

/// All of them.
pub fn tables(rules: &Rules, market: &Market) -> String {
    [
        convicting_oneself(rules, market),
        finding(rules, market),
        bonds(rules, market),
        spam(rules, market),
        shields(rules),
        framing(rules, market),
    ]
    .map(|table| table.to_string())
    .concat()
}

fn convicting_oneself(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new(
        "What a convicted worker loses of its stake (its void claims and gas not counted)",
        [
            "who convicts it, and for whom it worked",
            "share",
            "of the least stake, SNO",
            "of 1 SNO, wei",
            "of 1 wei, wei",
        ],
    );
    let stake = rules.stake_at(market.price);
    for disguise in Disguise::ALL {
        let name = match disguise {
            Disguise::Caught => "somebody else; a stranger",
            Disguise::Finder => "itself; a stranger",
            Disguise::FinderAndAuditors => "itself, all auditors its own; a stranger",
            Disguise::FinderAndUser => "itself; itself",
            Disguise::Everybody => "itself, all auditors its own; itself",
        };
        let lost = 1.0 - disguise.recaptured(rules);
        let wei = |stake| disguise.loss(stake, rules).map_or_else(String::new, |loss| loss.to_string());
        table.row([name.to_owned(), percent(lost), number(lost * stake), wei(WEI), wei(1)]);
    }
    table
}

/// The worker is always the first to convict itself, in favour of a friend.
fn finding(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new(
        "A cheater that is found and convicts itself first, in a stranger's job at the least stake",
        ["validators of its own", "comes back to it", "each that found it gets, SNO", "looking costs, SNO"],
    );
    for colluding in [0.0, 0.1, 0.3, 0.5] {
        let find = Find { crowd: Crowd::of(VALIDATORS, 0.0, colluding), audits: rules.audits_per_claim() };
        let got = find.found(rules) * rules.stake_at(market.price);
        let back = percent(find.recaptured(rules));
        table.row([percent(colluding), back, number(got), number(market.audit_cost())]);
    }
    table
}

fn bonds(rules: &Rules, market: &Market) -> Table {
    let title =
        "Least bond, SNO, that makes an honest worker whole: gas of the end of a game, interest on a window's pay";
    let rates = [10_000.0, 30_000.0, 100_000.0, 300_000.0];
    let names = rates.map(|rate| format!("{} SNO an ETH", number(rate)));
    let mut table = Table::new(title, ["gas".to_owned()].into_iter().chain(names));
    let held = pay_in_window(rules, market);
    for gwei in [0.01, 0.1, 0.5, 1.0, 5.0] {
        let cell = |sno_per_eth| number(least_bond(rules, &Market { gwei, sno_per_eth, ..*market }, held));
        table.row([format!("{gwei} gwei")].into_iter().chain(rates.map(cell)));
    }
    table
}

fn spam(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new("Challenges, SNO", ["what", "SNO"]);
    let held = pay_in_window(rules, market);
    let (signed, game) = stake_that_pays_gas(rules, market);
    let bounty = rules.finders() * rules.stake_at(market.price);
    table.row(["without substance: the sender loses at least", &number(spammer_loss(rules))]);
    table.row(["without substance: what the sender asks for costs it at the most", &number(worst_deposit(market))]);
    table.row(["without substance: the honest worker gains at least", &number(spammed_worker(rules, market, held))]);
    table.row(["right: bounty less gas of a conviction", &number(bounty - market.gas(crate::market::CONVICTION_GAS))]);
    table.row(["right: bounty less gas of a whole game", &number(bounty - market.gas(crate::market::WON_GAME_GAS))]);
    table.row(["stake whose bounty pays for a conviction", &number(signed)]);
    table.row(["stake whose bounty pays for a whole game", &number(game)]);
    table
}

fn shields(rules: &Rules) -> Table {
    let mut table = Table::new(
        "A friend challenges every wrong claim and falls silent; 100 intervals, one in a hundred wrong, half of the validators blind",
        ["who else may challenge", "chance to be convicted", "gain, prices"],
    );
    let run = hardest(rules, 0.5, 0.01, 100);
    for (name, run) in [
        ("no friend", run),
        ("anybody: the rule", Slot::Open.shielded(&run)),
        ("nobody, were the place exclusive", Slot::Exclusive.shielded(&run)),
    ] {
        table.row([name.to_owned(), percent(run.convicted()), number(run.gain())]);
    }
    table
}

/// Worth a column of its own: what a penalty that the stake does not bound would change.
fn framing(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new(
        "A worker frames a validator in a job of its own: how often the validator may be away before that gains, and what one that answers has left",
        [
            "stake of the lane",
            "away",
            "two together",
            "ten together",
            "were the penalty not bounded by it",
            "left, SNO",
        ],
    );
    for stake in [1.0, 10.0, 34.0, 100.0, 1_000.0, 10_000.0, 100_000.0] {
        let penalty = rules.audit_penalty(stake);
        let absence = |together| percent(highest_absence(rules, stake, penalty, together));
        let unbounded = percent(highest_absence(rules, stake, rules.highest_penalty(), 1.0));
        let left = number(framed_validator(rules, market, stake));
        table.row([format!("{} SNO", number(stake)), absence(1.0), absence(2.0), absence(10.0), unbounded, left]);
    }
    for away in [0.1, 0.25, 0.3, 0.5] {
        table.row([format!("least stake, {} away", percent(away)), number(least_stake(rules, away))]);
    }
    table
}
