//! Whole operators. The tests compare every element with the form in [`crate::element()`].

use tensorlink_types::Operator;

use crate::context::StepContext;
use crate::error::OpError;
use crate::operators::{CheckedOperator, Whole};
use crate::tensor::Tensor;

/// Computes an operator; `operands` in its order and of the types it names.
///
/// # Errors
/// A rule the operator breaks; [`OpError::OperandCount`]; [`OpError::OperandType`]; [`OpError::Memory`].
pub fn execute(operator: &Operator, operands: &[&Tensor], context: &StepContext) -> Result<Tensor, OpError> {
    let checked = CheckedOperator::new(operator)?;
    let values = checked.execute(&Whole::new(operator, operands, context)?)?;
    Ok(Tensor::from_wide(operator.output.clone(), &values)?)
}
