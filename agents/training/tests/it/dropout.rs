//! Dropout: its gradients, that integers drop what floats drop, wherever a model is cut, and that nothing is dropped of
//! a model that is asked.

use tensorlink_model::random::{gpt2, llama};
use tensorlink_num::StepContext;
use tensorlink_program::Reference;
use tensorlink_training::calibrate::{float_data, job_key};
use tensorlink_training::step::StepGraph;
use tensorlink_training::step::float::Values;
use tensorlink_training::step::language::Recipe;
use tensorlink_training::{LocalPipeline, Schedule, evaluate};
use tensorlink_types::Opcode;

use crate::language::cuts::check_two_stages;
use crate::language::gradients::check_gradients_of;
use crate::language::{GPT2, LLAMA, TINY, compile, few, float_state, recipe, stages, trained_by};

const DROPOUT: &str = r#""operand_bits": 16, "dropout": 0.2"#;

#[test]
fn gradients_are_dropped_where_values_were() {
    for architecture in [llama(TINY), gpt2(TINY)] {
        let recipe = Recipe { dropout: 0.3, ..recipe(6, 2, 8, 3) };
        let graph = StepGraph::language(&architecture, &recipe, 5).unwrap();
        assert!(check_gradients_of(&graph, &float_state(&architecture, 5)) > 100);
    }
}

#[test]
fn integers_drop_what_floats_drop() {
    for shape in [LLAMA, GPT2] {
        let (_, training, data) = trained_by(0.003, shape, DROPOUT, (64, 0));
        let calibration = training.calibrate(&data.training, 8, 2).unwrap();
        let mut prepared = compile(&training, &calibration, &data, &[0..training.layers.len()]);
        let dropouts = |opcode: &Opcode| *opcode == Opcode::Dropout;
        let count = prepared[0].0.operators.iter().map(|operator| operator.opcode).filter(dropouts).count();
        // Of each sequence, forth and back: the embedding, and three in each block.
        assert_eq!(count, 4 * 2 * (1 + 3 * 2));
        let floats = float_data(&data.training);
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
        let mut state = training.state.clone();
        let mut losses = Vec::new();
        for step in 0..20 {
            let exact = pipeline.step(step, Schedule::OneByOne).unwrap().loss();
            let context = StepContext { job_key: job_key(9), step };
            let values = Values::compute(&training.graph, &floats, &state, &context);
            assert!((exact / values.loss() - 1.0).abs() < 1e-3, "{shape}, step {step}: {exact} {}", values.loss());
            state = values.next_state();
            losses.push(exact);
        }
        assert!(losses[19] < 0.9 * losses[0], "{losses:?}");

        // Asked, it is the same model as one that drops nothing.
        prepared[0].3 = pipeline.state().unwrap().remove(0);
        let asked = evaluate(&Reference, &stages(&prepared), &few(&data.held_out)).unwrap().loss();
        let (_, plain, _) = trained_by(0.003, shape, r#""operand_bits": 16"#, (64, 0));
        let calibration = plain.calibrate(&data.training, 8, 2).unwrap();
        let mut whole = compile(&plain, &calibration, &data, &[0..plain.layers.len()]);
        let slots = whole[0].0.state.clone().into_iter().zip(&prepared[0].0.state);
        for (slot, (to, from)) in slots.enumerate() {
            assert_eq!(to.name, from.name);
            if !to.name.ends_with("first") && !to.name.ends_with("second") {
                assert_eq!(to.ty, from.ty, "{}", to.name);
                whole[0].3[slot] = prepared[0].3[slot].clone();
            }
        }
        let due = evaluate(&Reference, &stages(&whole), &few(&data.held_out)).unwrap().loss();
        assert!((asked / due - 1.0).abs() < 1e-3, "{shape}: {asked} {due}");
    }
}

#[test]
fn draws_do_not_depend_on_the_cut() {
    let (_, training, data) = trained_by(0.003, LLAMA, DROPOUT, (64, 0));
    check_two_stages(training, &data, 2);
}
