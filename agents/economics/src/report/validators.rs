//! Looking against not looking, answers for sale, and what audits cost.

use super::{VALIDATORS, crowd};
use crate::budget::Size;
use crate::copying::{COVER, Planted, Soil, betrayal, highest_bid, lowest_price_to_force, sales_in_a_betrayal};
use crate::lottery::Crowd;
use crate::market::Market;
use crate::receipts::Confirmed;
use crate::rules::{Rules, share};
use crate::table::{Table, number, percent};
use crate::validating::{
    Audit, audits_of_a_lane, feigned_for_checkers, highest_cost_share, highest_price, least_stake, least_window,
    longest_interval, lowest_price, price_of_highest_penalty, wrong_for_volunteers,
};

/// Shares of claims whose worker checks, in the tables.
const CHECKING: [f64; 6] = [0.0, 0.002, 0.01, 0.05, 0.2, 1.0];

/// Incomes, least penalties, highest prices, copies, receipts, budgets, and the users' bill.
pub fn tables(rules: &Rules, market: &Market) -> String {
    [
        incomes(rules, market),
        penalties(rules, market),
        prices(rules, market),
        limits(rules, market),
        copies(rules, market),
        receipts(rules, market),
        budgets(rules),
        bill(rules, market),
    ]
    .map(|table| table.to_string())
    .concat()
}

fn by_checking(title: &str, first: &str) -> Table {
    let names = CHECKING.map(|checking| format!("{} check", percent(checking)));
    Table::new(title, [first.to_owned()].into_iter().chain(names))
}

fn incomes(rules: &Rules, market: &Market) -> Table {
    let mut table = by_checking(
        "A validator's expected income, SNO an audit, where no cheater is about, by claims whose worker checks",
        "validator",
    );
    let audit = |checking| Audit::by(rules, &Market { checking, ..*market });
    let row = |name: &str, cells: [String; 6]| [name.to_owned()].into_iter().chain(cells);
    table.row(row("looks", CHECKING.map(|checking| number(audit(checking).honest()))));
    table.row(row("does not look", CHECKING.map(|checking| number(audit(checking).lazy()))));
    table
}

fn penalties(rules: &Rules, market: &Market) -> Table {
    let mut table = by_checking(
        "Least penalty with which not looking gains nothing: stake in prices of an interval, and basis points of the collateral",
        "bound, price of an interval",
    );
    let stake = |checking| number(least_stake(rules, &Market { checking, ..*market }));
    table.row(["stake, any".to_owned()].into_iter().chain(CHECKING.map(stake)));
    for price in [1.0, 10.0, 30.0, 100.0, 300.0] {
        let cell = |checking| {
            let audit = Audit::by(rules, &Market { price, checking, ..*market });
            number(audit.least_penalty() / rules.collateral() / share(1))
        };
        table.row([format!("collateral, {} SNO", number(price))].into_iter().chain(CHECKING.map(cell)));
    }
    table
}

fn prices(rules: &Rules, market: &Market) -> Table {
    let mut table = by_checking(
        "Highest price of an interval, SNO, up to which not looking loses at the least stake, by highest penalty",
        "highest penalty",
    );
    for audit_penalty_bps in [10, 20, 50, 100, 500] {
        let rules = Rules { audit_penalty_bps, ..*rules };
        let cell = |checking| number(highest_price(&rules, &Market { checking, ..*market }));
        table.row([format!("{audit_penalty_bps} bps")].into_iter().chain(CHECKING.map(cell)));
    }
    table
}

/// What else has to hold for audits to be done, and to be worth something.
fn limits(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new("Where audits end", ["what", "value", "unit"]);
    let audit = Audit::by(rules, market);
    table.row(["share of claims whose worker must check", &percent(audit.least_checking()), "of claims"]);
    table.row([
        "answers made up from which on a worker gains by checking",
        &percent(feigned_for_checkers(rules, market)),
        "of answers",
    ]);
    let one = Crowd { honest: 1, lazy: 0, colluding: 0 };
    let trial = audit.least_audits_for_trial();
    table.row([
        "audits of one worker from which on it pays to try whether it checks",
        &number(trial),
        "audits of a validator",
    ]);
    let claims = |crowd: &Crowd| number(trial / audits_of_a_lane(rules, crowd, 1.0));
    table.row(["    the same, each validator for itself", &claims(&crowd(0.0)), "claims of that worker"]);
    table.row(["    the same, all validators one party", &claims(&one), "claims of that worker"]);
    table.row(["lowest price at which the fee pays for an audit", &number(lowest_price(rules, market)), "SNO"]);
    let cost = highest_cost_share(rules, market);
    table.row(["honest cost up to which the fee pays for an audit", &percent(cost), "of the price"]);
    table.row([
        "wrong claims from which on undrawn audits pay",
        &percent(wrong_for_volunteers(rules, market)),
        "of claims",
    ]);
    table.row([
        "shortest challenge window in which a drawn audit can be answered",
        &number(least_window(rules, market)),
        "s",
    ]);
    table.row([
        "longest interval that can be answered in time, whatever the window",
        &number(longest_interval(rules, market)),
        "s",
    ]);
    table.row(["price from which the penalty does not grow with it", &number(price_of_highest_penalty(rules)), "SNO"]);
    table.row([
        "price from which a forced answer is cheaper, of a worker that does not wait",
        &number(lowest_price_to_force(rules, market)),
        "SNO",
    ]);
    table
}

fn copies(rules: &Rules, market: &Market) -> Table {
    let mut table =
        Table::new("Answers for sale, SNO, by validators that copy", ["what", "5 %", "25 %", "50 %", "75 %", "90 %"]);
    let shares = [0.05, 0.25, 0.5, 0.75, 0.9];
    let row = |name: &str, cells: [f64; 5]| [name.to_owned()].into_iter().chain(cells.map(number));
    table.row(row("most that is paid for a right answer", [highest_bid(market); 5]));
    let (least, highest) = (rules.stake_at(market.price), rules.highest_penalty());
    for (name, stake) in [("at the least stake", least), ("at the stake of the highest penalty", highest)] {
        let title = format!("gain by a wrong answer about a right claim, {name}");
        table.row(row(&title, [betrayal(rules, market, stake); 5]));
        table.row(row("    right answers that bring as much", [sales_in_a_betrayal(rules, market, stake); 5]));
        let soil = |soil| {
            let planted = Planted::by(rules, market, soil, stake);
            shares.map(|copying| planted.gain(&crowd(copying), rules.audits_per_claim()))
        };
        table.row(row("    gain by a planted claim, own job, no cover", soil(Soil::Own { cover: 0 })));
        table.row(row(&format!("    behind {COVER} right claims"), soil(Soil::Own { cover: COVER })));
        table.row(row("    gain by a planted claim, a stranger's job", soil(Soil::Strangers)));
        table.row(row("    gain by a planted receipt", soil(Soil::Receipt)));
    }
    table
}

/// By the length of the text: fee and work are by the token, gas is not.
fn receipts(rules: &Rules, market: &Market) -> Table {
    let lengths = [1.0, 0.75, 0.5, 0.25, 0.1];
    let names = lengths.map(|length| format!("{} of the greatest", percent(length)));
    let mut table =
        Table::new("Audits of receipts, by the text's length", ["what".to_owned()].into_iter().chain(names));
    let audits = lengths.map(|length| Confirmed::by(rules, market, length));
    let row = |name: &str, cells: [String; 5]| [name.to_owned()].into_iter().chain(cells);
    // Where looking loses though all workers sign, no share is left.
    let part = |share: f64| if share >= 0.0 { percent(share) } else { "none".to_owned() };
    table.row(row("looks, SNO an audit", audits.map(|audit| number(audit.honest()))));
    table.row(row("does not look, SNO an audit", audits.map(|audit| number(audit.lazy()))));
    table.row(row("workers that may refuse before looking loses", audits.map(|audit| part(audit.highest_refusing()))));
    table.row(row("workers that must leak for the lazy to gain", audits.map(|audit| percent(audit.least_leaking()))));
    table.row(row("    to gain as much", audits.map(|audit| percent(audit.leaking_as_looking()))));
    table
}

fn budgets(rules: &Rules) -> Table {
    let mut table = Table::new(
        "Chance that the budget for audits runs out before the job ends, lanes at one price",
        ["lanes, intervals", "mean, fees", "budget, fees", "runs out", "with texts of a tenth of the length"],
    );
    for (lanes, intervals) in
        [(1, 1), (1, 4), (1, 9), (1, 10), (1, 30), (1, 100), (1, 1_000), (2, 10), (4, 1), (4, 10), (4, 100), (8, 1_000)]
    {
        let size = Size { lanes, intervals, parts: 1 };
        let fees = size.fees(rules);
        let chance = |parts| percent(Size { parts, ..size }.runs_out(rules, VALIDATORS, fees));
        let name = format!("{lanes}, {intervals}");
        table.row([name, number(size.mean(rules)), number(fees), chance(1), chance(10)]);
    }
    table
}

/// What safety costs a user.
fn bill(rules: &Rules, market: &Market) -> Table {
    let mut table = Table::new("What safety costs (a second replica: 100 %)", ["what", "value", "unit"]);
    let audits = rules.audits_per_claim() * rules.audit_fee();
    table.row(["audits, the mean", &percent(audits), "of the price"]);
    let size = Size { lanes: 1, intervals: 100, parts: 1 };
    let aside = size.fees(rules) * rules.audit_fee() / size.claims();
    table.row(["set aside for them, of 100 intervals", &percent(aside), "of the price"]);
    let interest = market.interest(rules.stake_at(market.price), market.interval_seconds) / market.price;
    table.row(["interest on a lane's stake", &percent(interest), "of the price"]);
    let income = Audit::by(rules, market).honest() * audits_of_a_lane(rules, &crowd(0.0), 1_000.0);
    table.row(["an honest validator's income of 1,000 claims", &number(income), "SNO"]);
    table
}
