//! An operator, checked again: an engine is handed programs that the checker accepted, and no accumulator of its own
//! may leave `i64`.

use tensorlink_num::CheckedOperator;
use tensorlink_program::EngineError;
use tensorlink_types::Operator;

/// Checks and decodes an operator.
///
/// # Errors
/// [`EngineError::Malformed`] with the rule that is broken.
pub(crate) fn decode(operator: &Operator) -> Result<CheckedOperator, EngineError> {
    CheckedOperator::new(operator).map_err(|error| EngineError::Malformed(error.to_string()))
}
