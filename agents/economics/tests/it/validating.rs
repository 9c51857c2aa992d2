//! Looking pays, and not looking does not.

use tensorlink_economics::budget::Size;
use tensorlink_economics::copying::{
    COVER, Planted, Soil, betrayal, highest_bid, lowest_price_to_force, sales_in_a_betrayal,
};
use tensorlink_economics::receipts::Confirmed;
use tensorlink_economics::validating::{
    Audit, audits_of_a_lane, feigned_for_checkers, highest_cost_share, highest_price, least_stake, least_window,
    longest_interval, lowest_price, price_of_highest_penalty,
};
use tensorlink_economics::{Market, Rules, report};

const RULES: Rules = Rules::RECOMMENDED;
const MARKET: Market = Market::REFERENCE;

fn looks(audit: Audit) -> bool {
    audit.honest() > audit.lazy()
}

#[test]
fn the_honest_earn_and_the_lazy_lose() {
    let audit = Audit::by(&RULES, &MARKET);
    assert!(audit.honest() > 0.0);
    assert!(audit.lazy() < 0.0, "to be absent is better than lazy");
    // Down to a worker in fifty-nine that checks.
    assert!(looks(Audit { checking: 0.017, ..audit }));
    assert!(!looks(Audit { checking: 0.0167, ..audit }));
}

#[test]
fn if_no_worker_checks_the_lazy_earn_more() {
    let audit = Audit { checking: 0.0, ..Audit::by(&RULES, &MARKET) };
    assert!(!looks(audit));
    assert_eq!(audit.least_penalty(), f64::INFINITY);
    assert_eq!(highest_price(&RULES, &Market { checking: 0.0, ..MARKET }), 0.0);
    // So few answers made up are enough to pay a worker for checking that somebody will.
    assert!(feigned_for_checkers(&RULES, &MARKET) < 2e-4);
}

#[test]
fn the_fee_pays_wherever_workers_keep_a_fifth() {
    let income = |market| Audit::by(&RULES, &market).honest();
    let share = highest_cost_share(&RULES, &MARKET);
    assert!((4.0 / 5.0..0.82).contains(&share), "{share}");
    assert!(income(Market { cost_share: share - 0.001, ..MARKET }) > 0.0);
    assert!(income(Market { cost_share: share + 0.001, ..MARKET }) < 0.0);
    let price = lowest_price(&RULES, &MARKET);
    assert!(income(Market { price: price * 1.001, ..MARKET }) > 0.0);
    assert!(income(Market { price: price * 0.999, ..MARKET }) < 0.0);
    assert!(price < 0.7 * MARKET.price, "the reference is far above: {price}");
    assert_eq!(lowest_price(&Rules { audit_fee_bps: 8_000, ..RULES }, &MARKET), f64::INFINITY);
}

#[test]
fn the_least_are_the_least() {
    let audit = Audit::by(&RULES, &MARKET);
    let (penalty, checking) = (audit.least_penalty(), audit.least_checking());
    assert!(looks(Audit { penalty: penalty * 1.001, ..audit }) && !looks(Audit { penalty: penalty * 0.999, ..audit }));
    assert!(looks(Audit { checking: checking * 1.001, ..audit }));
    assert!(!looks(Audit { checking: checking * 0.999, ..audit }));
}

#[test]
fn above_the_highest_price_nobody_looks() {
    let highest = highest_price(&RULES, &MARKET);
    assert!(highest > 10.0 * MARKET.price, "the reference is far below: {highest}");
    let looks_at = |price| looks(Audit::by(&RULES, &Market { price, ..MARKET }));
    for price in [0.01, 1.0, 10.0, 49.0, 51.0, 100.0, highest * 0.999] {
        assert!(looks_at(price), "{price}");
    }
    assert!(!looks_at(highest * 1.001));
    // Below this the stake is the penalty: the margin is the same at any price.
    let grows_to = price_of_highest_penalty(&RULES);
    assert!(grows_to > MARKET.price && grows_to < highest);
    for price in [0.1, 10.0, grows_to] {
        let audit = Audit::by(&RULES, &Market { price, ..MARKET });
        assert!(
            (audit.penalty / audit.least_penalty() - RULES.min_stake() / least_stake(&RULES, &MARKET)).abs() < 1e-9
        );
    }
    let twice = Rules { audit_penalty_bps: 2 * RULES.audit_penalty_bps, ..RULES };
    assert!((price_of_highest_penalty(&twice) - 2.0 * grows_to).abs() < 1e-9);
}

#[test]
fn no_share_of_the_collateral_makes_up_for_too_small_a_stake() {
    let market = Market { checking: 0.01, ..MARKET };
    assert!(least_stake(&RULES, &market) > RULES.min_stake());
    for audit_penalty_bps in [10, 5_000, 10_000] {
        let rules = Rules { audit_penalty_bps, ..RULES };
        assert_eq!(highest_price(&rules, &market), 0.0);
        assert!(!looks(Audit::by(&rules, &market)));
    }
    let rules = Rules { min_stake_intervals: 200, ..RULES };
    assert!(looks(Audit::by(&rules, &market)));
}

#[test]
fn to_try_out_one_worker_loses_for_few_audits() {
    let audit = Audit::by(&RULES, &MARKET);
    let least = audit.least_audits_for_trial();
    assert!(audit.trial(least - 0.01) < 0.0 && audit.trial(least + 0.01) > 0.0);
    // A trial of one audit is to feign one.
    assert!((audit.trial(1.0) - (audit.lazy() - audit.honest())).abs() < 1e-9);
    let claims = least / audits_of_a_lane(&RULES, &report::crowd(0.0), 1.0);
    assert!(claims > 3_000.0, "if each learns for itself: {claims}");
    // Where most workers check, no lane is long enough.
    assert!(Audit { checking: 0.9, ..audit }.trial(500.0) < 0.0);
    assert!(Audit { checking: 0.5, ..audit }.trial(500.0) > 0.0);
}

#[test]
fn a_wrong_answer_sells_best() {
    let (least, highest) = (RULES.stake_at(MARKET.price), RULES.highest_penalty());
    assert!(betrayal(&RULES, &MARKET, least) > 50.0 * highest_bid(&MARKET));
    assert_eq!(betrayal(&RULES, &MARKET, highest), betrayal(&RULES, &MARKET, 10.0 * highest));
    for stake in [least, highest] {
        let sales = sales_in_a_betrayal(&RULES, &MARKET, stake);
        assert!((sales * highest_bid(&MARKET) - betrayal(&RULES, &MARKET, stake)).abs() < 1e-9);
        // The wrong claim costs more than the wrong answer, and pays only where hardly anybody looks.
        for soil in [Soil::Own { cover: 0 }, Soil::Own { cover: COVER }, Soil::Strangers] {
            let planted = Planted::by(&RULES, &MARKET, soil, stake);
            let gain = |copying| planted.gain(&report::crowd(copying), RULES.audits_per_claim());
            assert!(gain(0.0) < 0.0 && gain(0.5) < 0.0, "{soil:?}");
            assert!(gain(1.0) < betrayal(&RULES, &MARKET, stake) * RULES.audits_per_claim(), "{soil:?}");
        }
    }
}

#[test]
fn a_bought_answer_about_a_receipt_can_be_planted() {
    let stake = RULES.stake_at(MARKET.price);
    let planted = Planted::by(&RULES, &MARKET, Soil::Receipt, stake);
    let gain = |copying| planted.gain(&report::crowd(copying), RULES.audits_per_claim());
    // Nobody but the buyer has the word that convicts: it pays where a third copies, and nobody else notices.
    assert!(gain(0.05) < 0.0 && gain(0.4) > 0.0);
    assert!(gain(0.4) > Planted::by(&RULES, &MARKET, Soil::Own { cover: 0 }, stake).gain(&report::crowd(0.4), 0.1));
}

#[test]
fn of_receipts_the_lazy_earn_nothing_without_a_leak() {
    let audit = Confirmed::by(&RULES, &MARKET, 1.0);
    assert!((audit.honest() - Audit::by(&RULES, &MARKET).honest()).abs() < 1e-12, "where all workers sign");
    assert!(audit.honest() > 0.0 && audit.lazy() < 0.0);
    let (refusing, leaking) = (audit.highest_refusing(), audit.least_leaking());
    let income = |refusing| Confirmed { refusing, ..audit }.honest();
    assert!(income(refusing * 0.999) > 0.0 && income(refusing * 1.001) < 0.0);
    let income = |leaking| Confirmed { leaking, ..audit }.lazy();
    assert!(income(leaking * 0.999) < 0.0 && income(leaking * 1.001) > 0.0);
    let same = Confirmed { refusing: 0.1, leaking: Confirmed { refusing: 0.1, ..audit }.leaking_as_looking(), ..audit };
    assert!((same.lazy() - same.honest()).abs() < 1e-12);
    // The fee of a text pays for its gas from the same price on as that of an interval.
    let length = lowest_price(&RULES, &MARKET) / MARKET.price;
    assert!(Confirmed::by(&RULES, &MARKET, length * 1.001).honest() > 0.0);
    assert!(Confirmed::by(&RULES, &MARKET, length * 0.999).honest() < 0.0);
}

#[test]
fn forcing_an_answer_out_costs_more_than_the_work() {
    assert!(lowest_price_to_force(&RULES, &MARKET) > 10.0 * MARKET.price);
}

#[test]
fn a_day_is_long_enough_to_answer() {
    let window = least_window(&RULES, &MARKET);
    assert!(window < 86_400.0 / 10.0);
    // The least that a job may have is too short for intervals of ten minutes.
    assert!(window > 3_600.0);
    // Nor is any window long enough for those beyond this.
    let longest = longest_interval(&RULES, &MARKET);
    let quarter = f64::from(RULES.dispute_clock_seconds);
    let needed = |interval_seconds| least_window(&RULES, &Market { interval_seconds, ..MARKET }) / 4.0;
    assert!(needed(longest * 0.999) < quarter && needed(longest * 1.001) > quarter);
    assert!(longest > 9.0 * 3_600.0);
}

#[test]
fn a_budget_lasts_forty_nine_times_in_fifty() {
    let mut worst: f64 = 0.0;
    for lanes in 1..=4 {
        for intervals in 1..=300 {
            let size = Size { lanes, intervals, parts: 1 };
            let chance = |size: Size| size.runs_out(&RULES, report::VALIDATORS, size.fees(&RULES));
            worst = worst.max(chance(size));
            assert!(chance(Size { parts: 3, ..size }) <= chance(size), "shorter texts vary less: {size:?}");
        }
    }
    assert!(worst > 0.01 && worst < 0.02, "{worst:?}");
}

#[test]
fn a_budget_is_counted_as_the_contract_counts_it() {
    let fees = |lanes, intervals| Size { lanes, intervals, parts: 1 }.fees(&RULES);
    assert_eq!([fees(1, 1), fees(1, 5), fees(1, 6), fees(1, 10), fees(3, 11)], [2.0, 2.0, 3.0, 3.0, 12.0]);
    assert_eq!(fees(2, u32::MAX), 2.0 * (858_993_459.0 + 1.0));
}
