//! Convicting oneself, spam, and gas.

use tensorlink_economics::dispute::{
    least_bond, pay_in_window, spammed_worker, spammer_loss, stake_that_pays_gas, worst_deposit,
};
use tensorlink_economics::finding::Find;
use tensorlink_economics::framing::{framed_validator, gain, gain_of_many, highest_absence, least_stake};
use tensorlink_economics::slash::{Disguise, Split};
use tensorlink_economics::validating::highest_price;
use tensorlink_economics::{Crowd, Market, Rules};

const RULES: Rules = Rules::RECOMMENDED;
const MARKET: Market = Market::REFERENCE;
const SNO: u128 = 1_000_000_000_000_000_000;

fn stakes() -> impl Iterator<Item = u128> {
    let powers = (0..=114).map(|power| 1_u128 << power);
    (1..2_000).chain(powers.clone()).chain(powers.map(|power| power + 1)).chain([10_000 * SNO, u128::MAX / 10_000])
}

#[test]
fn a_split_adds_up_and_burns() {
    for (stake, has_auditors) in stakes().flat_map(|stake| [(stake, false), (stake, true)]) {
        let split = Split::of(stake, &RULES, has_auditors).unwrap();
        assert_eq!(split.bounty + split.shared + split.harm + split.burned, stake);
        assert!(split.burned >= stake.div_ceil(5), "rounded up: {stake} {split:?}");
        assert!(split.shared <= split.bounty, "the remainder is the finder's");
    }
    let quarter = 250 * SNO;
    let shared = Split { bounty: quarter, shared: quarter, harm: 300 * SNO, burned: 200 * SNO };
    assert_eq!(Split::of(1_000 * SNO, &RULES, true), Some(shared));
    assert_eq!(Split::of(1_000 * SNO, &RULES, false), Some(Split { shared: 0, burned: 450 * SNO, ..shared }));
    assert_eq!(Split::of(7, &RULES, true), Some(Split { bounty: 2, shared: 1, harm: 2, burned: 2 }));
    assert_eq!(Split::of(u128::MAX, &RULES, true), None);
    assert_eq!(Split::of(100, &Rules { harm_bps: 6_000, ..RULES }, true), None);
}

#[test]
fn convicting_oneself_loses_whoever_one_is() {
    for stake in stakes() {
        let losses = Disguise::ALL.map(|disguise| disguise.loss(stake, &RULES).unwrap());
        let [caught, finder, auditors, user, everybody] = losses;
        assert_eq!(caught, stake);
        assert!(auditors >= stake.div_ceil(2), "burned and harm: {stake} {auditors}");
        assert!(everybody >= stake.div_ceil(5) && everybody > 0, "burned: {stake} {everybody}");
        assert!(finder >= auditors && user >= everybody, "who has sealed it does not choose: {stake} {losses:?}");
    }
}

/// A cheater that is found convicts itself before its finder can: that takes nothing from what a finder is drawn for.
#[test]
fn whoever_finds_a_lie_is_paid_though_its_worker_convicts_itself_first() {
    for percent in 0..=50 {
        let crowd = Crowd::of(100, 0.0, f64::from(percent) / 100.0);
        let find = Find { crowd, audits: RULES.audits_per_claim() };
        let got = find.found(&RULES) * RULES.stake_at(MARKET.price);
        assert!(got > 10.0 * MARKET.audit_cost(), "{percent} %: {got}");
        let back = find.recaptured(&RULES);
        // It would come to as much by luck; where it is found, to less.
        assert!(back <= RULES.finders() + RULES.auditors() * f64::from(percent) / 100.0, "{percent} %: {back}");
    }
    // Where its own are sure to be drawn, and one other: half of the auditors' half.
    let find = Find { crowd: Crowd { honest: 1, lazy: 0, colluding: 1 }, audits: 2.0 };
    assert_eq!(find.recaptured(&RULES), RULES.finders() + RULES.auditors() / 2.0);
    assert_eq!(find.found(&RULES), RULES.auditors() / 2.0);
    // Nobody is drawn but by chance: whoever is has all of it.
    assert_eq!(Find { audits: 0.0, ..find }.found(&RULES), RULES.auditors());
}

#[test]
fn shares_and_wei_say_the_same() {
    for disguise in Disguise::ALL {
        let wei = disguise.loss(1_000 * SNO, &RULES).unwrap() as f64 / SNO as f64;
        assert!((wei - 1_000.0 * (1.0 - disguise.recaptured(&RULES))).abs() < 1e-9);
    }
}

#[test]
fn were_nothing_burned_one_could_convict_oneself_for_nothing() {
    let rules = Rules { harm_bps: 5_000, ..RULES };
    assert_eq!(Disguise::Everybody.loss(1_000, &rules), Some(0));
}

#[test]
fn spam_pays_the_honest_worker() {
    let held = pay_in_window(&RULES, &MARKET);
    assert!(spammed_worker(&RULES, &MARKET, held) > 0.0);
    assert!(spammer_loss(&RULES) > 0.0);
    // Interest grows with the price: up to the highest that validators can be kept awake over, the bond covers it.
    let dearest = Market { price: highest_price(&RULES, &MARKET), ..MARKET };
    assert!(spammed_worker(&RULES, &dearest, pay_in_window(&RULES, &dearest)) > 0.0);
    assert!((held - 10_080.0).abs() < 1e-9, "a week of intervals of ten minutes");
}

#[test]
fn the_bond_holds_where_gas_is_dear() {
    let held = pay_in_window(&RULES, &MARKET);
    let gain = |gwei| spammed_worker(&RULES, &Market { gwei, ..MARKET }, held);
    assert!(gain(5.0) > 0.0);
    assert!(gain(6.0) < 0.0, "a dearer chain needs a greater bond");
    let least = least_bond(&RULES, &MARKET, 0.0);
    assert!((least - 1.7).abs() < 1e-9, "170 k gas at 0.1 gwei and 100,000 SNO an ETH: {least}");
    // Whoever asks for everything pays for it beside the bond.
    assert!(worst_deposit(&MARKET) > 0.3 * RULES.bond());
}

#[test]
fn a_bounty_pays_for_its_proof() {
    let (signed, game) = stake_that_pays_gas(&RULES, &MARKET);
    assert!(signed < game);
    assert!(RULES.min_stake() * MARKET.price > 10.0 * game);
    // Lanes of cheap intervals: the bond is a floor under their stake.
    assert!(RULES.bond() > game);
}

#[test]
fn framing_loses_at_any_stake_where_validators_are_hardly_ever_away() {
    for stake in [1e-18, 1.0, 100.0, 1_000.0, 5_000.0, 50_000.0] {
        let penalty = RULES.audit_penalty(stake);
        let away = highest_absence(&RULES, stake, penalty, 1.0);
        assert!(gain(&RULES, stake, penalty, away * 0.999) < 0.0);
        assert!(gain(&RULES, stake, penalty, away * 1.001) > 0.0);
        // Two sevenths, and more where the collateral bounds the penalty.
        assert!((away - 2.0 / 7.0).abs() < 1e-12 || stake > 5_000.0 && away > 2.0 / 7.0, "{stake}: {away}");
    }
    assert_eq!([0.01, 0.28].map(|away| least_stake(&RULES, away)), [0.0, 0.0]);
    for away in [0.3, 0.6] {
        let least = least_stake(&RULES, away);
        assert!((highest_absence(&RULES, least, RULES.audit_penalty(least), 1.0) - away).abs() < 1e-12);
    }
}

#[test]
fn many_claims_of_a_lane_frame_no_better_but_common_absence_does() {
    let stake = RULES.stake_at(MARKET.price);
    let many = |away, claims| gain_of_many(&RULES, stake, RULES.audit_penalty(stake), away, claims);
    for claims in [1, 2, 30, 10_000] {
        assert!(many(0.285, claims) < 0.0 && many(0.287, claims) > 0.0, "{claims}");
    }
    let absence = |together| highest_absence(&RULES, stake, RULES.audit_penalty(stake), together);
    assert!(absence(2.0) > 0.16 && absence(2.0) < 0.17);
    assert!(absence(10.0) < 0.04);
}

#[test]
fn who_defends_itself_is_paid_for_it_from_the_bond_on() {
    assert!(framed_validator(&RULES, &MARKET, 1.0) < 0.0, "who answers loses gas");
    assert!(framed_validator(&RULES, &MARKET, RULES.bond()) > 0.0, "so agents answer for no smaller stake");
}

#[test]
fn were_the_penalty_not_bounded_by_it_small_stakes_would_frame_for_nothing() {
    assert!(highest_absence(&RULES, 1.0, RULES.highest_penalty(), 1.0) < 1e-4);
    assert!(highest_absence(&RULES, RULES.stake_at(MARKET.price), RULES.highest_penalty(), 1.0) < 0.1);
}
