//! Values that dwarf all others, as trained decoders have them: one channel of a token is some thousands of times as
//! large as what stands beside it (Sun et al., *Massive activations in large language models*, 2024).

use tensorlink_num::StepContext;
use tensorlink_program::Reference;
use tensorlink_training::calibrate::{float_data, job_key};
use tensorlink_training::step::float::Values;
use tensorlink_training::{LocalPipeline, Schedule};

use crate::language::{GPT2, LLAMA, compile, stages, trained_by};

/// How many times as large as the mean of its table an element is: 22,552 among threes, as in SmolLM2-135M.
const DWARFS: f64 = 7500.0;

#[test]
fn what_one_channel_dwarfs_is_learned_from() {
    // A head of its own: by the embedding, what is so large would be a logit.
    for shape in [LLAMA.to_owned(), format!(r#"{GPT2}, "tied": false"#)] {
        let (_, mut training, data) = trained_by(0.003, &shape, r#""operand_bits": 16"#, (64, 0));
        let space = data.classes.iter().position(|character| character == " ").unwrap();
        let table = training.state.get_mut("embedding.tokens").unwrap();
        let mean = table.iter().map(|value| value.abs()).sum::<f64>() / table.len() as f64;
        table[space * 32] = DWARFS * mean;
        let calibration = training.calibrate(&data.training, 3, 2).unwrap();
        let prepared = compile(&training, &calibration, &data, &[0..training.layers.len()]);
        let mut pipeline = LocalPipeline::new(&stages(&prepared), job_key(9), || Reference).unwrap();
        let (floats, mut state) = (float_data(&data.training), training.state.clone());
        for step in 0..5 {
            let exact = pipeline.step(step, Schedule::OneByOne).unwrap().loss();
            let values = Values::compute(&training.graph, &floats, &state, &StepContext { job_key: job_key(9), step });
            assert!((exact / values.loss() - 1.0).abs() < 1e-3, "{shape}, step {step}: {exact} {}", values.loss());
            state = values.next_state();
        }
    }
}
