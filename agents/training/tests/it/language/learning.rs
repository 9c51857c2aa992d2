//! Integers learn what floats learn, and are seen where they do not.

use tensorlink_num::StepContext;
use tensorlink_program::Reference;
use tensorlink_training::calibrate::{float_data, job_key};
use tensorlink_training::metrics::saturation;
use tensorlink_training::step::float::Values;
use tensorlink_training::{Dataset, LanguageModel, LocalPipeline, Schedule, Training, evaluate};

use super::{GPT2, LLAMA, compile, few, king_james, of_sizes, stages, trained_by};

const EIGHT_BITS: &str = r#""operand_bits": 8"#;

/// A Llama by the King James text at another learning rate.
fn at_rate(learning_rate: f64) -> (LanguageModel, Training, Dataset) {
    trained_by(learning_rate, LLAMA, EIGHT_BITS, (64, 0))
}

#[test]
fn integers_learn_what_floats_learn() {
    for (shape, bits, tolerance) in [(LLAMA, 16, 5e-4), (LLAMA, 8, 3e-3), (GPT2, 16, 5e-4), (GPT2, 8, 3e-3)] {
        let (model, training, data) = king_james(shape, bits);
        let calibration = training.calibrate(&data.training, 8, 2).unwrap();
        let mut prepared = compile(&training, &calibration, &data, &[0..training.layers.len()]);
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
        let floats = float_data(&data.training);
        let (mut state, mut losses) = (training.state.clone(), Vec::new());
        for step in 0..model.steps() {
            let exact = pipeline.step(step, Schedule::OneByOne).unwrap();
            assert_eq!(exact.rows, 4 * 32);
            let context = StepContext { job_key: job_key(9), step };
            let values = Values::compute(&training.graph, &floats, &state, &context);
            let loss = values.loss();
            assert!(
                (exact.loss() / loss - 1.0).abs() < tolerance,
                "{shape}, {bits} bits, step {step}: {} {loss}",
                exact.loss()
            );
            state = values.next_state();
            losses.push(loss);
        }
        assert!(losses[39] < 0.66 * losses[0], "from {} to {}", losses[0], losses[39]);
        prepared[0].3 = pipeline.state().unwrap().remove(0);
        let held_out = evaluate(&Reference, &stages(&prepared), &few(&data.held_out)).unwrap();
        assert_eq!(held_out.rows, 5 * 32);
        assert!((2.0..3.2).contains(&held_out.loss()), "{}", held_out.loss());
    }
}

/// A training that leaves what calibration saw is told by its weights before its loss is no number.
#[test]
fn weights_that_outgrow_their_types_are_seen() {
    for (rate, outgrown) in [(0.003, false), (0.5, true)] {
        let (_, training, data) = at_rate(rate);
        let calibration = training.calibrate(&data.training, 2, 2).unwrap();
        let prepared = compile(&training, &calibration, &data, &[0..2, 2..4]);
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
        for step in 0..20 {
            pipeline.step(step, Schedule::OneByOne).unwrap();
        }
        for stage in pipeline.executors() {
            let share = saturation(stage).unwrap().unwrap();
            assert_eq!(share > 0.05, outgrown, "at {rate}: {share}");
        }
    }
}

/// A vocabulary and an MLP of which no operator reduces a whole row.
#[test]
fn long_rows_are_reduced_in_parts() {
    let (_, training, data) = of_sizes(r#""tied": true"#, 8, (4160, 5000));
    let calibration = training.calibrate(&data.training, 2, 2).unwrap();
    let prepared = compile(&training, &calibration, &data, &[0..1]);
    let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
    let floats = float_data(&data.training);
    let (mut state, mut losses) = (training.state.clone(), Vec::new());
    for step in 0..3 {
        let exact = pipeline.step(step, Schedule::OneByOne).unwrap().loss();
        let values = Values::compute(&training.graph, &floats, &state, &StepContext { job_key: job_key(9), step });
        assert!((exact / values.loss() - 1.0).abs() < 3e-3, "step {step}: {exact} {}", values.loss());
        state = values.next_state();
        losses.push(exact);
    }
    assert!(losses[2] < losses[0], "{losses:?}");
}
