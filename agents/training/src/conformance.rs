//! Small trainings on an [`Engine`], held against the [`Reference`] bit for bit.

use tensorlink_num::{Tensor, TensorError};
use tensorlink_program::conformance::same;
use tensorlink_program::{CheckedProgram, Engine, ExecuteError, ProgramError, Reference, Trace, conformance};
use tensorlink_types::{TensorRoot, TensorType, TypeError};
use thiserror::Error;

use crate::calibrate::{CalibrateError, calibrate, float_state, job_key};
use crate::compile::{CompileError, CompiledStage, TrainingSet, compile};
use crate::exponents::Margins;
use crate::init::{self, InitError};
use crate::local::{LocalPipeline, Schedule, Stage};
use crate::model::{Activation, Linear, Network, Optimizer};
use crate::whole::StageInfo;

/// How an engine failed; all but the first two are defects of this suite.
#[derive(Debug, Error)]
pub enum Failure {
    /// It gave other bits than the reference.
    #[error(transparent)]
    Different(#[from] conformance::Failure),
    /// It failed.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// A type.
    #[error("setting up: {0}")]
    Type(#[from] TypeError),
    /// A tensor.
    #[error("setting up: {0}")]
    Tensor(#[from] TensorError),
    /// Calibration.
    #[error("setting up: {0}")]
    Calibrate(#[from] CalibrateError),
    /// Compilation.
    #[error("setting up: {0}")]
    Compile(#[from] CompileError),
    /// The compiled program.
    #[error("setting up: {0}")]
    Program(#[from] ProgramError),
    /// Initial state.
    #[error("setting up: {0}")]
    Init(#[from] InitError),
}

/// Trains small networks for some steps on the engine and the reference, traced; every operator output and the state
/// must agree.
///
/// # Errors
/// The first [`Failure`].
pub fn training<E: Engine>(engine: impl Fn() -> E) -> Result<(), Failure> {
    for (bits, activation, warmup) in [
        (8, Activation::Relu, None),
        (16, Activation::Relu, Some(1)),
        (8, Activation::Gelu, Some(0)),
        (16, Activation::Gelu, None),
    ] {
        let optimizer = Optimizer { learning_rate: 0.1, momentum: 0.9, warmup };
        let network = Network {
            layers: vec![
                Linear { input: 11, output: 17, activation: Some(activation) },
                Linear { input: 17, output: 5, activation: None },
            ],
            optimizer,
            rates: optimizer.rates(3),
            batch_size: 24,
            micro_batches: 2,
            operand_bits: bits,
        };
        let stages = set_up(&network)?;
        let stages: Vec<Stage<'_>> =
            stages.iter().map(|s| Stage { program: &s.0, info: &s.1, constants: &s.2, state: &s.3 }).collect();
        let mut ours = LocalPipeline::new(&stages, job_key(1), &engine)?;
        let mut reference = LocalPipeline::new(&stages, job_key(1), || Reference)?;
        let traces: Vec<(Trace, Trace)> = ours.trace().into_iter().zip(reference.trace()).collect();
        for step in 0..3 {
            ours.step(step, Schedule::OneByOne)?;
            reference.step(step, Schedule::OneByOne)?;
            for ((ours, reference), stage) in traces.iter().zip(&stages) {
                let outputs = ours.take().into_iter().zip(reference.take());
                for (name, (actual, expected)) in stage.program.names.iter().zip(outputs) {
                    same(&format!("step {step}, {name}"), &expected, &actual)?;
                }
            }
        }
        for (expected, actual) in reference.state()?.iter().flatten().zip(ours.state()?.iter().flatten()) {
            same("state after three steps", expected, actual)?;
        }
    }
    Ok(())
}

type Prepared = (CheckedProgram, StageInfo, Vec<Tensor>, Vec<Tensor>);

fn set_up(network: &Network) -> Result<Vec<Prepared>, Failure> {
    let rows = 40u32;
    let (width, classes) = (network.features(), i64::from(network.classes()));
    let bits = network.operand_bits;
    let exponent = i16::from(bits).saturating_sub(3);
    let features = TensorType::new(bits, exponent, &[rows, width])?;
    let limit = features.limit();
    let values: Vec<i64> = (0..i64::from(rows * width)).map(|i| (i * 7919) % (2 * limit + 1) - limit).collect();
    let labels: Vec<i64> = (0..i64::from(rows)).map(|i| (i * 13) % classes).collect();
    let training = TrainingSet {
        features: Tensor::from_wide(features, &values)?,
        labels: Tensor::from_wide(TensorType::new(16, 0, &[rows])?, &labels)?,
    };
    let weights = init::gaussian(network, 5);
    let exponents = calibrate(network, &weights, &training, 10, 3, Margins::for_operands(bits))?.exponents;
    let stages = compile(network, &exponents, &training, &[0..1, 1..2], |_| TensorRoot::default())?;
    let one = |stage: CompiledStage| {
        let state = init::state(&stage.program, &float_state(&weights))?;
        Ok((CheckedProgram::new(stage.program)?, stage.info, stage.constants, state))
    };
    stages.into_iter().map(one).collect()
}
