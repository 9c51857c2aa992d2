//! Real training on real data, in exact arithmetic.

use tensorlink_graph::{Model, Schedule};

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
