//! Looking pays, and not looking does not.

use tensorlink_economics::budget::Size;
use tensorlink_economics::copying::{
    COVER, Planted, Soil, betrayal, highest_bid, lowest_price_to_force, sales_in_a_betrayal,
};
use tensorlink_economics::validating::{
    Audit, audits_of_a_lane, feigned_for_checkers, highest_cost_share, highest_price, least_window, lowest_price,
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
    // Down to a worker in two hundred that checks.
    assert!(looks(Audit { checking: 0.005, ..audit }));
    assert!(!looks(Audit { checking: 0.003, ..audit }));
}

#[test]
fn if_no_worker_checks_the_lazy_earn_more() {
    let audit = Audit { checking: 0.0, ..Audit::by(&RULES, &MARKET) };
    assert!(!looks(audit));
    assert_eq!(audit.least_penalty(), f64::INFINITY);
    assert_eq!(highest_price(&RULES, &Market { checking: 0.0, ..MARKET }), 0.0);
    // So few answers made up are enough to pay a worker for checking that somebody will.
    assert!(feigned_for_checkers(&RULES, &MARKET) < 1e-4);
}

#[test]
fn the_fee_pays_wherever_workers_keep_an_eighth() {
    let income = |market| Audit::by(&RULES, &market).honest();
    let share = highest_cost_share(&RULES, &MARKET);
    assert!((share - 0.875).abs() < 1e-12);
    assert!(income(Market { cost_share: share - 0.001, ..MARKET }) > 0.0);
    assert!(income(Market { cost_share: share + 0.001, ..MARKET }) < 0.0);
    let price = lowest_price(&RULES, &MARKET);
    assert!(income(Market { price: price * 1.001, ..MARKET }) > 0.0);
    assert!(income(Market { price: price * 0.999, ..MARKET }) < 0.0);
    assert!(price < 0.5 * MARKET.price, "the reference is far above: {price}");
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
    let looks = |price| looks(Audit::by(&RULES, &Market { price, ..MARKET }));
    assert!(looks(highest * 0.999));
    assert!(!looks(highest * 1.001));
}

#[test]
fn to_try_out_one_worker_loses_for_few_audits() {
    let audit = Audit::by(&RULES, &MARKET);
    let least = audit.least_audits_for_trial();
    assert!(audit.trial(least - 0.01) < 0.0 && audit.trial(least + 0.01) > 0.0);
    // A trial of one audit is to feign one.
    assert!((audit.trial(1.0) - (audit.lazy() - audit.honest())).abs() < 1e-9);
    let claims = least / audits_of_a_lane(&RULES, &report::crowd(0.0), 1.0);
    assert!(claims > 10_000.0, "if each learns for itself: {claims}");
    // Where most workers check, no lane is long enough.
    assert!(Audit { checking: 0.9, ..audit }.trial(2_000.0) < 0.0);
    assert!(Audit { checking: 0.5, ..audit }.trial(2_000.0) > 0.0);
}

#[test]
fn a_wrong_answer_sells_best() {
    assert!(betrayal(&RULES, &MARKET) > 100.0 * highest_bid(&MARKET));
    let sales = sales_in_a_betrayal(&RULES, &MARKET);
    assert!((sales * highest_bid(&MARKET) - betrayal(&RULES, &MARKET)).abs() < 1e-9);
    // The wrong claim costs more than the wrong answer, and pays only where many copy.
    for soil in [Soil::Own { cover: 0 }, Soil::Own { cover: COVER }, Soil::Strangers] {
        let planted = Planted::by(&RULES, &MARKET, soil);
        let gain = |copying| planted.gain(&report::crowd(copying), RULES.audits_per_claim());
        assert!(gain(0.0) < 0.0 && gain(0.05) < 0.0, "{soil:?}");
        assert!(gain(0.75) > 0.0, "{soil:?}");
        assert!(gain(1.0) < betrayal(&RULES, &MARKET) * RULES.audits_per_claim(), "{soil:?}");
    }
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
}

#[test]
fn a_budget_rounded_up_lasts_forty_nine_times_in_fifty() {
    let mut worst = (0.0, 0.0);
    for lanes in 1..=4 {
        for intervals in 1..=300 {
            let size = Size { lanes, intervals };
            let fees = size.fees(&RULES);
            let rounded_up = (fees - 1e-9).ceil();
            let chances = [fees, rounded_up].map(|paid| size.runs_out(&RULES, report::VALIDATORS, paid));
            worst = (f64::max(worst.0, chances[0]), f64::max(worst.1, chances[1]));
        }
    }
    assert!(worst.0 > 0.06 && worst.0 < 0.07, "{worst:?}");
    assert!(worst.1 > 0.01 && worst.1 < 0.02, "{worst:?}");
}
