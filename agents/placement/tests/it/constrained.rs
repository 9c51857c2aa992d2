//! Constraints are kept.

use std::collections::{BTreeMap, BTreeSet};

use tensorlink_placement::constraints::{Constraints, Load, Replicas};
use tensorlink_placement::generate::{World, model};
use tensorlink_placement::model::Kind;
use tensorlink_placement::node::Tier;
use tensorlink_placement::objective::Objective;
use tensorlink_placement::plan::Chain;
use tensorlink_placement::{Request, Strategy, place};

use crate::asked::{ASKED, instance, total};

fn cuts(chain: &Chain) -> Vec<usize> {
    chain.0.iter().map(|stage| stage.end).collect()
}

#[test]
fn stake_tier_and_bandwidth_are_kept_and_cost_something() {
    let model = model("13B int8").expect("a known name");
    for seed in 1..=5 {
        let fleet = World::generate(seed, 40).fleet();
        for (objective, kind) in ASKED {
            let free = Request::new(&fleet, &model, kind, objective);
            let constraints = Constraints { stake: 5e3, tier: Tier::B, bandwidth: 20e6, ..Constraints::default() };
            let bound = Request { constraints, ..free.clone() };
            // `total` panics if the chain breaks one of them.
            let [free, bound] = [free, bound].map(|request| {
                let plan = place(Strategy::Best, &request).expect("enough are left");
                total(&request, &plan)[0]
            });
            assert!(bound >= free * 0.999, "{seed} {objective}");
        }
    }
}

#[test]
fn every_plan_fits_memory_beside_what_already_runs() {
    for seed in 1..=20 {
        let (fleet, model) = instance(seed);
        let running: BTreeMap<usize, Load> =
            (0..2).map(|node| (node, Load { bytes: 0.2 * fleet.nodes[node].free_bytes, share: 0.5 })).collect();
        let constraints = Constraints { running, ..Constraints::default() };
        let request = Request { constraints, ..Request::new(&fleet, &model, Kind::Decode, Objective::Throughput) };
        let Ok(plan) = place(Strategy::Best, &request) else { continue };
        for stage in plan.chains.iter().flat_map(|chain| &chain.0) {
            let layers = &model.layers[stage.first..stage.end];
            let bytes: f64 = layers.iter().map(|layer| layer.weights + layer.decode.state).sum();
            let free = fleet.nodes[stage.node].free_bytes * if stage.node < 2 { 0.8 } else { 1.0 };
            assert!(bytes <= free * (1.0 + 1e-9), "{seed}");
        }
    }
}

#[test]
fn rings_have_the_same_cuts_and_no_operator_in_common() {
    let model = model("13B int8").expect("a known name");
    for seed in 1..=2 {
        let fleet = World::generate(seed, 60).fleet();
        for (objective, kind) in ASKED {
            let constraints = Constraints { rings: 3, replicas: Replicas::Exactly(2), ..Constraints::default() };
            let request = Request { constraints, ..Request::new(&fleet, &model, kind, objective) };
            let plan = place(Strategy::Best, &request).expect("sixty nodes hold six copies");
            assert_eq!(plan.chains.len(), 6);
            assert!(total(&request, &plan).iter().all(|cost| cost.is_finite()));
            let mut nodes = BTreeSet::new();
            for replica in plan.chains.chunks(3) {
                assert!(replica.iter().all(|ring| cuts(ring) == cuts(&replica[0])), "{seed} {objective}");
                let mut seen: BTreeSet<u64> = BTreeSet::new();
                for ring in replica {
                    let operators: BTreeSet<u64> =
                        ring.0.iter().map(|stage| fleet.nodes[stage.node].operator).collect();
                    assert!(operators.is_disjoint(&seen), "{seed} {objective}");
                    seen.extend(operators);
                    assert!(ring.0.iter().all(|stage| nodes.insert(stage.node)), "a node is in two chains");
                }
            }
        }
    }
}

#[test]
fn as_many_chains_as_pay_are_worth_more_than_one() {
    let model = model("13B int8").expect("a known name");
    let fleet = World::generate(1, 60).fleet();
    let throughput = |replicas| {
        let constraints = Constraints { replicas, ..Constraints::default() };
        let request = Request { constraints, ..Request::new(&fleet, &model, Kind::Prefill, Objective::Throughput) };
        let plan = place(Strategy::Best, &request).expect("there is enough memory");
        let mut nodes = BTreeSet::new();
        assert!(plan.chains.iter().flat_map(|chain| &chain.0).all(|stage| nodes.insert(stage.node)));
        (plan.chains.len(), total(&request, &plan).iter().map(|bottleneck| 1.0 / bottleneck).sum::<f64>())
    };
    let (one, two, many) =
        (throughput(Replicas::Exactly(1)), throughput(Replicas::Exactly(2)), throughput(Replicas::AsPays));
    assert_eq!((one.0, two.0), (1, 2));
    assert!(many.0 > 2 && many.1 > 2.0 * one.1 && two.1 > one.1, "{one:?} {two:?} {many:?}");
    let (parallax, petals) = {
        let request = Request::new(&fleet, &model, Kind::Prefill, Objective::Throughput);
        request.others_throughput()
    };
    assert!(many.1 > parallax && many.1 > petals, "{many:?} {parallax} {petals}");
}
