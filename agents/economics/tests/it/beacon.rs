//! Proposers that draw again.

use tensorlink_economics::beacon::{Bias, least_reward, least_stake};
use tensorlink_economics::budget::more_than;
use tensorlink_economics::report::beacon::{biased, highest_price};
use tensorlink_economics::{Market, Rules};

const RULES: Rules = Rules::RECOMMENDED;
const MARKET: Market = Market::REFERENCE;

#[test]
fn without_slots_it_is_the_gamble_of_everybody() {
    let run = tensorlink_economics::report::cheating::hardest(&RULES, 0.5, 1.0, 1);
    let bias = biased(&RULES, &MARKET, 0);
    assert!((bias.gain() - run.gain()).abs() < 1e-12);
    assert_eq!(bias.escapes(), 1.0 - bias.caught);
}

#[test]
fn the_reward_deters_whatever_the_slots() {
    let least = least_reward(1.0, biased(&RULES, &MARKET, 0).caught);
    let gain = |slots, reward| Bias { reward, ..biased(&RULES, &MARKET, slots) }.gain();
    for slots in 0..=12 {
        assert!(gain(slots, least * 1.001) < 0.0, "{slots}");
    }
    // It is the least for many, and nearly so for one.
    assert!(gain(12, least * 0.999) > 0.0);
    assert!(gain(1, least * 0.9) > 0.0);
    // Half the value assumed would do at five times the price.
    assert!(biased(&RULES, &Market { price: 50.0, block_reward_eth: 0.0105, ..MARKET }, 2).gain() < 0.0);
}

#[test]
fn the_highest_price_is_the_highest() {
    let highest = highest_price(&RULES, &MARKET);
    let gain = |price| biased(&RULES, &Market { price, ..MARKET }, 6).gain();
    assert!(highest > 9.0 * MARKET.price);
    assert!(gain(highest * 0.999) < 0.0);
    assert!(gain(highest * 1.01) > 0.0);
}

#[test]
fn without_a_reward_the_stake_alone_must_deter() {
    for slots in 0..=2 {
        let bias = Bias { reward: 0.0, ..biased(&RULES, &MARKET, slots) };
        let least = least_stake(bias.saving, bias.recaptured, bias.caught, slots);
        let gain = |stake| Bias { stake, ..bias }.gain();
        assert!(gain(least * 1.001) < 0.0 && gain(least * 0.999) > 0.0, "{slots}: {least}");
    }
}

/// A beacon is drawn again for all lanes that cheat at once, for one block's reward.
#[test]
fn one_slot_helps_many_lanes_no_more_than_one() {
    let bias = biased(&RULES, &MARKET, 1);
    let reward = least_reward(bias.saving, bias.caught);
    for lanes in 1..=100_u32 {
        let count = f64::from(lanes);
        let convicted = count * bias.caught;
        // What all lose by the first beacon, or by the reward and the second: whichever is less.
        let paid: f64 = (0..=lanes)
            .map(|caught| {
                let at_least = if caught == 0 { 1.0 } else { more_than(f64::from(caught) - 1.0, count, bias.caught) };
                let chance = at_least - more_than(caught.into(), count, bias.caught);
                chance * (f64::from(caught) * bias.loss()).min(reward + convicted * bias.loss())
            })
            .sum();
        assert!(count * bias.saving < paid, "{lanes}: {paid}");
    }
}
