//! A language model's training step, to be timed: the exact one beside libtorch's autograd, from the same weights. The
//! benches of `tensorlink-tensor` include this file.
//!
//! Exponents are those of a model of as many layers that is narrow: sites have the same names, and magnitudes much
//! the same.

use std::error::Error;
use std::ops::Range;
use std::time::Duration;

use serde_json::json;
use tensorlink_num::Tensor;
use tensorlink_program::{CheckedProgram, Engine};
use tensorlink_tensor::Device;
use tensorlink_tensor::float::{FloatTraining, Precision};
use tensorlink_training::calibrate::{Calibration, LEAST_STEPS, job_key};
use tensorlink_training::model::Decoder;
use tensorlink_training::model::language::Origin;
use tensorlink_training::{CompiledStage, LanguageModel, LocalPipeline, Schedule, Stage, Training, TrainingSet, init};
use tensorlink_types::{TensorRoot, TensorType};

use super::time::once;

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Sequences of the text.
const ROWS: u32 = 16;
/// Bits of a token number.
const TOKEN_BITS: u8 = 20;

/// A decoder's sizes, and those of its step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) width: u32,
    pub(crate) layers: u32,
    pub(crate) heads: u32,
    pub(crate) hidden: u32,
    pub(crate) vocabulary: u32,
    /// Tokens of a sequence.
    pub(crate) context: u32,
    pub(crate) sequences: u32,
    /// Of the operands of products with weights.
    pub(crate) bits: u8,
}

impl Shape {
    /// 15 million weights, 4 sequences.
    pub(crate) const SMALL: Self =
        Self { width: 512, layers: 4, heads: 8, hidden: 1408, vocabulary: 4096, context: 128, sequences: 4, bits: 8 };

    /// Where exponents come from.
    const fn narrow(self) -> Self {
        Self { width: 64, heads: 4, hidden: 176, vocabulary: 64, context: 16, ..self }
    }

    fn model(self) -> Result<LanguageModel> {
        let Self { width, layers, heads, hidden, context, sequences, bits, .. } = self;
        let file = json!({
            "name": "step",
            "decoder": { "width": width, "layers": layers, "heads": heads, "kv_heads": heads / 2, "hidden": hidden,
                "context": context },
            "optimizer": { "learning_rate": 0.001, "warmup": 1, "weight_decay": 0.1, "clip": 1.0 },
            "sequences": sequences, "steps": 100, "operand_bits": bits, "seed": 1
        });
        Ok(LanguageModel::parse("step", file.to_string().as_bytes())?)
    }

    /// The model about to be trained.
    pub(crate) fn training(self) -> Result<Training> {
        let model = self.model()?;
        Ok(Training::of_language(&model, decoder(&model)?, self.vocabulary, ROWS)?)
    }

    /// Noise as a text, and as what follows it.
    pub(crate) fn text(self) -> Result<TrainingSet> {
        let ty = TensorType::new(TOKEN_BITS, 0, &[ROWS, self.context])?;
        let ids = |first: u32| {
            let token = |i: u32| i.wrapping_mul(2_654_435_761).rotate_left(7) % self.vocabulary;
            let ids: Vec<i64> = (first..).map(|i| token(i).into()).take(ty.elements() as usize).collect();
            Tensor::from_wide(ty.clone(), &ids)
        };
        Ok(TrainingSet { features: ids(0)?, labels: ids(1 << 20)? })
    }
}

fn decoder(model: &LanguageModel) -> Result<&Decoder> {
    match model.origin() {
        Origin::Decoder(decoder) => Ok(decoder),
        Origin::Encoder(_) | Origin::From(_) => Err("the model is no decoder with sizes of its own".into()),
    }
}

/// What is trained, and on what.
pub(crate) struct Subject {
    shape: Shape,
    model: LanguageModel,
    pub(crate) training: Training,
    data: TrainingSet,
    calibration: Calibration,
}

impl Subject {
    pub(crate) fn new(shape: Shape) -> Result<Self> {
        let narrow = shape.narrow();
        let calibration = narrow.training()?.calibrate(&narrow.text()?, LEAST_STEPS, 1)?;
        Ok(Self { shape, model: shape.model()?, training: shape.training()?, data: shape.text()?, calibration })
    }

    /// A program for each range of layers.
    pub(crate) fn stages(&self, ranges: &[Range<usize>]) -> Result<Vec<CompiledStage>> {
        let commit = |_: &Tensor| TensorRoot::default();
        Ok(self.training.compile(&self.calibration, &self.data, ranges, commit)?)
    }

    fn exact<E: Engine>(&self, engine: impl Fn() -> E) -> Result<LocalPipeline<E>> {
        let all = 0..self.training.layers.len();
        let stage = self.stages(std::slice::from_ref(&all))?.pop().ok_or("a model without layers")?;
        let state = init::state(&stage.program, &self.training.state)?;
        let program = CheckedProgram::new(stage.program)?;
        let stages = [Stage { program: &program, info: &stage.info, constants: &stage.constants, state: &state }];
        Ok(LocalPipeline::new(&stages, job_key(1), engine)?)
    }

    fn float(&self, device: Device, precision: Precision) -> Result<FloatTraining> {
        let architecture = decoder(&self.model)?.architecture(self.shape.vocabulary);
        let recipe = self.model.recipe(self.shape.sequences);
        Ok(FloatTraining::new(&architecture, &recipe, &self.training.state, (device, precision))?)
    }
}

/// The same step in integers, in 32-bit floats and under bfloat16's autocast, from the same weights.
pub(crate) struct Contest<E: Engine> {
    exact: LocalPipeline<E>,
    floats: [FloatTraining; 2],
    /// The sequences of the floats' steps, and what follows each token.
    batch: [Vec<i64>; 2],
    context: usize,
    device: Device,
}

impl<E: Engine> Contest<E> {
    pub(crate) fn new(subject: &Subject, device: Device, engine: impl Fn() -> E) -> Result<Self> {
        let Shape { sequences, context, .. } = subject.shape;
        let tokens = (sequences * context) as usize;
        let batch = [&subject.data.features, &subject.data.labels]
            .map(|ids| ids.mantissas().to_vec().into_iter().cycle().take(tokens).collect());
        let floats = [subject.float(device, Precision::F32)?, subject.float(device, Precision::Bf16)?];
        Ok(Self { exact: subject.exact(engine)?, floats, batch, context: context as usize, device })
    }

    /// Time of a step of each: exact, f32, bfloat16.
    pub(crate) fn step(&mut self, step: u32) -> Result<[Duration; 3]> {
        let (device, mut outcome) = (self.device, None);
        let exact = once(device, || outcome = Some(self.exact.step(step, Schedule::OneByOne)));
        outcome.transpose()?;
        let [ids, following] = &self.batch;
        let float = |training: &mut FloatTraining| {
            let mut outcome = None;
            let taken = once(device, || outcome = Some(training.step(ids, following, self.context, step)));
            outcome.transpose()?;
            Ok::<_, Box<dyn Error + Send + Sync>>(taken)
        };
        let [f32, bf16] = &mut self.floats;
        Ok([exact, float(f32)?, float(bf16)?])
    }

    /// The exact one alone.
    #[allow(dead_code, reason = "a bench that includes this file need not use all of it")]
    pub(crate) fn into_exact(self) -> LocalPipeline<E> {
        self.exact
    }
}
