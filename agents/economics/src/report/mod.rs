//! All of it as text: tables for people, rows for `contracts/SPEC.md`.
//!
//! | module | what lives there |
//! |---|---|
//! | [`cheating`] | where cheating loses, and how much |
//! | [`validators`] | looking against not looking; answers for sale; what audits cost |
//! | [`beacon`] | cheaters that propose blocks |
//! | [`money`] | convicting oneself, bonds, spam, shields, framing |
//! | [`agreement`] | closed forms beside simulations |
//! | [`parameters`] | the values recommended, their margins, and a parameter file beside them |

pub mod agreement;
pub mod beacon;
pub mod cheating;
pub mod money;
pub mod parameters;
pub mod validators;

use crate::deployed::Deployed;
use crate::lottery::Crowd;
use crate::market::Market;
use crate::rules::Rules;
use crate::table::{Table, number, percent};

/// Validators in the tables.
pub const VALIDATORS: u32 = 100;
/// Claims that a cheater commits before it is convicted, in the tables.
pub const LAG: u32 = 10;
/// Shares of validators that do not look, in the tables.
pub const BLIND: [f64; 6] = [0.0, 0.25, 0.5, 0.75, 0.8, 0.9];

/// A hundred validators of which a share is lazy and none colluding: whether a cheater's claims are caught, it is
/// the same.
pub fn crowd(blind: f64) -> Crowd {
    Crowd::of(VALIDATORS, blind, 0.0)
}

/// Everything, beside what a parameter file has.
pub fn all(rules: &Rules, market: &Market, deployed: &Deployed) -> String {
    let mut text = assumptions(market).to_string();
    text += &cheating::tables(rules);
    text += &validators::tables(rules, market);
    text += &beacon::tables(rules, market);
    text += &money::tables(rules, market);
    text += &agreement::table(rules, market).to_string();
    text += &parameters::tables(rules, market, deployed);
    text
}

fn assumptions(market: &Market) -> Table {
    let mut table = Table::new("Market assumed", ["what", "value", "unit"]);
    table.row(["price of an interval", &number(market.price), "SNO"]);
    table.row(["honest cost of an interval", &percent(market.cost_share), "of its price"]);
    table.row(["audit of an interval", &number(market.audit_factor), "of its cost"]);
    table.row(["gas", &number(market.gwei), "gwei"]);
    table.row(["one ETH", &number(market.sno_per_eth), "SNO"]);
    table.row(["a block's reward, forgone by withholding it", &number(market.block_reward_eth), "ETH"]);
    table.row(["steps of an interval", &number(market.steps), ""]);
    table.row(["claims whose worker checks", &percent(market.checking), "of right claims"]);
    table.row(["length of an interval", &number(market.interval_seconds), "s"]);
    table.row(["interest elsewhere", &percent(market.yearly_interest), "a year"]);
    table.row(["validators", &VALIDATORS.to_string(), ""]);
    table.row(["claims before a conviction", &LAG.to_string(), ""]);
    table
}
