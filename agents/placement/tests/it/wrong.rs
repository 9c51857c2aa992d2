//! Input from strangers: refused if it is no number, survived if it is a lie.

use tensorlink_placement::fleet::Fleet;
use tensorlink_placement::generate::world::faster;
use tensorlink_placement::generate::{World, model, small};
use tensorlink_placement::model::{Kind, ModelProfile};
use tensorlink_placement::node::Profile;
use tensorlink_placement::objective::{Objective, Weights};
use tensorlink_placement::plan::{Broken, Chain, Stage};
use tensorlink_placement::proximity::{Link, Proximity};
use tensorlink_placement::{Refusal, Request, Strategy, place};

use crate::asked::{ASKED, cost, instance};

fn placed(fleet: &Fleet, model: &ModelProfile) -> Result<f64, Refusal> {
    cost(Strategy::Best, &Request::new(fleet, model, Kind::Decode, Objective::Latency))
}

#[test]
fn an_empty_fleet_and_an_empty_model_are_refused() {
    let (fleet, model) = instance(1);
    let empty = Fleet { nodes: vec![], proximity: Proximity::Matrix { nodes: 0, links: vec![] } };
    assert!(matches!(placed(&empty, &model), Err(Refusal::Invalid(_))));
    let nothing = ModelProfile { layers: vec![], ..model };
    assert!(matches!(placed(&fleet, &nothing), Err(Refusal::Invalid(_))));
}

#[test]
fn what_is_nan_zero_or_infinite_is_refused_wherever_it_stands() {
    let (fleet, model) = instance(1);
    let changes: [fn(&mut Profile, f64); 4] = [
        |node, value| node.rates.int4 = value,
        |node, value| node.memory_rate = value,
        |node, value| node.rates.int16 = value,
        |node, value| node.rates.int8 = value,
    ];
    for value in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
        for change in changes {
            let mut wrong = fleet.clone();
            change(&mut wrong.nodes[2], value);
            assert!(matches!(placed(&wrong, &model), Err(Refusal::Invalid(_))), "{value}");
        }
        let mut wrong = model.clone();
        wrong.layers[3].decode.macs = value;
        assert!(matches!(placed(&fleet, &wrong), Err(Refusal::Invalid(_))), "{value}");
    }
    let mut wrong = fleet.clone();
    wrong.nodes[0].free_bytes = f64::NAN;
    assert!(matches!(placed(&wrong, &model), Err(Refusal::Invalid(_))));
    let mut wrong = fleet.clone();
    if let Proximity::Matrix { links, .. } = &mut wrong.proximity {
        links[1] = Link { seconds: f64::NAN, rate: 1.0 };
    }
    assert!(matches!(placed(&wrong, &model), Err(Refusal::Invalid(_))));
    let mix = Objective::Mix(Weights { latency: f64::NAN, ..Weights::NONE });
    assert!(matches!(
        place(Strategy::Best, &Request::new(&fleet, &model, Kind::Decode, mix)),
        Err(Refusal::Invalid(_))
    ));
}

#[test]
fn extreme_but_valid_profiles_give_finite_costs() {
    let (fleet, model) = instance(2);
    for factor in [1e-9, 1e9] {
        let mut extreme = fleet.clone();
        for node in extreme.nodes.iter_mut().step_by(2) {
            *node = faster(node, factor);
        }
        for (objective, kind) in ASKED {
            let request = Request::new(&extreme, &model, kind, objective);
            assert!(cost(Strategy::Best, &request).expect("memory is as before").is_finite(), "{factor} {objective}");
        }
    }
    let mut free = fleet;
    for node in &mut free.nodes {
        (node.price_per_hour, node.watts) = (0.0, 0.0);
    }
    for (objective, kind) in ASKED {
        let request = Request::new(&free, &model, kind, objective);
        assert!(cost(Strategy::Best, &request).expect("memory is as before").is_finite(), "{objective}");
    }
}

#[test]
fn who_claims_ten_times_its_speed_is_placed_and_costs_what_it_truly_does() {
    for seed in 1..=10 {
        let (world, model) = small(seed);
        let truth = world.fleet();
        let mut said = truth.clone();
        said.nodes[1] = faster(&said.nodes[1], 10.0);
        let plan = |fleet| {
            let request = Request::new(fleet, &model, Kind::Decode, Objective::Latency);
            place(Strategy::Best, &request).expect("memory is as before").chains.remove(0)
        };
        let request = Request::new(&truth, &model, Kind::Decode, Objective::Latency);
        let cost = |chain: &Chain| request.figures(chain).expect("memory is true").latency;
        assert!(cost(&plan(&said)) >= cost(&plan(&truth)) * 0.9999, "{seed}");
    }
}

#[test]
fn a_plan_over_memory_that_was_claimed_tenfold_is_found_broken_by_the_truth() {
    let model = model("120B int4").expect("a known name");
    let truth = World::generate(3, 8).fleet();
    let mut said = truth.clone();
    for node in &mut said.nodes {
        node.free_bytes *= 10.0;
    }
    let plan = place(Strategy::Best, &Request::new(&said, &model, Kind::Decode, Objective::Latency)).expect("it fits");
    let broken = Request::new(&truth, &model, Kind::Decode, Objective::Latency).figures(&plan.chains[0]);
    assert!(matches!(broken, Err(Broken::Memory { .. })), "{broken:?}");
}

#[test]
fn links_that_differ_by_direction_are_taken_in_the_right_one() {
    // Two equal nodes that both are needed; handing on is slow one way, and the way back has no bytes to carry.
    let mut model = model("13B int8").expect("a known name");
    model.layers = vec![model.layers[1]; 40];
    let mut node = World::generate(1, 1).nodes[0];
    node.free_bytes = 0.6 * model.bytes(Kind::Prefill);
    let (fast, slow) = (Link { seconds: 0.001, rate: 1e9 }, Link { seconds: 0.001, rate: 1e4 });
    for (there, back, first) in [(fast, slow, 0), (slow, fast, 1)] {
        let links = vec![Link::NONE, there, back, Link::NONE];
        let fleet = Fleet { nodes: vec![node; 2], proximity: Proximity::Matrix { nodes: 2, links } };
        for objective in [Objective::Latency, Objective::Throughput] {
            let request = Request::new(&fleet, &model, Kind::Prefill, objective);
            let plan = place(Strategy::Best, &request).expect("both hold it");
            assert_eq!(plan.chains[0].0[0].node, first, "{objective}");
        }
        // Gradients come back over the other direction: no order is better.
        node.free_bytes = 0.6 * model.bytes(Kind::Training);
        let fleet = Fleet { nodes: vec![node; 2], ..fleet };
        let request = Request::new(&fleet, &model, Kind::Training, Objective::Throughput);
        let plan = place(Strategy::Best, &request).expect("both hold it");
        let mut turned = plan.chains[0].clone();
        for stage in &mut turned.0 {
            stage.node = 1 - stage.node;
        }
        let [one, other] = [&plan.chains[0], &turned].map(|chain| request.figures(chain).expect("it fits").bottleneck);
        assert_eq!(one, other);
        node.free_bytes = 0.6 * model.bytes(Kind::Prefill);
    }
}

#[test]
fn chains_that_are_no_placement_are_found_broken() {
    let (fleet, model) = instance(1);
    let request = Request::new(&fleet, &model, Kind::Decode, Objective::Latency);
    let layers = model.layers.len();
    let broken = |stages: &[(usize, usize, usize)]| {
        let stages = stages.iter().map(|(node, first, end)| Stage { node: *node, first: *first, end: *end });
        request.figures(&Chain(stages.collect())).expect_err("it is broken")
    };
    assert_eq!(broken(&[]), Broken::Layers(0));
    assert_eq!(broken(&[(0, 0, 1)]), Broken::Layers(1));
    assert_eq!(broken(&[(0, 0, 1), (1, 2, layers)]), Broken::Layers(1));
    assert_eq!(broken(&[(0, 0, 1), (1, 1, 1)]), Broken::Layers(1));
    assert_eq!(broken(&[(0, 0, 1), (0, 1, layers)]), Broken::Node(0));
    assert_eq!(broken(&[(99, 0, layers)]), Broken::Node(99));
}
