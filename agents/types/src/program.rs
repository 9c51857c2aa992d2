//! The step function of one pipeline stage.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::ids::TensorRoot;
use crate::operator::Operator;
use crate::tensor_type::TensorType;

/// A tensor that outlives a step: weights, optimiser moments.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StateSlot {
    /// Name in the model, e.g. `fc1.weight`; for people, not committed.
    pub name: String,
    /// Its type, the same before and after the step.
    pub ty: TensorType,
    /// The operator whose output is this tensor after the step.
    pub producer: u32,
}

/// A tensor fixed for the life of the job: a table or a data set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ConstantSlot {
    /// Name for people, e.g. `gelu` or `features`; not committed.
    pub name: String,
    /// Its type.
    pub ty: TensorType,
    /// Its commitment.
    pub root: TensorRoot,
}

/// A run of consecutive operators that becomes executable at once; the unit of pipeline scheduling.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// What a step needs once, from state and constants only: weights cast to operand width. Comes first.
    Prepare {
        /// Operators.
        operators: Range<u32>,
    },
    /// Forward pass of a micro-batch.
    Forward {
        /// Micro-batch, from 0.
        micro_batch: u32,
        /// Operators.
        operators: Range<u32>,
    },
    /// Backward pass of a micro-batch.
    Backward {
        /// Micro-batch, from 0.
        micro_batch: u32,
        /// Operators.
        operators: Range<u32>,
    },
    /// Gradient sums and the optimiser, after every micro-batch.
    Update {
        /// Operators.
        operators: Range<u32>,
    },
}

impl Segment {
    /// The operators it covers.
    pub const fn operators(&self) -> &Range<u32> {
        match self {
            Self::Prepare { operators }
            | Self::Forward { operators, .. }
            | Self::Backward { operators, .. }
            | Self::Update { operators } => operators,
        }
    }
}

/// The step function of one pipeline stage: operators in execution order, and how they are wired to the world.
///
/// A program is *accepted* by the network when `tensorlink_program::check` passes; nothing else may be executed,
/// staked on or committed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Program {
    /// Operators; operand `Output(i)` of operator `j` has `i < j`.
    pub operators: Vec<Operator>,
    /// Constants, in registered order.
    pub constants: Vec<ConstantSlot>,
    /// State tensors, in registered order.
    pub state: Vec<StateSlot>,
    /// Micro-batches of a step.
    pub micro_batches: u32,
    /// For each micro-batch, the operator whose output goes to the next stage; empty for the last stage.
    pub to_next: Vec<u32>,
    /// For each micro-batch, the operator whose output goes to the previous stage; empty for the first stage.
    pub to_previous: Vec<u32>,
    /// For each micro-batch, the type of what the previous stage sends; empty if there is none.
    pub from_previous: Vec<TensorType>,
    /// For each micro-batch, the type of what the next stage sends; empty if there is none.
    pub from_next: Vec<TensorType>,
    /// The schedule's units, covering every operator once, in order.
    pub segments: Vec<Segment>,
    /// For people: a name per operator, e.g. `fc1.matmul[mb 0]`; not committed. As long as `operators`.
    pub names: Vec<String>,
}
