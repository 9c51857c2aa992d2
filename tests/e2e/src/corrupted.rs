//! An engine that computes like any other, except for one element of one kind of operator.

use std::ops::Range;

use tensorlink_graph::transformer::decode::{CacheEngine, Layout};
use tensorlink_graph::{Engine, EngineError, StepContext};
use tensorlink_num::{Tensor, TensorError};
use tensorlink_types::{Opcode, Operator};

/// Where to lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lie {
    /// Absolute step, or number of tokens of a text; every one if there is none.
    pub step: Option<u32>,
    /// Every operator of this kind in the step is falsified.
    pub opcode: Opcode,
    /// Element of its output, modulo its size.
    pub element: u64,
}

/// An honest engine, corrupted.
#[derive(Clone, Debug)]
pub struct Corrupted<E> {
    honest: E,
    lie: Lie,
}

impl<E> Corrupted<E> {
    /// Corrupts an engine.
    pub const fn new(honest: E, lie: Lie) -> Self {
        Self { honest, lie }
    }
}

/// The tensor with one element changed as far as its type allows, so that no later rounding hides the lie.
fn flip(tensor: &Tensor, element: u64) -> Result<Tensor, TensorError> {
    let mut mantissas = tensor.mantissas().to_vec();
    let index = (element % tensor.ty().elements()) as usize;
    if let Some(mantissa) = mantissas.get_mut(index) {
        let limit = tensor.ty().limit();
        *mantissa = if *mantissa > 0 { -limit } else { limit };
    }
    Tensor::from_wide(tensor.ty().clone(), &mantissas)
}

impl<E: Engine> Engine for Corrupted<E> {
    type Tensor = E::Tensor;

    fn describe(&self) -> String {
        self.honest.describe()
    }

    fn import(&self, tensor: &Tensor) -> Result<E::Tensor, EngineError> {
        self.honest.import(tensor)
    }

    fn export(&self, tensor: &E::Tensor) -> Result<Tensor, EngineError> {
        self.honest.export(tensor)
    }

    fn execute(
        &self,
        operator: &Operator,
        operands: &[&E::Tensor],
        context: &StepContext,
    ) -> Result<E::Tensor, EngineError> {
        let output = self.honest.execute(operator, operands, context)?;
        if self.lie.step.is_some_and(|step| step != context.step) || operator.opcode != self.lie.opcode {
            return Ok(output);
        }
        let flipped = flip(&self.honest.export(&output)?, self.lie.element)?;
        self.honest.import(&flipped)
    }
}

/// Keeps and moves rows honestly.
impl<E: CacheEngine> CacheEngine for Corrupted<E> {
    type Room = E::Room;

    fn room(&self, layout: &Layout) -> Result<E::Room, EngineError> {
        self.honest.room(layout)
    }

    fn write(&self, room: &mut E::Room, at: u32, rows: &E::Tensor) -> Result<(), EngineError> {
        self.honest.write(room, at, rows)
    }

    fn read(&self, room: &E::Room, rows: u32) -> Result<E::Tensor, EngineError> {
        self.honest.read(room, rows)
    }

    fn part(&self, tensor: &E::Tensor, rows: Range<u32>) -> Result<E::Tensor, EngineError> {
        self.honest.part(tensor, rows)
    }

    fn pick(&self, tensor: &E::Tensor, rows: &[u32]) -> Result<E::Tensor, EngineError> {
        self.honest.pick(tensor, rows)
    }

    fn stack(&self, tensors: &[E::Tensor]) -> Result<E::Tensor, EngineError> {
        self.honest.stack(tensors)
    }
}

#[cfg(test)]
mod tests {
    use tensorlink_types::TensorType;

    use super::*;

    #[test]
    fn one_element_changes_and_stays_in_its_type() {
        let ty = TensorType::new(8, 0, &[3]).unwrap();
        let tensor = Tensor::from_wide(ty, &[1, 127, -5]).unwrap();
        assert_eq!(flip(&tensor, 1).unwrap().mantissas().to_vec(), [1, -127, -5]);
        assert_eq!(flip(&tensor, 5).unwrap().mantissas().to_vec(), [1, 127, 127]);
    }
}
