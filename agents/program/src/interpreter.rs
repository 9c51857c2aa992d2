//! The reference engine: the scalar arithmetic of `num`, one core, no device.

use std::sync::Arc;

use tensorlink_num::Tensor;
use tensorlink_types::Operator;

use crate::engine::{Engine, EngineError, StepContext};

/// Executes operators by the executable specification itself. Slow and right: what every other engine is measured by.
#[derive(Clone, Copy, Default, Debug)]
pub struct Reference;

impl Engine for Reference {
    type Tensor = Arc<Tensor>;

    fn describe(&self) -> String {
        "scalar reference".to_owned()
    }

    fn import(&self, tensor: &Tensor) -> Result<Self::Tensor, EngineError> {
        Ok(Arc::new(tensor.clone()))
    }

    fn export(&self, tensor: &Self::Tensor) -> Result<Tensor, EngineError> {
        Ok(Tensor::clone(tensor))
    }

    fn execute(
        &self,
        operator: &Operator,
        operands: &[&Self::Tensor],
        context: &StepContext,
    ) -> Result<Self::Tensor, EngineError> {
        let operands: Vec<&Tensor> = operands.iter().map(AsRef::as_ref).collect();
        tensorlink_num::execute(operator, &operands, context)
            .map(Arc::new)
            .map_err(|error| EngineError::Malformed(error.to_string()))
    }
}
