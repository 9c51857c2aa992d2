//! Finds exponents: trains the step graph in floats for some steps on the user's data and records the largest magnitude
//! of every tensor. The result is static; see [`crate::exponents`] for the margins above it.

use std::collections::BTreeMap;

use tensorlink_num::StepContext;
use tensorlink_types::{B256, JobKey};
use thiserror::Error;

use crate::compile::TrainingSet;
use crate::exponents::{Exponents, Margins};
use crate::model::{LayerWeights, Linear, Network};
use crate::step::float::{FloatData, FloatState, Values};
use crate::step::{Precision, Slot, StepGraph};

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
    /// No steps asked for.
    #[error("calibration needs at least one step")]
    NoSteps,
}

/// Calibrates a network from its initial weights on its training set. `seed` draws the rows; it need not be the job's key,
/// which is not known before the job starts.
///
/// # Errors
/// [`CalibrateError::Diverged`] or [`CalibrateError::NoSteps`].
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
    let data = FloatData { features: training.features.to_f64(), labels: training.labels.to_f64() };
    calibrate_graph(&graph, &data, float_state(weights), steps, seed, margins)
}

/// Calibrates a step graph from a state.
///
/// # Errors
/// As [`calibrate`].
pub fn calibrate_graph(
    graph: &StepGraph,
    data: &FloatData,
    mut state: FloatState,
    steps: u32,
    seed: u64,
    margins: Margins,
) -> Result<Calibration, CalibrateError> {
    let mut largest = BTreeMap::new();
    let mut losses = Vec::new();
    for step in 0..steps {
        let values = Values::compute(graph, data, &state, &StepContext { job_key: job_key(seed), step });
        for (id, node) in graph.nodes().filter(|(_, n)| {
            matches!(n.precision, Precision::Calibrated { .. } | Precision::Even { .. } | Precision::At { .. })
        }) {
            let magnitude =
                values.get(id).iter().fold(0.0, |max: f64, x| if x.is_nan() { *x } else { max.max(x.abs()) });
            if magnitude.is_nan() || magnitude > libm::exp2(40.0) {
                return Err(CalibrateError::Diverged { step, site: node.site.clone() });
            }
            let seen = largest.entry(node.site.clone()).or_insert(0.0f64);
            *seen = seen.max(magnitude);
        }
        losses.push(values.loss());
        state = values.next_state();
    }
    let first_loss = *losses.first().ok_or(CalibrateError::NoSteps)?;
    let tail = losses.len().div_ceil(10);
    let last_loss = losses.iter().rev().take(tail).sum::<f64>() / tail as f64;
    Ok(Calibration { exponents: Exponents { margins, largest }, first_loss, last_loss })
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
