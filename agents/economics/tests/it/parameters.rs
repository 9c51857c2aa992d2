//! Parameter files and `contracts/SPEC.md` say what this crate says.

use tensorlink_economics::beacon::{least_reward, least_stake};
use tensorlink_economics::budget::Size;
use tensorlink_economics::dispute::{least_bond, pay_in_window, spammed_worker, stake_that_pays_gas, worst_deposit};
use tensorlink_economics::finding::Find;
use tensorlink_economics::framing::highest_absence;
use tensorlink_economics::market::{
    ACCUSATION_GAS, AUDIT_GAS, CLAIM_GAS, CONVICTION_GAS, ENDING_GAS, WON_GAME_GAS, WORST_ANSWERS_GAS,
};
use tensorlink_economics::receipts::{Confirmed, most_deferred};
use tensorlink_economics::report::beacon::biased;
use tensorlink_economics::report::{self, parameters::recommendations};
use tensorlink_economics::validating::{self, Audit, audits_of_a_lane, price_of_highest_penalty};
use tensorlink_economics::{Crowd, Deployed, Market, Rules, copying};

const FILE: &str = include_str!("../../../../deploy/parameters.toml");
const SPEC: &str = include_str!("../../../../contracts/SPEC.md");

/// What the contracts' tests measured.
const PROTOCOL: &str = include_str!("../../../../tests/contracts/snapshots/protocol.json");
const CONVICTION: &str = include_str!("../../../../tests/contracts/snapshots/conviction.json");
const CHALLENGE: &str = include_str!("../../../../tests/contracts/snapshots/challenge.json");

/// A snapshot's value, of a line such as `"commit": "61784",`.
fn measured(snapshots: &str, name: &str) -> u32 {
    let line = snapshots.lines().find_map(|line| line.trim().strip_prefix(&format!("\"{name}\": \"")));
    line.unwrap_or_else(|| panic!("no snapshot {name:?}")).trim_end_matches(['"', ',']).parse().unwrap()
}

fn deployed() -> Deployed {
    Deployed::parse(FILE).unwrap()
}

fn economics() -> &'static str {
    SPEC.split_once("\n## Economics\n").expect("the section is there").1
}

#[test]
fn the_parameter_file_has_what_is_recommended() {
    let compared = deployed().compare(&Rules::RECOMMENDED);
    for row in compared {
        assert!(row.agrees(), "{row:?}: change the one or the other, and the reasons in contracts/SPEC.md");
    }
}

#[test]
fn the_specification_has_the_rows() {
    let economics = economics();
    assert!(!economics.contains("\n## "), "it is the last");
    for row in recommendations(&Rules::RECOMMENDED, &Market::REFERENCE) {
        assert!(economics.contains(&row.markdown()), "contracts/SPEC.md lacks\n{}", row.markdown());
    }
}

#[test]
fn the_specification_has_the_figures() {
    let (rules, market) = (Rules::RECOMMENDED, Market::REFERENCE);
    let audit = Audit::by(&rules, &market);
    let held = pay_in_window(&rules, &market);
    let ending_at_one_gwei = Market { gwei: 1.0, ..market }.gas(ENDING_GAS);
    let interest = least_bond(&rules, &market, held) - market.gas(ENDING_GAS);
    let bias = biased(&rules, &market, 1);
    let stake = rules.stake_at(market.price);
    let ten = Size { lanes: 1, intervals: 10, parts: 1 };
    let receipt = Confirmed::by(&rules, &market, 1.0);
    let absence = |stake, together| 100.0 * highest_absence(&rules, stake, rules.audit_penalty(stake), together);
    let all_validators = Crowd { honest: 1, lazy: 0, colluding: 0 };
    let together = audit.least_audits_for_trial() / audits_of_a_lane(&rules, &all_validators, 1.0);
    let nine = Audit { checking: 0.9, ..audit };
    let vigilant = nine.least_audits_for_trial() / audits_of_a_lane(&rules, &all_validators, 1.0);
    let three_in_ten = Crowd { honest: 70, lazy: 0, colluding: 30 };
    let find = Find { crowd: three_in_ten, audits: rules.audits_per_claim() };
    for phrase in [
        format!("earn {:.1} SNO an audit", audit.honest()),
        format!("the lazy lose {:.1}", -audit.lazy()),
        format!("fewer than {:.1} % of claims", 100.0 * audit.least_checking()),
        format!("Up to {:.0} SNO an interval", price_of_highest_penalty(&rules)),
        format!("Above {:.0} SNO not looking", validating::highest_price(&rules, &market)),
        format!("below {:.1} SNO", validating::lowest_price(&rules, &market)),
        format!("beyond {:.1} % of the price", 100.0 * validating::highest_cost_share(&rules, &market)),
        format!("after {together:.0} claims"),
        format!("nine in ten do, {vigilant:.0}"),
        format!("as much as {:.0} right ones", copying::sales_in_a_betrayal(&rules, &market, stake)),
        format!(
            "at {:.0} SNO and more as {:.0}",
            rules.highest_penalty(),
            copying::sales_in_a_betrayal(&rules, &market, rules.highest_penalty())
        ),
        format!("{:.4} ETH here", least_reward(bias.saving, bias.caught) * market.price / market.sno_per_eth),
        format!("{} ETH up to {:.0} SNO", market.block_reward_eth, report::beacon::highest_price(&rules, &market)),
        format!("stake of {:.0} prices", least_stake(bias.saving, bias.recaptured, bias.caught, 1)),
        format!("more than {:.0} % of the time at the worst, at any stake", absence(stake, 1.0)),
        format!("ten, {:.1} %", absence(stake, 10.0)),
        format!("beyond {:.1} % of refusals", 100.0 * receipt.highest_refusing()),
        format!("beyond {:.0} % of leaks", 100.0 * receipt.least_leaking()),
        format!("above {:.0} SNO", copying::lowest_price_to_force(&rules, &market)),
        format!("longer than {:.1} hours", validating::longest_interval(&rules, &market) / 3_600.0),
        format!("{:.1} % of the price", 100.0 * rules.audits_per_claim() * rules.audit_fee()),
        format!("{:.1} % of jobs", 100.0 * ten.runs_out(&rules, report::VALIDATORS, ten.fees(&rules))),
        format!("gains {:.0} SNO by a challenge", spammed_worker(&rules, &market, held)),
        format!("holds up to {:.1} gwei", (rules.bond() - interest) / ending_at_one_gwei),
        format!("cost the challenger {:.0} SNO", worst_deposit(&market)),
        format!("then {:.1} % of the stake comes back", 100.0 * find.recaptured(&rules)),
        format!("gets {:.0} SNO for\n  an audit of {:.1}", find.found(&rules) * stake, market.audit_cost()),
        format!("A stake of {:.0} SNO pays", stake_that_pays_gas(&rules, &market).1),
    ] {
        assert!(economics().contains(&phrase), "contracts/SPEC.md lacks: {phrase}");
    }
}

/// No dearer than assumed, nor cheaper by more than a sixth: then what is concluded of it is out of date.
#[test]
fn gas_is_what_the_contracts_take() {
    let protocol = |name: &str| measured(PROTOCOL, name);
    let conviction = |name: &str| measured(CONVICTION, &format!("proveSigned, {name}int8 dot product of 4096"));
    let audit = |of: [&str; 2]| of.map(protocol).iter().sum::<u32>();
    for (assumed, highest) in [
        (CONVICTION_GAS, conviction("").max(conviction("receipt, "))),
        (WORST_ANSWERS_GAS, measured(CHALLENGE, "worst game, gas of the worker")),
        // Measured where gas costs nothing: that the worker has no credit yet is not in it.
        (ENDING_GAS, measured(CHALLENGE, "timeout, lost") + protocol("collect from challenges") + 20_000),
        (WON_GAME_GAS - CONVICTION_GAS, measured(CHALLENGE, "largest game, by hints, gas without the proof")),
        (CLAIM_GAS, protocol("commit")),
        (AUDIT_GAS, audit(["audit, commit, receipt of 1,000", "audit, revealConfirmed, receipt of 1,000"])),
        (ACCUSATION_GAS, audit(["audit, accuse", "audit, penalise"])),
    ] {
        assert!(highest <= assumed && assumed - highest <= assumed / 6, "{assumed} assumed, {highest} measured");
    }
}

/// Two epochs, each with a last text that goes beyond, are drawn for together if a worker redeems late (P-19).
#[test]
fn what_users_sign_for_ahead_of_audits_is_worth_no_stake() {
    const ACCOUNT: &str = include_str!("../../../user/src/serving/account.rs");
    let constant = |name: &str| -> u32 {
        let line = ACCOUNT.lines().find(|line| line.contains(&format!("const {name}: u32 = "))).unwrap();
        line.split_once("= ").unwrap().1.trim_end_matches(';').parse().unwrap()
    };
    let rules = Rules::RECOMMENDED;
    let half_blind = Crowd { honest: 50, lazy: 50, colluding: 0 };
    let caught = half_blind.caught(rules.audits_per_claim());
    let most = most_deferred(rules.min_stake(), 1.0, rules.bounty(), caught);
    assert!(constant("AHEAD") * (constant("TEXTS") + 1) <= most, "{most}");
    for phrase in [
        format!("lose by up to {most} texts of the greatest length"),
        format!("more than {most} texts"),
        format!("each of {} such texts", constant("TEXTS")),
    ] {
        assert!(economics().contains(&phrase), "contracts/SPEC.md lacks: {phrase}");
    }
}

#[test]
fn keys_of_others_are_passed_over() {
    let text = FILE.replace("audits_per_claim_bps = 1_000", "something_else = \"x\"\naudits_per_claim_bps = 700");
    let compared = Deployed::parse(&text).unwrap().compare(&Rules::RECOMMENDED);
    let row = compared.iter().find(|row| row.key == "audits_per_claim_bps").unwrap();
    assert_eq!((row.deployed, row.recommended, row.agrees()), (700, 1_000, false));
}

#[test]
fn what_is_no_parameter_file_is_refused() {
    for text in [
        "",
        "bounty_bps = -1",
        &FILE.replace("bounty_bps", "bounty"),
        &FILE.replace("3_000", "\"3\""),
        &FILE.replace("audit_fee_bps", "fee"),
    ] {
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
