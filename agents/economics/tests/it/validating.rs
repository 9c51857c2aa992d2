//! Looking pays, and not looking does not.

use tensorlink_economics::rules::share;
use tensorlink_economics::validating::{Audit, highest_price};
use tensorlink_economics::{Crowd, Market, Rules, probing, report};

const RULES: Rules = Rules::RECOMMENDED;
const MARKET: Market = Market::REFERENCE;

fn audit(rules: &Rules, market: &Market, lazy: f64) -> Audit {
    Audit::by(rules, market, &report::crowd(lazy), false)
}

#[test]
fn the_honest_earn_and_the_lazy_lose_however_many_are_lazy() {
    for percent in 0..=100 {
        for jackpots in [false, true] {
            let audit = Audit::by(&RULES, &MARKET, &report::crowd(f64::from(percent) / 100.0), jackpots);
            assert!(audit.honest() > 0.0, "{percent} {audit:?}");
            assert!(audit.lazy() < 0.0, "to be absent is better than lazy: {percent} {audit:?}");
        }
    }
}

#[test]
fn the_honest_earn_wherever_workers_keep_a_seventeenth() {
    let income = |cost_share| audit(&RULES, &Market { cost_share, ..MARKET }, 0.5).honest();
    assert!(income(0.94) > 0.0);
    assert!(income(0.95) < 0.0);
}

#[test]
fn without_probes_the_lazy_earn_more() {
    let unplanted = Rules { probe_rate_bps: 0, ..RULES };
    let audit = audit(&unplanted, &MARKET, 0.5);
    assert!(audit.lazy() > audit.honest());
    assert_eq!(audit.least_penalty(), f64::INFINITY);
    // Cheaters alone would keep them awake, if there were enough of them.
    let cheated = Audit { wrong_rate: 0.01, ..audit };
    assert!(cheated.lazy() < cheated.honest());
}

#[test]
fn the_least_are_the_least() {
    for jackpots in [false, true] {
        for wrong_rate in [0.0, 1e-5] {
            let audit =
                Audit { wrong_rate, bounty: 500.0, ..Audit::by(&RULES, &MARKET, &report::crowd(0.5), jackpots) };
            let looks = |audit: Audit| audit.honest() > audit.lazy();
            let (penalty, probe_rate) = (audit.least_penalty(), audit.least_probe_rate());
            assert!(
                looks(Audit { penalty: penalty * 1.001, ..audit })
                    && !looks(Audit { penalty: penalty * 0.999, ..audit })
            );
            let rate = |factor: f64| looks(Audit { probe_rate: probe_rate * factor, ..audit });
            assert!(rate(1.001) && !rate(0.999));
        }
    }
}

#[test]
fn jackpots_lower_the_least_penalty() {
    let by = |jackpots| Audit::by(&RULES, &MARKET, &report::crowd(0.5), jackpots);
    assert!(by(true).least_penalty() < by(false).least_penalty());
    assert!(by(true).least_probe_rate() < by(false).least_probe_rate());
}

#[test]
fn above_the_highest_price_nobody_looks() {
    let highest = highest_price(&RULES, &MARKET);
    assert!(highest > 10.0 * MARKET.price, "the reference is far below: {highest}");
    let looks = |price| {
        let audit = audit(&RULES, &Market { price, ..MARKET }, 0.0);
        audit.honest() > audit.lazy()
    };
    assert!(looks(highest * 0.999));
    assert!(!looks(highest * 1.001));
    assert_eq!(highest_price(&Rules { probe_rate_bps: 0, ..RULES }, &MARKET), 0.0);
}

#[test]
fn prizes_are_shared_out_exactly() {
    for crowd in [Crowd { honest: 1, lazy: 0, colluding: 0 }, report::crowd(0.3), report::crowd(0.0)] {
        for audits in [0.1, 1.0, 30.0] {
            let drawn = f64::from(crowd.honest) * crowd.chance(audits);
            assert!((drawn * crowd.first(audits) - crowd.caught(audits)).abs() < 1e-12);
        }
    }
    assert_eq!(report::crowd(1.0).first(1.0), 0.0);
}

#[test]
fn safety_costs_a_sixth_of_the_price() {
    let audits = RULES.audits_per_claim() * RULES.audit_fee();
    for percent in 0..=100 {
        let crowd = report::crowd(f64::from(percent) / 100.0);
        let probes = probing::cost_per_claim(&RULES, &MARKET, &crowd, probing::COVER);
        assert!(probes > 0.0 && audits + probes < 1.0 / 6.0, "{percent}: {audits} {probes}");
    }
}

#[test]
fn a_planted_claim_costs_its_planter_less_where_the_lazy_are_alone() {
    let cost = |lazy| probing::cost(&RULES, &MARKET, &report::crowd(lazy), 0);
    // The difference is the bounty, less the gas of convicting itself.
    let drawn = report::crowd(0.0).caught(RULES.audits_per_claim());
    let bounty = share(RULES.bounty_bps) * RULES.min_stake() * MARKET.price;
    let expected = drawn * (bounty - MARKET.gas(tensorlink_economics::market::CONVICTION_GAS));
    assert!((cost(0.0) - cost(1.0) - expected).abs() < 1e-9);
}
