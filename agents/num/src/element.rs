//! One output element, from only the elements it reads; [`crate::execute()`] is measured against it.

use tensorlink_types::Operator;

use crate::context::StepContext;
use crate::error::OpError;
use crate::operators::{CheckedOperator, Read, Site};
use crate::tensor::Tensor;

/// An accessor for [`element`] and [`reads`] over whole tensors.
pub fn accessor<'a>(operands: &'a [&'a Tensor]) -> impl Fn(usize, u64) -> Option<i64> + 'a {
    move |operand, index| operands.get(operand)?.get(index)
}

/// The mantissa of output element `index` (row-major). `get(operand, element)` gives an operand's mantissa, or none
/// where it was not opened; only the elements named by [`reads`] are asked for.
///
/// # Errors
/// A rule the operator breaks; [`OpError::NoSuchElement`]; [`OpError::Missing`] where `get` gives none;
/// [`OpError::Range`] where it gives a mantissa beyond its type.
pub fn element(
    operator: &Operator,
    get: impl Fn(usize, u64) -> Option<i64>,
    index: u64,
    context: &StepContext,
) -> Result<i64, OpError> {
    CheckedOperator::new(operator)?.element(&Site::new(operator, &get, index, context)?)
}

/// The elements that output element `index` is computed from, ordered by operand and element. An operand is named as
/// often as there are separate runs of it: twice by Rope, not at all where nothing of it enters (rule N-8). Where they
/// depend on data (Lookup, ExpNeg, Gather, RowPick, Perturb), `get` is asked for the data that decides, never for
/// table entries.
///
/// # Errors
/// As [`element`].
pub fn reads(
    operator: &Operator,
    get: impl Fn(usize, u64) -> Option<i64>,
    index: u64,
    context: &StepContext,
) -> Result<Vec<Read>, OpError> {
    CheckedOperator::new(operator)?.reads(&Site::new(operator, &get, index, context)?)
}
