//! Real training on real data, in exact arithmetic.

use tensorlink_training::metrics::saturated;
use tensorlink_training::{Model, Schedule};

use crate::support::{Prepared, digits, model};

const LAYERS: &str = "linear 128, relu, linear 64, relu";

#[test]
fn learns_digits_and_state_does_not_depend_on_the_cut() {
    let table = digits();
    let mut states = Vec::new();
    for (micro_batches, cut, schedule) in [
        (1, vec![0..3], Schedule::AllForward),
        (4, vec![0..1, 1..2, 2..3], Schedule::OneByOne),
        (4, vec![0..2, 2..3], Schedule::AllForward),
    ] {
        let prepared = Prepared::new(&model(LAYERS, 16, 64, micro_batches), &table, 30);
        let mut job = prepared.compile(&cut);
        let metrics = job.train(20, schedule);
        let (first, last) = (metrics[0].loss(), metrics[19].loss());
        assert!(last < first / 2.0, "loss went from {first} to {last}");
        assert_eq!(metrics[0].rows, 64);
        states.push(job.state());
        if states.len() == 1 {
            let held_out = job.evaluate(&prepared.dataset.held_out);
            assert_eq!(held_out.rows, 360);
            assert!(held_out.accuracy() > 0.6, "{held_out:?}");
        }
    }
    assert!(states.windows(2).all(|pair| pair[0] == pair[1]), "the cut changed the state");
}

#[test]
fn narrow_operands_and_gelu_learn_too() {
    let table = digits();
    for (layers, bits) in [(LAYERS, 8), ("linear 48, gelu", 16), ("linear 48, gelu", 8), ("", 16)] {
        let prepared = Prepared::new(&model(layers, bits, 64, 2), &table, 30);
        let last = prepared.network.layers.len();
        let mut job = prepared.compile(&[0..last]);
        let metrics = job.train(20, Schedule::OneByOne);
        let (first, last) = (metrics[0].loss(), metrics[19].loss());
        assert!(last < first * 0.7, "{layers} in {bits} bits: loss went from {first} to {last}");
    }
}

/// Static exponents leave room: in a step late in training, hardly anything stands at the limit of its type. Gradients
/// by the logits are left out: a certain and wrong answer has gradient 1, which is their limit by definition.
#[test]
fn exponents_leave_room() {
    let table = digits();
    for bits in [8, 16] {
        let prepared = Prepared::new(&model(LAYERS, bits, 64, 1), &table, 100);
        let mut job = prepared.compile(&[0..3]);
        job.train(60, Schedule::OneByOne);
        let mut pipeline = job.pipeline();
        let traces = pipeline.trace();
        pipeline.step(60, Schedule::OneByOne).unwrap();
        let mut count = (0, 0);
        for (stage, trace) in pipeline.executors().zip(traces) {
            let (names, outputs) = (&stage.program().names, trace.take());
            assert_eq!(outputs.len(), names.len());
            for (name, tensor) in names.iter().zip(&outputs) {
                // Features are clamped at four deviations on purpose.
                if name.contains(".grad") || name.contains("matmul") || name.contains("linear") || name.contains("next")
                {
                    count.0 += if name.contains("logits") { 0 } else { saturated(tensor) };
                    count.1 += tensor.ty().elements();
                }
            }
        }
        assert!(count.0 * 10_000 <= count.1, "{bits} bits: {} of {} saturated", count.0, count.1);
    }
}

/// The example's own model file reaches the accuracy that the demonstration asks for, in three stages.
#[test]
fn example_reaches_95_percent_on_held_out_digits() {
    let model = Model::parse("digits.json", include_bytes!("../../../../examples/digits.json")).unwrap();
    let prepared = Prepared::new(&model, &digits(), 200);
    let mut job = prepared.compile(&[0..1, 1..2, 2..3]);
    job.train(model.steps(), Schedule::OneByOne);
    let held_out = job.evaluate(&prepared.dataset.held_out);
    assert!(held_out.accuracy() >= 0.95, "{held_out:?}");
}
