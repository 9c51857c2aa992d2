//! The gradients of a language model are what finite differences are.

use tensorlink_model::random::{Dimensions, gemma3, gpt2, llama};
use tensorlink_model::{Activation, Architecture, Output};
use tensorlink_num::StepContext;
use tensorlink_training::calibrate::job_key;
use tensorlink_training::step::StepGraph;
use tensorlink_training::step::float::{FloatData, FloatState, Values};

use super::{TINY, float_state, recipe};

#[test]
fn gradients_match_finite_differences() {
    let untied = Output::Logits { tied: false };
    check_gradients(&llama(TINY));
    check_gradients(&gpt2(TINY));
    // As Qwen 2 is.
    check_gradients(&Architecture { attention_bias: true, output: Output::Logits { tied: true }, ..llama(TINY) });
    // As Qwen 3 is.
    check_gradients(&Architecture { query_key_norm: true, ..llama(TINY) });
    check_gradients(&gemma3(TINY));
    let positions = llama(TINY).positions;
    check_gradients(&Architecture { activation: Activation::Relu, output: untied, positions, ..gpt2(TINY) });
    check_gradients(&Architecture { activation: Activation::Gelu, gated: true, kv_heads: 2, ..gpt2(TINY) });
    // Longer rows than one operator reduces.
    check_gradients(&gpt2(Dimensions { vocabulary: 4100, hidden: 4098, layers: 1, ..TINY }));
}

fn check_gradients(architecture: &Architecture) {
    let rows = 5;
    let graph = StepGraph::language(architecture, &recipe(6, 2, 8, 3), rows).unwrap();
    assert!(check_gradients_of(&graph, &float_state(architecture, 5)) > 100);
}

/// The gradient by values of every parameter of a state that has moments; how many.
pub(crate) fn check_gradients_of(graph: &StepGraph, state: &FloatState) -> u32 {
    let rows = 5;
    let draw = |i: u32| f64::from(i * 7 % 11);
    let data = FloatData { features: (0..rows * 6).map(draw).collect(), labels: (1..=rows * 6).map(draw).collect() };
    check_gradients_on(graph, state, &data, 12.0)
}

/// The same on some data, of which a step draws so many labels.
pub(crate) fn check_gradients_on(graph: &StepGraph, state: &FloatState, data: &FloatData, labels: f64) -> u32 {
    let context = StepContext { job_key: job_key(3), step: 1 };
    let loss = |state: &FloatState| Values::compute(graph, data, state, &context).loss() * labels;
    let values = Values::compute(graph, data, state, &context);
    let mut checked = 0;
    for (name, weights) in state.iter().filter(|(name, _)| !name.ends_with("first") && !name.ends_with("second")) {
        let sum = graph.nodes().find(|(_, node)| node.site == format!("{name}.grad.sum"));
        let (sum, _) = sum.unwrap_or_else(|| panic!("{name} has a gradient"));
        for i in (0..weights.len()).step_by((weights.len() / 12).max(7)) {
            let nudged = |by: f64| {
                let mut state = state.clone();
                state.get_mut(name).unwrap()[i] += by;
                loss(&state)
            };
            let (gradient, difference) = (values.get(sum)[i], (nudged(1e-5) - nudged(-1e-5)) / 2e-5);
            let error = (gradient - difference).abs();
            assert!(error < 1e-6, "{name}[{i}]: {gradient} against {difference}");
            checked += 1;
        }
    }
    checked
}
