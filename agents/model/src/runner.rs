//! Runs a stage of a transformer on an engine, text after text.

use tensorlink_num::Tensor;
use tensorlink_program::engine::Engine;
use tensorlink_program::executor::{ExecuteError, StageExecutor};
use tensorlink_program::watch::{Trace, Watch};
use tensorlink_types::{JobKey, TensorType, TypeError};
use thiserror::Error;

use super::plan::{Plan, PlanError};

/// Why a text could not be computed.
#[derive(Debug, Error)]
pub enum RunError {
    /// There is no program for it.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The engine failed, or the input is not of the stage's type.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// Token numbers that make no tensor: none, or beyond 31 bits.
    #[error("{0} token numbers make no text")]
    Tokens(usize),
    /// The stage gave nothing, which no plan's program does.
    #[error("the stage has no output")]
    NoOutput,
}

/// A stage whose constants lie on an engine's device. Clones share them.
#[derive(Clone)]
pub struct StageRunner<E: Engine> {
    engine: E,
    plan: Plan,
    constants: Vec<E::Tensor>,
}

impl<E: Engine> StageRunner<E> {
    /// Moves the constants to the device.
    ///
    /// # Errors
    /// [`ExecuteError::Count`] or [`ExecuteError::Type`] for constants that are not the plan's,
    /// [`ExecuteError::Transfer`] if the device fails.
    pub fn new(engine: E, plan: Plan, constants: &[Tensor]) -> Result<Self, ExecuteError> {
        let slots = plan.constants().iter().map(|slot| (&slot.name, &slot.ty));
        let constants = tensorlink_program::executor::import(&engine, "constants", slots, constants)?;
        Ok(Self { engine, plan, constants })
    }

    /// Engine, plan and constants on the engine's device.
    pub(super) fn into_parts(self) -> (E, Plan, Vec<E::Tensor>) {
        (self.engine, self.plan, self.constants)
    }

    /// The plan.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Computes a text: token numbers ([`tokens`]) on the first stage, what the previous stage gave on the others.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run(&self, input: &Tensor) -> Result<Tensor, RunError> {
        self.executor(input, None)?.forward(0, Some(input))?.ok_or(RunError::NoOutput)
    }

    /// As [`Self::run`], on a stage that chooses tokens, by controls of each ([`controls`](super::choice::controls)).
    ///
    /// # Errors
    /// [`RunError`].
    pub fn choose(&self, input: &Tensor, controls: &Tensor) -> Result<Tensor, RunError> {
        self.executor(input, None)?.forward_between(0, Some(input), Some(controls))?.ok_or(RunError::NoOutput)
    }

    /// Computes a text and keeps the output of every operator, for an audit.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn trace(&self, input: &Tensor) -> Result<Vec<Tensor>, RunError> {
        self.trace_choice(input, None)
    }

    /// As [`Self::trace`], on a stage that chooses tokens if there are controls.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn trace_choice(&self, input: &Tensor, controls: Option<&Tensor>) -> Result<Vec<Tensor>, RunError> {
        let trace = Trace::default();
        let mut executor = self.executor(input, Some(trace.watch()))?;
        executor.forward_between(0, Some(input), controls)?;
        executor.finish_pass()?;
        Ok(trace.take())
    }

    /// An executor at the beginning of the pass over a text.
    fn executor(&self, input: &Tensor, watch: Option<Watch>) -> Result<StageExecutor<&E>, RunError> {
        let tokens = input.ty().dims().first().copied().unwrap_or_default();
        let program = self.plan.program(tokens)?;
        let key = JobKey::default();
        let mut executor = StageExecutor::on_device(&self.engine, program, self.constants.clone(), vec![], key, [])?;
        executor.watch(watch);
        // As an audit repeats it: the step of a text is its length (rule C-13).
        executor.begin_step(tokens)?;
        Ok(executor)
    }
}

/// Token numbers as the first stage takes them.
///
/// # Errors
/// [`RunError::Tokens`].
pub fn tokens(ids: &[u32]) -> Result<Tensor, RunError> {
    let refused = || RunError::Tokens(ids.len());
    let count = u32::try_from(ids.len()).map_err(|_| refused())?;
    let ty: Result<TensorType, TypeError> = TensorType::new(32, 0, &[count]);
    let ids: Vec<i64> = ids.iter().map(|id| i64::from(*id)).collect();
    Tensor::from_wide(ty.map_err(|_| refused())?, &ids).map_err(|_| refused())
}
