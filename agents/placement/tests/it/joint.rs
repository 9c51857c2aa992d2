//! The joint search against the exact best, and against every rule.

use tensorlink_placement::generate::{World, model};
use tensorlink_placement::model::Kind;
use tensorlink_placement::objective::Objective;
use tensorlink_placement::{Request, Strategy};

use crate::asked::{ASKED, MIX, cost, instance};

#[test]
fn it_is_within_a_hundredth_of_the_best_there_is() {
    for (objective, kind) in ASKED {
        let mut off = 0;
        // With seven nodes and more, the exact best takes tenths of a second.
        for seed in (1..=80).filter(|seed| instance(*seed).0.nodes.len() <= 6).take(40) {
            let (fleet, model) = instance(seed);
            let request = Request::new(&fleet, &model, kind, objective);
            let best = cost(Strategy::Best, &request).expect("small instances have plans");
            let exact = request.exact(best * (1.0 - 1e-9)).map(|chain| request.figures(&chain).expect("not broken"));
            if exact.is_some_and(|figures| best > 1.01 * objective.cost(&figures)) {
                off += 1;
            }
        }
        assert_eq!(off, 0, "{objective}");
    }
}

#[test]
fn a_mix_is_within_a_hundredth_of_the_best_there_is() {
    for seed in (1..=40).filter(|seed| instance(*seed).0.nodes.len() <= 5) {
        let (fleet, model) = instance(seed);
        let request = Request::new(&fleet, &model, Kind::Decode, MIX);
        let best = cost(Strategy::Best, &request).expect("small instances have plans");
        let exact = request.exact(best * (1.0 - 1e-9)).map(|chain| request.figures(&chain).expect("not broken"));
        assert!(exact.is_none_or(|figures| best <= 1.01 * MIX.cost(&figures)), "{seed}");
    }
}

#[test]
fn the_oracle_finds_what_trying_every_order_and_cut_finds() {
    // Three nodes, and a model of six layers cut out of a real one.
    for seed in 1..=12 {
        let mut world = World::generate(seed, 3);
        let mut model = model("12B hybrid int8").expect("a known name");
        model.layers.truncate(6);
        let all: f64 = world.nodes.iter().map(|node| node.free_bytes).sum();
        for node in &mut world.nodes {
            node.free_bytes *= 1.6 * model.bytes(Kind::Decode) / all;
        }
        let fleet = world.fleet();
        for (objective, kind) in ASKED.into_iter().chain([(MIX, Kind::Decode)]) {
            let request = Request::new(&fleet, &model, kind, objective);
            let naive = every_chain(3, 6).filter_map(|chain| request.figures(&chain).ok());
            let naive = naive.map(|figures| objective.cost(&figures)).fold(f64::INFINITY, f64::min);
            let exact = request.exact(f64::INFINITY).and_then(|chain| request.figures(&chain).ok());
            let exact = exact.map_or(f64::INFINITY, |figures| objective.cost(&figures));
            assert!(exact == naive || (exact / naive - 1.0).abs() < 1e-9, "{seed} {objective}: {exact} {naive}");
        }
    }
}

/// Every order of up to three nodes with every cut.
fn every_chain(nodes: usize, layers: usize) -> impl Iterator<Item = tensorlink_placement::plan::Chain> {
    use tensorlink_placement::plan::{Chain, Stage};
    let mut chains: Vec<Vec<Stage>> = vec![vec![]];
    let mut done = Vec::new();
    while let Some(chain) = chains.pop() {
        let first = chain.last().map_or(0, |stage| stage.end);
        if first == layers {
            done.push(Chain(chain));
            continue;
        }
        for node in (0..nodes).filter(|node| chain.iter().all(|stage| stage.node != *node)) {
            for end in first + 1..=layers {
                chains.push([chain.as_slice(), &[Stage { node, first, end }]].concat());
            }
        }
    }
    done.into_iter()
}

#[test]
fn it_is_never_worse_than_a_rule() {
    for (objective, kind) in ASKED {
        let (mut compared, mut better) = (0, 0);
        for seed in 100..=130 {
            let (fleet, model) = instance(seed);
            let request = Request::new(&fleet, &model, kind, objective);
            let best = cost(Strategy::Best, &request).expect("small instances have plans");
            for strategy in Strategy::ALL {
                if let Ok(ruled) = cost(strategy, &request) {
                    assert!(best <= ruled * (1.0 + 1e-9), "{seed} {objective} {strategy}: {best} {ruled}");
                    compared += 1;
                    better += usize::from(best < 0.99 * ruled);
                }
            }
        }
        assert!(compared > 150 && better > compared / 3, "{objective}: {better} of {compared}");
    }
}

#[test]
fn it_is_never_worse_than_a_rule_with_a_hundred_nodes() {
    let model = model("70B int4").expect("a known name");
    for seed in 1..=2 {
        let fleet = World::generate(seed, 100).fleet();
        for (objective, kind) in ASKED {
            let request = Request::new(&fleet, &model, kind, objective);
            let best = cost(Strategy::Best, &request).expect("there is enough memory");
            for strategy in Strategy::ALL {
                let ruled = cost(strategy, &request).unwrap_or(f64::INFINITY);
                assert!(best <= ruled * (1.0 + 1e-9), "{seed} {objective} {strategy}: {best} {ruled}");
            }
        }
    }
}

#[test]
fn training_is_placed_where_its_state_fits() {
    let model = model("8B int16").expect("a known name");
    let fleet = World::generate(5, 30).fleet();
    for objective in [Objective::Latency, Objective::Throughput, Objective::Energy] {
        let trained = Request::new(&fleet, &model, Kind::Training, objective);
        let decoded = Request::new(&fleet, &model, Kind::Decode, objective);
        let [trained, decoded] = [trained, decoded].map(|request| cost(Strategy::Best, &request).expect("it fits"));
        assert!(trained > decoded, "{objective}");
    }
}

#[test]
fn a_plan_is_a_function_of_its_request() {
    let (fleet, model) = instance(9);
    let request = Request::new(&fleet, &model, Kind::Decode, Objective::Latency);
    let plan = tensorlink_placement::place(Strategy::Best, &request);
    assert_eq!(plan, tensorlink_placement::place(Strategy::Best, &request));
}

#[test]
fn a_large_fleet_is_thinned_out_without_loss() {
    let model = model("70B int4").expect("a known name");
    let fleet = World::generate(1, 400).fleet();
    for (objective, kind, loss) in
        [(Objective::Latency, Kind::Decode, 1.02), (Objective::Throughput, Kind::Prefill, 1.1)]
    {
        let [thin, whole] = [128, 400].map(|searched| {
            let request = Request { searched, ..Request::new(&fleet, &model, kind, objective) };
            cost(Strategy::Best, &request).expect("there is enough memory")
        });
        assert!(thin <= loss * whole, "{objective}: {thin} {whole}");
    }
}
