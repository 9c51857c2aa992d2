//! What several tests need.

use std::io::Read;
use std::ops::Range;

use tensorlink_num::Tensor;
use tensorlink_program::{CheckedProgram, Reference};
use tensorlink_training::calibrate::{calibrate, float_state, job_key};
use tensorlink_training::compile::CompiledStage;
use tensorlink_training::model::LayerWeights;
use tensorlink_training::{
    Dataset, Exponents, LocalPipeline, Margins, Metrics, Model, Network, Schedule, Stage, StageInfo, Table, compile,
    evaluate, init,
};
use tensorlink_types::TensorRoot;

/// The digits data set of the examples.
pub(crate) fn digits() -> Table {
    let packed = include_bytes!("../../../../examples/digits.csv.gz");
    let mut csv = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut csv).unwrap();
    Table::parse(&csv).unwrap()
}

/// A model of the given layers, e.g. `"linear 128, relu"`.
pub(crate) fn model(layers: &str, bits: u8, batch: u32, micro_batches: u32) -> Model {
    scheduled(layers, bits, (batch, micro_batches), None)
}

/// The same with a learning rate that is not the same in every step.
pub(crate) fn scheduled(layers: &str, bits: u8, (batch, micro_batches): (u32, u32), warmup: Option<u32>) -> Model {
    let layer = |text: &str| match text.trim().split_once(' ') {
        Some((kind, out)) => format!(r#"{{"kind": "{kind}", "out": {out}}}"#),
        None => format!(r#"{{"kind": "{}"}}"#, text.trim()),
    };
    let layers: Vec<_> = layers.split(',').filter(|text| !text.trim().is_empty()).map(layer).collect();
    let warmup = warmup.map(|warmup| format!(r#", "warmup": {warmup}"#)).unwrap_or_default();
    let json = format!(
        r#"{{"name": "test", "layers": [{}], "optimizer": {{"learning_rate": 0.05, "momentum": 0.9{warmup}}},
            "batch_size": {batch}, "micro_batches": {micro_batches}, "steps": 10, "operand_bits": {bits}, "seed": 7}}"#,
        layers.join(",")
    );
    Model::parse("test.json", json.as_bytes()).unwrap()
}

/// A model ready to be compiled.
pub(crate) struct Prepared {
    pub(crate) network: Network,
    pub(crate) weights: Vec<LayerWeights>,
    pub(crate) exponents: Exponents,
    pub(crate) dataset: Dataset,
}

impl Prepared {
    pub(crate) fn new(model: &Model, table: &Table, calibration_steps: u32) -> Self {
        let dataset = table.split(model.operand_bits(), model.seed()).unwrap();
        let network = model.network(table.width as u32, dataset.classes.len() as u32).unwrap();
        let weights = init::gaussian(&network, model.seed());
        let margins = Margins::for_operands(model.operand_bits());
        let calibration =
            calibrate(&network, &weights, &dataset.training, calibration_steps, model.seed(), margins).unwrap();
        Self { network, weights, exponents: calibration.exponents, dataset }
    }

    pub(crate) fn compile(&self, stages: &[Range<usize>]) -> Job {
        let commit = |_: &Tensor| TensorRoot::default();
        let stages = compile(&self.network, &self.exponents, &self.dataset.training, stages, commit).unwrap();
        let set_up = |stage: CompiledStage| {
            let state = init::state(&stage.program, &float_state(&self.weights)).unwrap();
            (CheckedProgram::new(stage.program).unwrap(), stage.info, stage.constants, state)
        };
        Job { stages: stages.into_iter().map(set_up).collect() }
    }
}

/// Compiled stages with their state.
pub(crate) struct Job {
    pub(crate) stages: Vec<(CheckedProgram, StageInfo, Vec<Tensor>, Vec<Tensor>)>,
}

impl Job {
    pub(crate) fn borrowed(&self) -> Vec<Stage<'_>> {
        let stage = |(program, info, constants, state)| Stage { program, info, constants, state };
        self.stages.iter().map(|(p, i, c, s)| stage((p, i, c.as_slice(), s.as_slice()))).collect()
    }

    pub(crate) fn pipeline(&self) -> LocalPipeline<Reference> {
        LocalPipeline::new(&self.borrowed(), job_key(99), || Reference).unwrap()
    }

    /// Trains and keeps the state; returns each step's metrics.
    pub(crate) fn train(&mut self, steps: u32, schedule: Schedule) -> Vec<Metrics> {
        let mut pipeline = self.pipeline();
        let metrics = (0..steps).map(|step| pipeline.step(step, schedule).unwrap()).collect();
        for (stage, state) in self.stages.iter_mut().zip(pipeline.state().unwrap()) {
            stage.3 = state;
        }
        metrics
    }

    pub(crate) fn evaluate(&self, rows: &tensorlink_training::TrainingSet) -> Metrics {
        evaluate(&Reference, &self.borrowed(), rows).unwrap()
    }

    /// State of all stages, in the order of the layers.
    pub(crate) fn state(&self) -> Vec<Tensor> {
        self.stages.iter().flat_map(|stage| stage.3.clone()).collect()
    }
}
