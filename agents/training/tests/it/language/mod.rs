//! The training step of a language model.
//!
//! | module | what is tested |
//! |---|---|
//! | [`gradients`] | gradients are what finite differences are |
//! | [`learning`] | integers learn what floats learn |
//! | [`cuts`] | the state does not depend on how a training is cut |
//! | [`models`] | which models are trained, and what they begin with |
//!
//! What their tests share, and those of adapters, encoders and dropout, is here.

pub(crate) mod cuts;
pub(crate) mod gradients;
mod learning;
mod models;

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;

use tensorlink_model::random::{Dimensions, weights};
use tensorlink_model::{Architecture, Matrix};
use tensorlink_num::Tensor;
use tensorlink_program::CheckedProgram;
use tensorlink_training::calibrate::Calibration;
use tensorlink_training::data::text::Text;
use tensorlink_training::model::language::Origin;
use tensorlink_training::step::float::FloatState;
use tensorlink_training::step::language::{AdamW, Recipe};
use tensorlink_training::{CompiledStage, Dataset, LanguageModel, Stage, StageInfo, Training, TrainingSet, init};
use tensorlink_types::{TensorRoot, TensorType};

pub(crate) const TINY: Dimensions =
    Dimensions { vocabulary: 11, width: 8, layers: 2, heads: 4, kv_heads: 2, hidden: 12, context: 6 };

/// Shapes of decoders, as model files have them.
pub(crate) const LLAMA: &str = r#""kv_heads": 2"#;

pub(crate) const GPT2: &str = r#""shape": "gpt2""#;

pub(crate) fn recipe(tokens: u32, sequences: u32, operand_bits: u8, steps: u32) -> Recipe {
    let warm = |step: u32| 3e-3 * (f64::from(step + 1) / 20.0).min(1.0);
    let optimizer = AdamW {
        rates: (0..steps).map(warm).collect(),
        beta1: 0.9,
        beta2: 1.0 - 41.0 / 4096.0,
        weight_decay: 0.1,
        clip: 1.0,
    };
    Recipe { tokens, sequences, operand_bits, dropout: 0.0, optimizer, padding: None, adapters: None }
}

pub(crate) fn floats_of(matrix: &Matrix) -> Vec<f64> {
    matrix.values().iter().map(|w| f64::from(*w)).collect()
}

pub(crate) fn float_state(architecture: &Architecture, seed: u64) -> FloatState {
    let drawn = weights(architecture, seed).unwrap();
    let mut state = BTreeMap::new();
    for (name, matrix) in drawn.iter() {
        let values = floats_of(matrix);
        for moment in ["first", "second"] {
            state.insert(format!("{name}.{moment}"), vec![0.0; values.len()]);
        }
        state.insert(name.to_owned(), values);
    }
    state
}

/// A language model of a shape with the King James text, the prepared training, and the text's sequences.
fn king_james(shape: &str, operand_bits: u8) -> (LanguageModel, Training, Dataset) {
    of_sizes(shape, operand_bits, (64, 0))
}

/// The same with an MLP of another length, and at least so many tokens.
fn of_sizes(shape: &str, operand_bits: u8, sizes: (u32, u32)) -> (LanguageModel, Training, Dataset) {
    trained_by(0.003, shape, &format!(r#""operand_bits": {operand_bits}"#), sizes)
}

/// The same with these fields beside.
pub(crate) fn trained_by(
    learning_rate: f64,
    shape: &str,
    fields: &str,
    (hidden, least): (u32, u32),
) -> (LanguageModel, Training, Dataset) {
    let packed = include_bytes!("../../../../../examples/kjv-1100k.txt.gz");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
    let json = format!(
        r#"{{ "name": "tiny",
            "decoder": {{ "width": 32, "layers": 2, "heads": 4, {shape}, "hidden": {hidden}, "context": 32 }},
            "optimizer": {{ "learning_rate": {learning_rate}, "warmup": 10, "weight_decay": 0.1, "clip": 1.0 }},
            "sequences": 4, "steps": 40, {fields}, "seed": 1 }}"#
    );
    let model = LanguageModel::parse("tiny.json", json.as_bytes()).unwrap();
    let data = Text::parse(&text).unwrap().split(model.context()).unwrap();
    let rows = data.training.features.ty().dims()[0];
    let Origin::Decoder(decoder) = model.origin() else { panic!("{:?}", model.origin()) };
    let training = Training::of_language(&model, decoder, least.max(data.classes.len() as u32), rows).unwrap();
    (model, training, data)
}

pub(crate) type Prepared = (CheckedProgram, StageInfo, Vec<Tensor>, Vec<Tensor>);

pub(crate) fn compile(
    training: &Training,
    calibration: &Calibration,
    data: &Dataset,
    cut: &[Range<usize>],
) -> Vec<Prepared> {
    let commit = |_: &Tensor| TensorRoot::default();
    let compiled = training.compile(calibration, &data.training, cut, commit).unwrap();
    let prepare = |stage: CompiledStage| {
        let state = init::state(&stage.program, &training.state).unwrap();
        (CheckedProgram::new(stage.program).unwrap(), stage.info, stage.constants, state)
    };
    compiled.into_iter().map(prepare).collect()
}

pub(crate) fn stages(prepared: &[Prepared]) -> Vec<Stage<'_>> {
    prepared.iter().map(|(program, info, constants, state)| Stage { program, info, constants, state }).collect()
}

/// The first sequences of a set.
pub(crate) fn few(set: &TrainingSet) -> TrainingSet {
    let first = |tensor: &Tensor| {
        let dims: Vec<u32> = [5].into_iter().chain(tensor.ty().dims()[1..].iter().copied()).collect();
        let ty = TensorType::new(tensor.ty().bits(), 0, &dims).unwrap();
        Tensor::from_wide(ty.clone(), &tensor.mantissas().to_vec()[..ty.elements() as usize]).unwrap()
    };
    TrainingSet { features: first(&set.features), labels: first(&set.labels) }
}
