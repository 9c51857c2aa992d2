//! Cheating loses.

use tensorlink_economics::cheating::{least_caught, least_stake};
use tensorlink_economics::report::cheating::{LONGEST, hardest};
use tensorlink_economics::report::parameters::blind_limit;
use tensorlink_economics::simulate::lane::Lane;
use tensorlink_economics::{Crowd, Rules, Run, Slot, report};

const RULES: Rules = Rules::RECOMMENDED;
const LENGTHS: [u32; 7] = [1, 2, 10, 100, 1_000, 5_000, LONGEST];

#[test]
fn one_in_a_hundred_loses_up_to_four_fifths_blind() {
    for percent in 0..=80 {
        let blind = f64::from(percent) / 100.0;
        for length in LENGTHS {
            for wrong in [0.01, 0.1, 1.0] {
                for saving in [0.05, 0.7, 1.0] {
                    let run = Run { saving, ..hardest(&RULES, blind, wrong, length) };
                    assert!(run.gain() < 0.0, "{blind} {run:?}");
                }
            }
        }
    }
}

#[test]
fn the_limit_is_where_it_is_said_to_be() {
    assert_eq!(blind_limit(&RULES), 0.8);
    for wrong in [0.01, 1.0] {
        assert!(hardest(&RULES, 0.81, wrong, 1).gain() > 0.0);
    }
    // A cheater that saves what work costs, and is not quick enough to convict itself, must find more of them blind.
    let usual = |blind| Run { saving: 0.7, recaptured: 0.0, ..hardest(&RULES, blind, 0.01, 1) };
    assert!(usual(0.93).gain() < 0.0);
    assert!(usual(0.94).gain() > 0.0);
}

#[test]
fn blind_is_blind_whether_lazy_or_bought() {
    let audits = RULES.audits_per_claim();
    assert_eq!(Crowd::of(100, 0.8, 0.0).caught(audits), Crowd::of(100, 0.3, 0.5).caught(audits));
    assert_eq!(Crowd::of(100, 0.07, 0.29), Crowd { honest: 64, lazy: 7, colluding: 29 });
    assert_eq!(Crowd::of(10, 0.25, 2.0), Crowd { honest: 0, lazy: 3, colluding: 7 });
}

#[test]
fn nobody_looks_nobody_is_deterred() {
    let run = hardest(&RULES, 1.0, 0.01, 500);
    assert!((run.gain() - 5.0).abs() < 1e-12, "it saves five prices of five hundred");
    assert_eq!(least_stake(run.caught, 1.0, 0.5), f64::INFINITY);
    assert_eq!(run.loses_from(LONGEST), None);
}

#[test]
fn the_least_stake_is_the_least() {
    for caught in [0.005, 0.1, 0.6] {
        for saving in [0.7, 1.0] {
            for recaptured in [0.0, 0.5] {
                let least = least_stake(caught, saving, recaptured);
                let gain = |stake| Run { stake, caught, saving, recaptured, ..hardest(&RULES, 0.0, 0.01, 1) }.gain();
                assert!(gain(least * 1.001) < 0.0);
                assert!(gain(least * 0.999) > 0.0);
                assert!((least_caught(least, saving, recaptured) - caught).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn more_stake_more_audits_more_eyes_deter_more() {
    let base = hardest(&RULES, 0.5, 0.01, 100);
    assert!(Run { stake: base.stake + 1.0, ..base }.gain() < base.gain());
    assert!(Run { lag: base.lag + 1, ..base }.gain() < base.gain());
    assert!(hardest(&RULES, 0.49, 0.01, 100).gain() < base.gain());
    let rules = Rules { audits_per_claim_bps: 1_001, ..RULES };
    assert!(hardest(&rules, 0.5, 0.01, 100).gain() < base.gain());
}

#[test]
fn a_run_that_loses_goes_on_losing() {
    let mut late = 0;
    for stake in [10.0, 20.0, 30.0] {
        for percent in 0..100 {
            let run = Run { stake, ..hardest(&RULES, f64::from(percent) / 100.0, 0.01, 1) };
            let from = run.loses_from(500);
            late += u32::from(from.is_some_and(|from| from > 1));
            for length in 1..=500 {
                let loses = Run { length, ..run }.gain() < 0.0;
                assert_eq!(loses, from.is_some_and(|from| length >= from), "{length} {from:?} {run:?}");
            }
        }
    }
    assert!(late > 20, "some begin to lose later than at once: {late}");
}

#[test]
fn a_rate_for_a_chance_gives_the_chance() {
    let crowd = report::crowd(0.5);
    for caught in [0.01, 0.5, 0.9] {
        let audits = crowd.audits_for(caught).unwrap();
        assert!((crowd.caught(audits) - caught).abs() < 1e-12);
    }
    assert_eq!(report::crowd(1.0).audits_for(0.1), None);
}

#[test]
fn a_friend_that_challenges_shields_nothing() {
    let run = hardest(&RULES, 0.5, 0.1, 100);
    let lane = Lane { run, crowd: report::crowd(0.5), audits: RULES.audits_per_claim(), friend: None };
    let (alone, convicted) = lane.estimate(3, 2_000);
    assert!(convicted.mean > 0.3);
    // Draw by draw the same, not only on the mean.
    assert_eq!(Lane { friend: Some(Slot::Open), ..lane }.estimate(3, 2_000), (alone, convicted));
    assert_eq!(Slot::Open.shielded(&run).gain(), run.gain());

    // Were there one place only, the friend would hold it, and cheating would pay.
    let (gain, convicted) = Lane { friend: Some(Slot::Exclusive), ..lane }.estimate(3, 2_000);
    assert_eq!(convicted.mean, 0.0);
    assert!(gain.mean > 0.0 && gain.errors_from(Slot::Exclusive.shielded(&run).gain()) < 4.5);
}
