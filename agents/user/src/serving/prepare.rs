//! From a model in integers to the stages of a serving job. No network, no chain.

use std::ops::Range;

use tensorlink_model::plan::Head;
use tensorlink_model::{Plan, PlanError, Quantized};
use tensorlink_node::footprint::Footprint;
use tensorlink_node::price::multiply_adds;
use tensorlink_node::serving::programs_root;
use tensorlink_node::shard::ShardError;
use tensorlink_num::Tensor;
use tensorlink_proof::commit::tensor_root;
use tensorlink_types::{B256, Program};
use thiserror::Error;

use super::boundaries::{Boundaries, BoundaryError};

/// Why a model cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A stage has no program.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A stage is too large to be registered.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The stages are not the whole model, in order.
    #[error(transparent)]
    Boundaries(#[from] BoundaryError),
}

/// A stage of a serving job.
#[derive(Clone, Debug)]
pub struct ServingStage {
    /// What its programs share.
    pub plan: Plan,
    /// Constants in the plan's order.
    pub constants: Vec<Tensor>,
    /// List root of its programs by length (rule C-13).
    pub programs: B256,
    /// The program for the longest text, by which it is priced.
    pub longest: Program,
}

/// A serving job ready to be published.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// First to last.
    pub stages: Vec<ServingStage>,
    /// Most tokens of a text.
    pub longest: u32,
}

impl ServingStage {
    /// Memory that a worker of it must lend, bytes, for texts of up to `longest` tokens.
    ///
    /// # Errors
    /// [`PlanError`] if the plan gives no such program.
    pub fn memory(&self, longest: u32) -> Result<u64, PlanError> {
        Ok(Footprint::serving(&self.plan, longest)?.alone())
    }
}

impl Prepared {
    /// Cuts a model into stages of these layers, for texts of up to `longest` tokens. Where the model gives logits, the
    /// last stage chooses tokens by them, as the user's controls say. Hashes every program of every length: blocks.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn new(model: &Quantized, ranges: &[Range<u32>], longest: u32) -> Result<Self, ServeError> {
        let head = Head::served(model.architecture().output);
        let mut stages = Vec::new();
        for range in ranges {
            let (plan, constants) = model.stage_with(range.clone(), head, tensor_root)?;
            let programs = programs_root(&plan, longest)?;
            let program = plan.program(longest)?;
            stages.push(ServingStage { longest: Program::clone(&program), plan, constants, programs });
        }
        let plans: Vec<Plan> = stages.iter().map(|stage| stage.plan.clone()).collect();
        Boundaries::new(&plans)?;
        Ok(Self { stages, longest })
    }

    /// Multiply-adds of the longest text, over all stages.
    pub fn multiply_adds(&self) -> u128 {
        self.stages.iter().map(|stage| multiply_adds(&stage.longest)).sum()
    }
}
