//! Closed forms against every outcome counted, and against the simulation.
//!
//! Bound: a mean may be 4.5 standard errors from its closed form, which a right one exceeds once in 150,000 seeds.
//! The seeds are fixed, so the tests pass always or never; that the bound is narrow enough to notice a mistake is
//! tested too.

use tensorlink_economics::beacon::Bias;
use tensorlink_economics::budget::{Size, more_than};
use tensorlink_economics::copying::{Planted, Soil};
use tensorlink_economics::finding::Find;
use tensorlink_economics::framing::gain_of_many;
use tensorlink_economics::receipts::Confirmed;
use tensorlink_economics::simulate::finding::finding;
use tensorlink_economics::simulate::lane::Lane;
use tensorlink_economics::simulate::proposer::Proposer;
use tensorlink_economics::simulate::purse;
use tensorlink_economics::simulate::watch::{Watch, confirmed, framing, planting, trial};
use tensorlink_economics::validating::Audit;
use tensorlink_economics::{Crowd, Market, Rules, Run, report};

const BOUND: f64 = 4.5;
const CROWD: Crowd = Crowd { honest: 10, lazy: 6, colluding: 4 };

fn run(length: u32, wrong: f64, lag: u32, saving: f64, recaptured: f64, audits: f64) -> Lane {
    let run = Run { length, wrong, saving, lag, stake: 12.0, recaptured, caught: CROWD.caught(audits) };
    Lane { run, crowd: CROWD, audits, friend: None }
}

fn lanes() -> Vec<Lane> {
    let mut lanes = vec![];
    for (length, wrong) in [(1, 0.5), (7, 0.3), (60, 0.05), (60, 1.0)] {
        for (lag, saving, recaptured, audits) in [(0, 1.0, 0.0, 1.0), (3, 0.4, 0.5, 0.3), (90, 0.7, 0.2, 5.0)] {
            lanes.push(run(length, wrong, lag, saving, recaptured, audits));
        }
    }
    lanes
}

/// Expected gain and chance of conviction from interval `done` on, by adding up what can happen in it.
fn counted(run: &Run, done: u32) -> (f64, f64) {
    if done == run.length {
        return (0.0, 0.0);
    }
    let (gain, convicted) = counted(run, done + 1);
    let void = f64::from(run.lag.min(run.length - done - 1)) * (run.wrong * run.saving - 1.0);
    let caught = run.saving - 1.0 - run.stake * (1.0 - run.recaptured) + void;
    let right = 1.0 - run.wrong;
    let escaped = run.wrong * (1.0 - run.caught);
    let hazard = run.wrong * run.caught;
    (right * gain + escaped * (run.saving + gain) + hazard * caught, (right + escaped) * convicted + hazard)
}

#[test]
fn closed_form_adds_up_all_outcomes() {
    let mut runs: Vec<Run> = lanes().iter().map(|lane| lane.run).collect();
    runs.extend([0.0, 1.0].map(|caught| Run { caught, ..runs[5] }));
    runs.extend([0.0, 1.0].map(|wrong| Run { wrong, caught: 1.0, ..runs[4] }));
    for run in runs {
        let (gain, convicted) = counted(&run, 0);
        assert!((run.gain() - gain).abs() < 1e-9, "{run:?}: {} {gain}", run.gain());
        assert!((run.convicted() - convicted).abs() < 1e-12, "{run:?}");
    }
}

#[test]
fn a_long_run_with_a_small_hazard_does_not_cancel() {
    let run = Run { caught: 1e-12, ..run(1_000, 1.0, 0, 1.0, 0.0, 1.0).run };
    assert!((run.convicted() / 1e-9 - 1.0).abs() < 1e-6);
}

#[test]
fn lanes_agree() {
    for (seed, lane) in (1..).zip(lanes()) {
        let (gain, convicted) = lane.estimate(seed, 20_000);
        assert!(gain.errors_from(lane.run.gain()) < BOUND, "{lane:?}: {gain:?}, {}", lane.run.gain());
        // Where all runs were convicted there is no error to measure by.
        let sure = convicted.mean == 1.0 && lane.run.convicted() > 0.9995;
        assert!(sure || convicted.errors_from(lane.run.convicted()) < BOUND, "{lane:?}: {convicted:?}");
        let most = lane.run.stake + f64::from(lane.run.length);
        assert!(gain.error < 0.01 * most, "{lane:?}: {gain:?} says little");
    }
}

#[test]
fn the_defaults_agree() {
    let rules = Rules::RECOMMENDED;
    for (blind, wrong, length) in [(0.0, 0.01, 100), (0.5, 0.1, 200), (0.8, 1.0, 50)] {
        let run = report::cheating::hardest(&rules, blind, wrong, length);
        let lane = Lane { run, crowd: report::crowd(blind), audits: rules.audits_per_claim(), friend: None };
        let (gain, convicted) = lane.estimate(5, 10_000);
        assert!(gain.errors_from(run.gain()) < BOUND, "{lane:?}: {gain:?}, {}", run.gain());
        assert!(convicted.errors_from(run.convicted()) < BOUND, "{lane:?}: {convicted:?}, {}", run.convicted());
    }
}

#[test]
fn the_bound_notices_mistakes() {
    let lane = run(60, 0.05, 3, 0.4, 0.5, 1.0);
    let (gain, _) = lane.estimate(1, 20_000);
    let mistakes = [
        Run { lag: 0, ..lane.run },
        Run { recaptured: 0.4, ..lane.run },
        Run { saving: 0.5, ..lane.run },
        // Ten honest of twenty are not half an audit for certain.
        Run { caught: 0.5, ..lane.run },
    ];
    for mistake in mistakes {
        assert!(gain.errors_from(mistake.gain()) > BOUND, "{mistake:?}");
    }
}

fn audit() -> Audit {
    Audit { fee: 12.5, work: 8.4, gas: 2.0, penalty: 100.0, recaptured: 0.4, checking: 0.1 }
}

#[test]
fn validators_agree() {
    for (seed, audits) in [(1, 0.5), (2, 2.0), (3, 20.0)] {
        let lazy = Watch { audit: audit(), crowd: CROWD, audits }.estimate(seed, 200, 2_000);
        assert!(lazy.errors_from(audit().lazy()) < BOUND, "{audits}: {lazy:?}, {}", audit().lazy());
        assert!(lazy.error < 0.1, "{lazy:?} says little");
        // As if no friend were quicker.
        assert!(lazy.errors_from(Audit { recaptured: 0.0, ..audit() }.lazy()) > BOUND);
    }
    let (rules, crowd) = (Rules::RECOMMENDED, report::crowd(0.5));
    let audit = Audit::by(&rules, &Market::REFERENCE);
    let lazy = Watch { audit, crowd, audits: rules.audits_per_claim() }.estimate(1, 200, 5_000);
    assert!(lazy.errors_from(audit.lazy()) < BOUND, "{lazy:?}, {}", audit.lazy());
    assert!(audit.honest() - lazy.mean > BOUND * lazy.error, "looking pays, as simulated: {lazy:?}");
}

#[test]
fn trials_agree() {
    for (seed, audits) in [(1, 1), (2, 2), (3, 12), (4, 100)] {
        let found = trial(&audit(), audits, seed, 20_000);
        let exact = audit().trial(audits.into());
        assert!(found.errors_from(exact) < BOUND, "{audits}: {found:?}, {exact}");
        let without = Audit { recaptured: 0.0, ..audit() }.trial(audits.into());
        assert!(audits > 12 || found.errors_from(without) > BOUND);
    }
}

#[test]
fn planted_claims_agree() {
    let by = |soil| Planted { jackpot: 40.0, ..Planted::by(&Rules::RECOMMENDED, &Market::REFERENCE, soil, 1_000.0) };
    for (seed, soil) in (1..).zip([Soil::Own { cover: 0 }, Soil::Own { cover: 3 }, Soil::Strangers, Soil::Receipt]) {
        for audits in [0.1, 1.0, 10.0] {
            let found = planting(&by(soil), &CROWD, audits, seed, 20_000);
            let exact = by(soil).gain(&CROWD, audits);
            assert!(found.errors_from(exact) < BOUND, "{soil:?} {audits}: {found:?}, {exact}");
            let without = Planted { bounty: 0.0, ..by(soil) }.gain(&CROWD, audits);
            // Where nearly all are found, the bounty hardly counts.
            let all_found = audits > 5.0 && soil != Soil::Receipt;
            assert!(all_found || found.errors_from(without) > BOUND, "{soil:?} {audits}");
        }
    }
}

#[test]
fn budgets_agree() {
    // Every outcome counted.
    let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
    for (count, chance) in [(1_u32, 0.3_f64), (12, 0.01), (12, 0.5), (20, 0.9)] {
        for limit in 0..=count + 1 {
            let term = |k: u32| {
                let ways = factorial(count) / factorial(k) / factorial(count - k);
                ways * chance.powi(k as i32) * (1.0 - chance).powi((count - k) as i32)
            };
            let counted: f64 = (0..=count).filter(|k| *k > limit).map(term).sum();
            let exact = more_than(limit.into(), count.into(), chance);
            assert!((exact - counted).abs() < 1e-12, "{count} {chance} {limit}: {exact} {counted}");
        }
    }
    assert_eq!([more_than(3.0, 10.0, 0.0), more_than(3.0, 10.0, 1.0), more_than(10.0, 10.0, 0.5)], [0.0, 1.0, 0.0]);
    // Half of so many draws: the first terms are too small for a float.
    assert!((more_than(5_000_000.0, 10_000_001.0, 0.5) - 0.5).abs() < 1e-6);

    let rules = Rules::RECOMMENDED;
    for (seed, size, paid) in [
        (1, Size { lanes: 1, intervals: 9, parts: 1 }, 3.0),
        (2, Size { lanes: 3, intervals: 5, parts: 1 }, 1.0),
        (3, Size { lanes: 2, intervals: 20, parts: 1 }, 5.0),
        (4, Size { lanes: 1, intervals: 4, parts: 5 }, 0.6),
    ] {
        let found = purse::runs_out(size, rules.audits_per_claim(), 20, paid, seed, 20_000);
        let exact = size.runs_out(&rules, 20, paid);
        assert!(found.errors_from(exact) < BOUND, "{size:?}: {found:?}, {exact}");
        assert!(found.errors_from(size.runs_out(&rules, 20, paid + 1.0)) > BOUND);
    }
}

#[test]
fn audits_of_receipts_agree() {
    let audit = Confirmed { fee: 12.5, work: 8.4, gas: 2.0, refusing: 0.2, leaking: 0.3 };
    let (honest, lazy) = confirmed(&audit, 1, 20_000);
    assert!(honest.errors_from(audit.honest()) < BOUND, "{honest:?}, {}", audit.honest());
    assert!(lazy.errors_from(audit.lazy()) < BOUND, "{lazy:?}, {}", audit.lazy());
    let mistake = Confirmed { refusing: 0.22, leaking: 0.28, ..audit };
    assert!(honest.errors_from(mistake.honest()) > BOUND && lazy.errors_from(mistake.lazy()) > BOUND);
}

#[test]
fn framing_agrees() {
    let rules = Rules::RECOMMENDED;
    for (seed, (claims, away, stake)) in (1..).zip([(1, 0.1, 100.0), (5, 0.3, 1_000.0), (100, 0.6, 20_000.0)]) {
        let found = framing(&rules, stake, claims, away, seed, 20_000);
        let exact = |claims| gain_of_many(&rules, stake, rules.audit_penalty(stake), away, claims);
        assert!(found.errors_from(exact(claims)) < BOUND, "{claims}: {found:?}, {}", exact(claims));
        let unbounded = gain_of_many(&rules, stake, rules.highest_penalty(), away, claims);
        assert!(stake > 5_000.0 || found.errors_from(unbounded) > BOUND);
    }
}

#[test]
fn finds_agree() {
    let rules = Rules::RECOMMENDED;
    for (seed, audits) in [(1, 0.1), (2, 1.0), (3, 5.0), (4, 20.0)] {
        let find = Find { crowd: CROWD, audits };
        let (back, got) = finding(&find, &rules, seed, 40_000);
        for (found, exact) in [(back, find.recaptured(&rules)), (got, find.found(&rules))] {
            // Where all are drawn, there is no error to measure by.
            assert!((found.mean - exact).abs() <= BOUND * found.error + 1e-9, "{audits}: {found:?}, {exact}");
        }
        // As if the cheater were never drawn.
        assert!(back.errors_from(rules.finders()) > BOUND, "{audits}: {back:?}");
        assert!(audits > 19.0 || got.errors_from(rules.auditors() / 20.0) > BOUND, "{audits}: {got:?}");
    }
}

#[test]
fn proposers_agree() {
    for (seed, slots) in (1..).zip(0..=3) {
        for (audits, reward) in [(1.0, 0.0), (1.0, 2.0), (3.0, 5.0), (3.0, 30.0)] {
            let bias = Bias { saving: 0.8, stake: 12.0, recaptured: 0.5, caught: CROWD.caught(audits), slots, reward };
            let found = Proposer { bias, crowd: CROWD, audits }.estimate(seed, 20_000);
            assert!(found.errors_from(bias.gain()) < BOUND, "{bias:?}: {found:?}, {}", bias.gain());
            let mistakes = [Bias { recaptured: 0.4, ..bias }, Bias { slots: slots + 1, ..bias }];
            let noticed = |mistake: &Bias| found.errors_from(mistake.gain()) > BOUND;
            assert!(slots > 0 || mistakes.iter().take(1).all(noticed), "{bias:?}");
            assert!(reward > 0.0 || slots > 1 || noticed(&mistakes[1]), "{bias:?}");
        }
    }
}
