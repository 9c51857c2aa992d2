//! The suites pass the reference and catch engines that are wrong in one element.

use std::cell::Cell;
use std::sync::Arc;

use tensorlink_num::Tensor;
use tensorlink_program::conformance::{Failure, operators};
use tensorlink_program::{Engine, EngineError, Reference, StepContext};
use tensorlink_training::conformance::{self, training};
use tensorlink_types::{Opcode, Operator};

#[test]
fn reference_passes() {
    operators(&Reference, 24).unwrap();
    training(|| Reference).unwrap();
}

/// The reference, except that the last element of every tenth result of one opcode is off by one.
struct Wrong {
    opcode: Opcode,
    count: Cell<u32>,
}

impl Engine for Wrong {
    type Tensor = Arc<Tensor>;

    fn describe(&self) -> String {
        "wrong".into()
    }

    fn import(&self, tensor: &Tensor) -> Result<Self::Tensor, EngineError> {
        Reference.import(tensor)
    }

    fn export(&self, tensor: &Self::Tensor) -> Result<Tensor, EngineError> {
        Reference.export(tensor)
    }

    fn execute(
        &self,
        operator: &Operator,
        operands: &[&Self::Tensor],
        context: &StepContext,
    ) -> Result<Self::Tensor, EngineError> {
        let right = Reference.execute(operator, operands, context)?;
        self.count.set(self.count.get() + u32::from(operator.opcode == self.opcode));
        if operator.opcode != self.opcode || !self.count.get().is_multiple_of(10) {
            return Ok(right);
        }
        let mut values = right.mantissas().to_vec();
        let last = values.last_mut().unwrap();
        *last -= last.signum() | 1;
        Ok(Arc::new(Tensor::from_wide(right.ty().clone(), &values)?))
    }
}

#[test]
fn one_wrong_element_is_found() {
    for &opcode in Opcode::ALL {
        let engine = Wrong { opcode, count: Cell::new(0) };
        assert!(matches!(operators(&engine, 24), Err(Failure::Different { .. })), "{opcode:?}");
    }
    let wrong = || Wrong { opcode: Opcode::RowSum, count: Cell::new(5) };
    let failure = training(wrong).unwrap_err();
    let conformance::Failure::Different(Failure::Different { what, .. }) = &failure else { panic!("{failure}") };
    assert!(what.starts_with("step "), "{failure}");
}
