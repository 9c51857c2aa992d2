//! What is trained, and how far it is: files by content.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_num::StepContext;
use tensorlink_training::calibrate::{float_data, job_key};
use tensorlink_training::step::StepGraph;
use tensorlink_training::step::float::FloatData;
use tensorlink_training::{Training, TrainingSet};
use tensorlink_types::JobKey;
use thiserror::Error;

/// Largest file of a task, bytes.
pub const MAX_TASK: u64 = 8 << 30;
/// Largest file of a state, bytes.
pub const MAX_STATE: u64 = 16 << 30;

/// State tensors by name, row-major.
pub type State = BTreeMap<String, Vec<f32>>;

/// Why a file is no task, or no state of it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TaskError {
    /// Not such a file.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Tensors of another task.
    #[error("the state has {actual} tensors, the task has {expected}: it belongs to another task")]
    Tensors {
        /// What the task has.
        expected: usize,
        /// What there are.
        actual: usize,
    },
    /// A tensor is missing, or of another size.
    #[error("the state has no {name} of {elements} elements: it belongs to another task")]
    Tensor {
        /// Its name.
        name: String,
        /// Its size.
        elements: usize,
    },
    /// A value is infinite or not a number.
    #[error(
        "{0} holds a value that is not finite: the training diverged, or its worker is broken; lower the learning rate"
    )]
    NotFinite(String),
}

/// What is trained: the graph of a step, its data, and the key that rows and dropout are drawn by.
#[derive(Clone, Debug)]
pub struct Task {
    /// A step.
    pub graph: StepGraph,
    /// The data set.
    pub data: FloatData,
    /// Keys every draw.
    pub key: JobKey,
}

#[derive(Serialize)]
struct Written<'a> {
    graph: &'a StepGraph,
    features: Vec<f32>,
    labels: Vec<f32>,
    key: JobKey,
}

#[derive(Deserialize)]
struct Read {
    graph: StepGraph,
    features: Vec<f32>,
    labels: Vec<f32>,
    key: JobKey,
}

impl Task {
    /// What is trained on these rows, with the draws of this seed; and the state that it begins in.
    pub fn begin(training: &Training, rows: &TrainingSet, seed: u64) -> (Self, State) {
        let narrow = |(name, values): (&String, &Vec<f64>)| (name.clone(), values.iter().map(|x| *x as f32).collect());
        let (graph, data, key) = (training.graph.clone(), float_data(rows), job_key(seed));
        (Self { graph, data, key }, training.state.iter().map(narrow).collect())
    }

    /// The file. Data are rounded to 32 bits, in which they are computed with.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn to_bytes(&self) -> Result<Bytes, Malformed> {
        let narrow = |values: &[f64]| values.iter().map(|x| *x as f32).collect();
        let Self { graph, data, key } = self;
        let (features, labels) = (narrow(&data.features), narrow(&data.labels));
        encode("task", &Written { graph, features, labels, key: *key })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`TaskError::Malformed`], also for a graph that no interpreter could take.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TaskError> {
        let Read { graph, features, labels, key } = decode("task", bytes)?;
        let wide = |values: Vec<f32>| values.into_iter().map(f64::from).collect();
        Ok(Self { graph, data: FloatData { features: wide(features), labels: wide(labels) }, key })
    }

    /// What keys the draws of a step.
    pub const fn context(&self, step: u32) -> StepContext {
        StepContext { job_key: self.key, step }
    }

    /// Whether this is a state of the task: each of its tensors, finite, and no other.
    ///
    /// # Errors
    /// [`TaskError`] that names the tensor.
    pub fn check(&self, state: &State) -> Result<(), TaskError> {
        let (expected, actual) = (self.graph.state.len(), state.len());
        if expected != actual {
            return Err(TaskError::Tensors { expected, actual });
        }
        for tensor in &self.graph.state {
            let node = self.graph.node(tensor.current);
            let (name, elements) = (node.site.clone(), node.elements());
            match state.get(&name) {
                Some(values) if values.len() == elements => {
                    if !values.iter().all(|x| x.is_finite()) {
                        return Err(TaskError::NotFinite(name));
                    }
                }
                _ => return Err(TaskError::Tensor { name, elements }),
            }
        }
        Ok(())
    }

    /// Reads the file of a state, and checks it.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn state(&self, bytes: &[u8]) -> Result<State, TaskError> {
        let state = decode("state", bytes)?;
        self.check(&state)?;
        Ok(state)
    }
}

/// The file of a state: the same bytes for the same numbers.
///
/// # Errors
/// [`Malformed`].
pub fn state_bytes(state: &State) -> Result<Bytes, Malformed> {
    encode("state", state)
}
