//! Cheaters that propose blocks.

use super::cheating::hardest;
use crate::beacon::{Bias, least_reward, least_stake};
use crate::market::Market;
use crate::rules::Rules;
use crate::table::{Table, number, percent};

/// Rewards of a block, ETH, in the tables.
const REWARDS: [f64; 5] = [0.0, 0.001, 0.002, 0.005, 0.02];

/// The hardest run of one interval by a worker that proposes the last `slots` blocks before the beacon's; half of the
/// validators are blind.
pub fn biased(rules: &Rules, market: &Market, slots: u32) -> Bias {
    let run = hardest(rules, 0.5, 1.0, 1);
    Bias {
        saving: run.saving,
        stake: run.stake,
        recaptured: run.recaptured,
        caught: run.caught,
        slots,
        reward: market.block_reward() / market.price,
    }
}

/// Highest price of an interval, SNO, up to which cheating gains nothing whatever the slots.
pub fn highest_price(rules: &Rules, market: &Market) -> f64 {
    let bias = biased(rules, market, 0);
    market.block_reward() / least_reward(bias.saving, bias.caught)
}

/// Gains by slots and reward.
pub fn tables(rules: &Rules, market: &Market) -> String {
    let names = REWARDS.map(|reward| format!("{reward} ETH"));
    let columns = ["slots in a row".to_owned(), "escapes".to_owned(), "least stake at 0 ETH".to_owned()];
    let mut table = Table::new(
        "Gain over honest work, prices, of one wrong claim by who proposes the last blocks before the beacon's, half of the validators blind, by a block's reward",
        columns.into_iter().chain(names),
    );
    for slots in 0..=2 {
        let bias = biased(rules, market, slots);
        let stake = least_stake(bias.saving, bias.recaptured, bias.caught, slots);
        let gain = |block_reward_eth| number(biased(rules, &Market { block_reward_eth, ..*market }, slots).gain());
        let cells = [slots.to_string(), percent(bias.escapes()), number(stake)];
        table.row(cells.into_iter().chain(REWARDS.map(gain)));
    }
    let mut least = Table::new("Blocks' rewards that deter, whatever the slots", ["what", "value", "unit"]);
    let bias = biased(rules, market, 0);
    let reward = least_reward(bias.saving, bias.caught);
    least.row(["least reward of a block", &number(reward), "prices of an interval"]);
    let eth = reward * market.price / market.sno_per_eth;
    least.row(["    the same", &format!("{eth:.4}"), "ETH"]);
    least.row(["highest price of an interval at the reward assumed", &number(highest_price(rules, market)), "SNO"]);
    format!("{table}{least}")
}
