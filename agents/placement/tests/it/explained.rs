//! What people read about a plan.

use tensorlink_placement::explain::runner_up;
use tensorlink_placement::model::Kind;
use tensorlink_placement::objective::Objective;
use tensorlink_placement::{Request, Strategy, explain, place};

use crate::asked::instance;

#[test]
fn the_picture_has_every_node_and_one_bottleneck_and_the_runner_up_is_no_better() {
    for seed in 1..=10 {
        let (fleet, model) = instance(seed);
        let request = Request::new(&fleet, &model, Kind::Decode, Objective::Latency);
        let plan = place(Strategy::Best, &request).expect("small instances have plans");
        let text = explain(&request, &plan, &|node| format!("node {node}")).expect("a plan is never broken");
        for stage in &plan.chains[0].0 {
            assert!(text.contains(&format!("node {}", stage.node)), "{text}");
        }
        assert_eq!(text.matches("the bottleneck").count(), 1, "{text}");
        assert_eq!(text.matches("hop ").count(), plan.chains[0].0.len() - 1, "{text}");
        let cost = request.figures(&plan.chains[0]).expect("not broken").latency;
        if let Some((without, other, figures)) = runner_up(&request, &plan.chains[0]) {
            assert!(other.0.iter().all(|stage| stage.node != without));
            assert!(figures.latency >= cost * (1.0 - 1e-9), "{seed}");
        }
    }
}
