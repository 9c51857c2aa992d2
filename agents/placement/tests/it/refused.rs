//! When no plan fits, the error names the constraint that has to give, and doing as it says gives a plan.

use std::collections::BTreeMap;

use tensorlink_placement::constraints::{Constraints, Load, Replicas};
use tensorlink_placement::fleet::Fleet;
use tensorlink_placement::generate::{World, model};
use tensorlink_placement::model::Kind;
use tensorlink_placement::node::Tier;
use tensorlink_placement::objective::Objective;
use tensorlink_placement::{Refusal, Request, Strategy, place};

/// Twelve nodes, none of which holds a large model alone.
fn fleet() -> Fleet {
    let mut fleet = World::generate(4, 12).fleet();
    for node in &mut fleet.nodes {
        node.free_bytes = node.free_bytes.min(20e9);
    }
    fleet
}

/// What a request with these constraints is refused for, and whether it is placed with others.
fn refusal(
    name: &str,
    fleet: &Fleet,
    constraints: Constraints,
    mended: impl Fn(&Refusal, &mut Constraints),
) -> Refusal {
    let model = model(name).expect("a known name");
    let request =
        |constraints| Request { constraints, ..Request::new(fleet, &model, Kind::Decode, Objective::Latency) };
    let refusal = place(Strategy::Best, &request(constraints.clone())).expect_err("nothing fits");
    let mut after = constraints;
    mended(&refusal, &mut after);
    let placed = place(Strategy::Best, &request(after.clone()));
    assert!(placed.is_ok() || after == Constraints::default(), "{refusal}: {placed:?}");
    refusal
}

#[test]
fn stake_tier_and_bandwidth_are_named_with_what_would_do() {
    let fleet = fleet();
    let asked = Constraints { stake: 99e3, ..Constraints::default() };
    let found = refusal("13B int8", &fleet, asked, |refusal, constraints| {
        let Refusal::Stake { would, .. } = refusal else { panic!("{refusal}") };
        constraints.stake = *would;
    });
    assert!(found.to_string().starts_with("stake: "));
    let asked = Constraints { bandwidth: 1e12, ..Constraints::default() };
    refusal("70B int4", &fleet, asked, |refusal, constraints| {
        let Refusal::Bandwidth { would, .. } = refusal else { panic!("{refusal}") };
        assert!(*would > 0.0);
        constraints.bandwidth = *would;
    });
    let mut weak = fleet;
    for node in &mut weak.nodes {
        node.teraflops = node.teraflops.min(10.0);
    }
    let asked = Constraints { tier: Tier::A, ..Constraints::default() };
    refusal("13B int8", &weak, asked, |refusal, constraints| {
        let Refusal::Tier { would, .. } = refusal else { panic!("{refusal}") };
        constraints.tier = *would;
    });
}

#[test]
fn where_any_of_several_constraints_may_give_all_are_named() {
    // Everybody holds the model alone, and no link is wide enough for two.
    let mut fleet = fleet();
    fleet.nodes.iter_mut().for_each(|node| node.free_bytes = 80e9);
    let asked = Constraints { bandwidth: 1e15, stages: Some(2), ..Constraints::default() };
    let found = refusal("8B int16", &fleet, asked.clone(), |refusal, constraints| {
        let Refusal::Either(ways) = refusal else { panic!("{refusal}") };
        let [Refusal::Stages { would: 1, .. }, Refusal::Bandwidth { would, .. }] = ways.as_slice() else {
            panic!("{refusal}")
        };
        constraints.bandwidth = *would;
    });
    assert!(found.to_string().starts_with("stages: ") && found.to_string().contains("; or bandwidth: "), "{found}");
    refusal("8B int16", &fleet, asked, |_, constraints| constraints.stages = Some(1));
}

#[test]
fn rings_replicas_and_running_lanes_are_named_with_what_would_do() {
    let mut fleet = fleet();
    let asked = Constraints { replicas: Replicas::Exactly(40), ..Constraints::default() };
    refusal("13B int8", &fleet, asked, |refusal, constraints| {
        let Refusal::Replicas { would, .. } = refusal else { panic!("{refusal}") };
        constraints.replicas = Replicas::Exactly(*would);
    });
    let full = |node: usize| Load { bytes: fleet.nodes[node].free_bytes, share: 0.0 };
    let running: BTreeMap<usize, Load> = (0..12).map(|node| (node, full(node))).collect();
    refusal("13B int8", &fleet, Constraints { running, ..Constraints::default() }, |refusal, constraints| {
        assert!(matches!(refusal, Refusal::Running { .. }), "{refusal}");
        constraints.running.clear();
    });
    for node in &mut fleet.nodes {
        node.operator %= 2;
    }
    refusal("13B int8", &fleet, Constraints { rings: 4, ..Constraints::default() }, |refusal, constraints| {
        let Refusal::Rings { asked: 4, would } = refusal else { panic!("{refusal}") };
        constraints.rings = *would;
    });
}

#[test]
fn memory_is_named_with_how_much_is_missing() {
    let mut fleet = World::generate(4, 3).fleet();
    for node in &mut fleet.nodes {
        node.free_bytes = 6e9;
    }
    let found = refusal("70B int4", &fleet, Constraints::default(), |_, _| ());
    let Refusal::Memory { bytes, free } = found else { panic!("{found}") };
    assert!(free == 18e9 && bytes > 38e9 && found.to_string().contains("more are needed"));
    for node in &mut fleet.nodes {
        node.free_bytes = 0.1e9;
    }
    let found = refusal("70B int4", &fleet, Constraints::default(), |_, _| ());
    assert!(matches!(found, Refusal::Layer { .. }), "{found}");
    // Nineteen and a half layers on each of two nodes hold no model of 39.
    let mut model = model("13B int8").expect("a known name");
    model.layers = vec![model.layers[1]; 39];
    let each = 19.5 * model.bytes(Kind::Decode) / 39.0 * 1.001;
    fleet.nodes.truncate(2);
    let mut fleet = Fleet { proximity: World::generate(4, 2).proximity(), ..fleet };
    for node in &mut fleet.nodes {
        node.free_bytes = each;
    }
    let request = Request::new(&fleet, &model, Kind::Decode, Objective::Latency);
    let found = place(Strategy::Best, &request).expect_err("nothing fits");
    assert!(matches!(found, Refusal::Pieces { .. }), "{found}");
}

#[test]
fn several_constraints_at_once_are_said_to_be_several() {
    let fleet = fleet();
    let asked = Constraints { stake: 99e6, bandwidth: 1e12, ..Constraints::default() };
    assert_eq!(
        refusal("70B int4", &fleet, asked, |_, constraints| *constraints = Constraints::default()),
        Refusal::Several
    );
}

#[test]
fn rules_of_others_say_that_they_know_single_chains() {
    let fleet = fleet();
    let model = model("13B int8").expect("a known name");
    let constraints = Constraints { rings: 2, ..Constraints::default() };
    let request = Request { constraints, ..Request::new(&fleet, &model, Kind::Decode, Objective::Latency) };
    assert_eq!(place(Strategy::Rmw, &request), Err(Refusal::SingleChains(Strategy::Rmw)));
}
