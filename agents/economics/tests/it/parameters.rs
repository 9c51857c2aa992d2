//! Parameter files and `contracts/SPEC.md` say what this crate says.

use tensorlink_economics::dispute::{least_bond, pay_in_window, spammed_worker, stake_that_pays_gas};
use tensorlink_economics::market::GAME_GAS;
use tensorlink_economics::report::{self, parameters::recommendations};
use tensorlink_economics::validating::{Audit, highest_price};
use tensorlink_economics::{Deployed, Market, Rules, probing};

const FILE: &str = include_str!("../../../../deploy/parameters.toml");
const SPEC: &str = include_str!("../../../../contracts/SPEC.md");

fn deployed() -> Deployed {
    Deployed::parse(FILE).unwrap()
}

#[test]
fn the_parameter_file_has_what_is_recommended() {
    let compared = deployed().compare(&Rules::RECOMMENDED);
    for row in compared.iter().filter(|row| row.deployed.is_some()) {
        assert!(row.agrees(), "{row:?}: change the one or the other, and the reasons in contracts/SPEC.md");
    }
    assert!(compared.iter().filter(|row| row.deployed.is_some()).count() >= 7);
}

#[test]
fn the_specification_has_the_rows() {
    let economics = SPEC.split_once("\n## Economics\n").expect("the section is there").1;
    assert!(!economics.contains("\n## "), "it is the last");
    for row in recommendations(&Rules::RECOMMENDED, &Market::REFERENCE) {
        assert!(economics.contains(&row.markdown()), "contracts/SPEC.md lacks\n{}", row.markdown());
    }
}

#[test]
fn the_specification_has_the_figures() {
    let (rules, market) = (Rules::RECOMMENDED, Market::REFERENCE);
    let audit = Audit::by(&rules, &market, &report::crowd(0.5), false);
    let unplanted = Audit { probe_rate: 0.0, ..audit };
    let held = pay_in_window(&rules, &market);
    let gas_of_one_gwei = Market { gwei: 1.0, ..market }.gas(GAME_GAS);
    let interest = least_bond(&rules, &market, held) - market.gas(GAME_GAS);
    let probes = probing::cost_per_claim(&rules, &market, &report::crowd(0.0), probing::COVER);
    for phrase in [
        format!("The honest earn {:.1} SNO an audit", audit.honest()),
        format!("the lazy lose {:.1}.", -audit.lazy()),
        format!("the lazy would earn {:.1} more", unplanted.lazy() - unplanted.honest()),
        format!("above {:.0} SNO an interval", highest_price(&rules, &market)),
        format!("Audits cost a user {:.1} % of the price", 100.0 * rules.audits_per_claim() * rules.audit_fee()),
        format!("planted claims {:.1} %.", 100.0 * probes),
        format!("gains {:.0} SNO by a challenge", spammed_worker(&rules, &market, held)),
        format!("holds up to {:.2} gwei", (rules.bond() - interest) / gas_of_one_gwei),
        format!("A stake of {:.0} SNO pays", stake_that_pays_gas(&rules, &market).1),
    ] {
        assert!(SPEC.contains(&phrase), "contracts/SPEC.md lacks: {phrase}");
    }
}

#[test]
fn keys_of_later_files_are_read() {
    let text = format!("audits_per_claim_bps = 700\nsomething_else = \"x\"\n{FILE}");
    let compared = Deployed::parse(&text).unwrap().compare(&Rules::RECOMMENDED);
    let row = compared.iter().find(|row| row.key == "audits_per_claim_bps").unwrap();
    assert_eq!((row.deployed, row.recommended, row.agrees()), (Some(700), 1_000, false));
}

#[test]
fn what_is_no_parameter_file_is_refused() {
    for text in ["", "bounty_bps = -1", &FILE.replace("bounty_bps", "bounty"), &FILE.replace("3_000", "\"3\"")] {
        assert!(Deployed::parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_report_shows_a_difference() {
    let report = |text: &str| report::all(&Rules::RECOMMENDED, &Market::REFERENCE, &Deployed::parse(text).unwrap());
    assert!(!report(FILE).contains("differs"));
    let other = report(&FILE.replace("dispute_bond_sno = 100", "dispute_bond_sno = 101"));
    let line = other.lines().find(|line| line.contains("dispute_bond_sno")).unwrap();
    assert!(line.contains("101") && line.ends_with("differs"), "{line}");
}

#[test]
fn the_report_is_the_same_twice() {
    let report = || report::all(&Rules::RECOMMENDED, &Market::REFERENCE, &deployed());
    assert_eq!(report(), report());
}
