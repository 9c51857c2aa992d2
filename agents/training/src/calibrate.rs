//! Finds exponents: trains the step graph in floats for some steps on the user's data and records the largest magnitude
//! of every tensor. The result is static; see [`crate::exponents`] for the margins above it.
//!
//! Who computes the floats is a [`Trial`]: here the plain [`Interpreted`] one in 64 bits, elsewhere a library that
//! is faster.

use std::collections::BTreeMap;

use tensorlink_num::StepContext;
use tensorlink_types::{B256, JobKey};
use thiserror::Error;

use crate::compile::TrainingSet;
use crate::exponents::{Exponents, Margins};
use crate::model::{LayerWeights, Linear, Network};
use crate::step::float::{FloatData, FloatState, Values};
use crate::step::{Node, NodeId, Precision, Slot, StepGraph};

/// Fewest steps of calibration: a moment is seen where it is read, from the second step on.
pub const LEAST_STEPS: u32 = 2;
/// Largest magnitude of a training that goes well.
const MOST: f64 = (1u64 << 40) as f64;

/// What calibration found.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// The exponents' source.
    pub exponents: Exponents,
    /// Loss of the first step.
    pub first_loss: f64,
    /// Mean loss of the last tenth of the steps.
    pub last_loss: f64,
}

/// Why a network could not be calibrated.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum CalibrateError {
    /// Training in floats left the finite numbers.
    #[error("training diverges at step {step} (in {site}); lower the learning rate")]
    Diverged {
        /// The step.
        step: u32,
        /// First tensor that is not finite or beyond 2^40.
        site: String,
    },
    /// Too few steps asked for.
    #[error("calibration of {0} steps: it needs at least {LEAST_STEPS}, as moments are seen from the second on")]
    TooFewSteps(u32),
    /// The device that computes the floats failed; try another.
    #[error("calibration: device failure: {0}")]
    Device(String),
}

/// A step of a float run, as calibration sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct Taken {
    /// Largest magnitude of each of the graph's [`observed`] nodes, in their order; not a number if one of the elements
    /// is none.
    pub largest: Vec<f64>,
    /// Mean cross entropy of the step's rows, in nats.
    pub loss: f64,
}

/// A float run of a step graph.
pub trait Trial {
    /// Takes a step: its state is that after it from then on.
    ///
    /// # Errors
    /// [`CalibrateError::Device`].
    fn step(&mut self, context: &StepContext) -> Result<Taken, CalibrateError>;
}

/// The nodes whose magnitudes exponents are made from.
pub fn observed(graph: &StepGraph) -> impl Iterator<Item = (NodeId, &Node)> {
    graph.nodes().filter(|(_, node)| {
        matches!(node.precision, Precision::Calibrated { .. } | Precision::Even { .. } | Precision::At { .. })
    })
}

/// A run by the float interpretation of [`crate::step::float`]: the reference of every other.
#[derive(Clone, Debug)]
pub struct Interpreted<'a> {
    graph: &'a StepGraph,
    data: FloatData,
    state: FloatState,
}

impl<'a> Interpreted<'a> {
    /// A run that begins at a state.
    pub const fn new(graph: &'a StepGraph, data: FloatData, state: FloatState) -> Self {
        Self { graph, data, state }
    }
}

impl Trial for Interpreted<'_> {
    fn step(&mut self, context: &StepContext) -> Result<Taken, CalibrateError> {
        let values = Values::compute(self.graph, &self.data, &self.state, context);
        let magnitude = |id| values.get(id).iter().fold(0.0, |max, x| larger(max, x.abs()));
        let largest = observed(self.graph).map(|(id, _)| magnitude(id)).collect();
        let (loss, state) = (values.loss(), values.next_state());
        self.state = state;
        Ok(Taken { largest, loss })
    }
}

/// The larger one; not a number where either is none, which [`f64::max`] would forget.
const fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Calibrates a network from its initial weights on its training set. `seed` draws the rows; it need not be the job's
/// key, which is not known before the job starts.
///
/// # Errors
/// [`CalibrateError::Diverged`] or [`CalibrateError::TooFewSteps`].
pub fn calibrate(
    network: &Network,
    weights: &[LayerWeights],
    training: &TrainingSet,
    steps: u32,
    seed: u64,
    margins: Margins,
) -> Result<Calibration, CalibrateError> {
    // Exponents do not depend on how a batch is cut, so that results do not either.
    let network = Network { micro_batches: 1, ..network.clone() };
    let rows = training.features.ty().dims().first().copied().unwrap_or_default();
    let graph = StepGraph::training(&network, rows);
    let mut trial = Interpreted::new(&graph, float_data(training), float_state(weights));
    calibrate_trial(&graph, &mut trial, steps, seed, margins)
}

/// Calibrates a step graph by a float run of it.
///
/// # Errors
/// [`CalibrateError`].
pub fn calibrate_trial(
    graph: &StepGraph,
    trial: &mut impl Trial,
    steps: u32,
    seed: u64,
    margins: Margins,
) -> Result<Calibration, CalibrateError> {
    if steps < LEAST_STEPS {
        return Err(CalibrateError::TooFewSteps(steps));
    }
    let mut largest = BTreeMap::new();
    let mut losses = Vec::new();
    for step in 0..steps {
        let taken = trial.step(&StepContext { job_key: job_key(seed), step })?;
        for ((_, node), magnitude) in observed(graph).zip(taken.largest) {
            if magnitude.is_nan() || magnitude > MOST {
                return Err(CalibrateError::Diverged { step, site: node.site.clone() });
            }
            let seen = largest.entry(node.site.clone()).or_insert(0.0f64);
            *seen = seen.max(magnitude);
        }
        losses.push(taken.loss);
    }
    let first_loss = *losses.first().ok_or(CalibrateError::TooFewSteps(steps))?;
    let tail = losses.len().div_ceil(10);
    let last_loss = losses.iter().rev().take(tail).sum::<f64>() / tail as f64;
    Ok(Calibration { exponents: Exponents { margins, largest }, first_loss, last_loss })
}

/// A training set in floats.
pub fn float_data(training: &TrainingSet) -> FloatData {
    FloatData { features: training.features.to_f64(), labels: training.labels.to_f64() }
}

/// Weights as the float interpretation's state, velocities zero.
pub fn float_state(weights: &[LayerWeights]) -> FloatState {
    let slots = |(l, layer): (usize, &LayerWeights)| {
        let (weight, bias) = (layer.weight.clone(), layer.bias.clone());
        let zeros = [vec![0.0; weight.len()], vec![0.0; bias.len()]];
        Slot::ALL
            .into_iter()
            .zip([weight, bias].into_iter().chain(zeros))
            .map(move |(slot, values)| (Linear::site(l, slot.name()), values))
    };
    weights.iter().enumerate().flat_map(slots).collect()
}

/// A job key made of a seed, for runs outside the network.
pub fn job_key(seed: u64) -> JobKey {
    let mut bytes = [0; 32];
    for (byte, seed) in bytes.iter_mut().zip(seed.to_le_bytes()) {
        *byte = seed;
    }
    JobKey(B256::from(bytes))
}
