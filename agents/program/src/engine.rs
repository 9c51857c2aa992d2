//! What executes operators.

pub mod one_by_one;

pub use tensorlink_num::StepContext;
use tensorlink_num::{Tensor, TensorError};
use tensorlink_types::Operator;
use thiserror::Error;

use crate::fused::attention::FusedAttention;
use crate::fused::chain::Chain;

/// Why an engine could not execute an operator. An accepted program on well-typed tensors fails only with
/// [`EngineError::Device`].
#[derive(Debug, Error)]
pub enum EngineError {
    /// The operator breaks a rule that the program checker enforces, or its operands are not of the types it names.
    #[error("malformed operator: {0}")]
    Malformed(String),
    /// A tensor's data does not fit its type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The device or its library failed; try another device.
    #[error("device failure: {0}")]
    Device(String),
}

/// Executes operators exactly. Two engines given the same operator, operands and context return the same bits; this is
/// what the network stakes money on, so every implementation passes `tensorlink_program::conformance`.
pub trait Engine {
    /// A tensor on the engine's device. Cheap to clone.
    type Tensor: Clone;

    /// For logs: library, device, kernels chosen by the start-up self-test.
    fn describe(&self) -> String;

    /// Moves a tensor to the device.
    ///
    /// # Errors
    /// [`EngineError::Device`] when memory runs out.
    fn import(&self, tensor: &Tensor) -> Result<Self::Tensor, EngineError>;

    /// Moves a tensor to the host.
    ///
    /// # Errors
    /// [`EngineError::Device`] when the device fails.
    fn export(&self, tensor: &Self::Tensor) -> Result<Tensor, EngineError>;

    /// Computes one operator; `operands` in the operator's order and of the types it names.
    ///
    /// # Errors
    /// [`EngineError::Malformed`] if the operator or an operand breaks its rule.
    fn execute(
        &self,
        operator: &Operator,
        operands: &[&Self::Tensor],
        context: &StepContext,
    ) -> Result<Self::Tensor, EngineError>;

    /// Computes an attention from queries, keys, the table of powers and values: what its operators give one after
    /// another, which is what this does unless the engine knows better.
    ///
    /// # Errors
    /// As [`Self::execute`].
    fn attend(
        &self,
        attention: &FusedAttention<&Operator>,
        operands: [&Self::Tensor; 4],
        context: &StepContext,
    ) -> Result<Self::Tensor, EngineError> {
        one_by_one::attend(self, attention, operands, context)
    }

    /// Computes a chain of operators from what it takes from outside, and gives the outputs that are kept, in order:
    /// what its operators give one after another, which is what this does unless the engine knows better.
    ///
    /// # Errors
    /// As [`Self::execute`].
    fn chain(
        &self,
        chain: &Chain<&Operator>,
        operands: &[&Self::Tensor],
        context: &StepContext,
    ) -> Result<Vec<Self::Tensor>, EngineError> {
        one_by_one::chain(self, chain, operands, context)
    }
}

/// An engine that several executors share.
impl<E: Engine> Engine for &E {
    type Tensor = E::Tensor;

    fn describe(&self) -> String {
        (**self).describe()
    }

    fn import(&self, tensor: &Tensor) -> Result<Self::Tensor, EngineError> {
        (**self).import(tensor)
    }

    fn export(&self, tensor: &Self::Tensor) -> Result<Tensor, EngineError> {
        (**self).export(tensor)
    }

    fn execute(
        &self,
        operator: &Operator,
        operands: &[&Self::Tensor],
        context: &StepContext,
    ) -> Result<Self::Tensor, EngineError> {
        (**self).execute(operator, operands, context)
    }

    fn attend(
        &self,
        attention: &FusedAttention<&Operator>,
        operands: [&Self::Tensor; 4],
        context: &StepContext,
    ) -> Result<Self::Tensor, EngineError> {
        (**self).attend(attention, operands, context)
    }

    fn chain(
        &self,
        chain: &Chain<&Operator>,
        operands: &[&Self::Tensor],
        context: &StepContext,
    ) -> Result<Vec<Self::Tensor>, EngineError> {
        (**self).chain(chain, operands, context)
    }
}
