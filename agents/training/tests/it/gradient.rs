//! The compiler's gradients against finite differences, in the float interpretation of the very graph it compiles.

use tensorlink_num::StepContext;
use tensorlink_training::calibrate::{float_state, job_key};
use tensorlink_training::init;
use tensorlink_training::model::Linear;
use tensorlink_training::step::float::{FloatData, FloatState, Values};
use tensorlink_training::step::{Slot, StepGraph};

use crate::support::model;

/// The gradient that the graph computes is what the velocity takes up, so from velocity zero it is the next velocity.
#[test]
fn gradients_match_finite_differences() {
    for (layers, micro_batches) in [("linear 7, gelu, linear 6, gelu", 2), ("linear 9, relu, linear 5", 1), ("", 3)] {
        let network = model(layers, 16, 12, micro_batches).network(5, 4).unwrap();
        let rows = 30u32;
        let features = (0..rows * 5).map(|i| f64::from(i * 37 % 101) / 50.0 - 1.0).collect();
        let data = FloatData { features, labels: (0..rows).map(|i| f64::from(i * 7 % 4)).collect() };
        let graph = StepGraph::training(&network, rows);
        let mut state = float_state(&init::gaussian(&network, 5));
        // Biases away from zero, so that their gradients are tested at a general point.
        for (name, values) in &mut state {
            if name.ends_with(Slot::Bias.name()) {
                values.iter_mut().zip(1..).for_each(|(b, i)| *b = 0.03 * f64::from(i));
            }
        }
        let context = StepContext { job_key: job_key(3), step: 4 };
        let loss = |state: &FloatState| Values::compute(&graph, &data, state, &context).loss();
        let next = Values::compute(&graph, &data, &state, &context).next_state();
        for (layer, _) in network.layers.iter().enumerate() {
            for (slot, velocity) in [(Slot::Weight, Slot::WeightVelocity), (Slot::Bias, Slot::BiasVelocity)] {
                for (i, gradient) in next[&Linear::site(layer, velocity.name())].iter().enumerate() {
                    let nudged = |by: f64| {
                        let mut state = state.clone();
                        state.get_mut(&Linear::site(layer, slot.name())).unwrap()[i] += by;
                        loss(&state)
                    };
                    let difference = (nudged(1e-5) - nudged(-1e-5)) / 2e-5;
                    let error = (gradient - difference).abs();
                    assert!(error < 1e-7, "{layers}: layer {layer} {slot:?}[{i}]: {gradient} against {difference}");
                }
            }
        }
    }
}
