//! An engine that computes like any other, except for one kind of operator.

use std::ops::Range;

use serde::Deserialize;
use tensorlink_model::decode::{CacheEngine, Layout};
use tensorlink_num::{Tensor, TensorError};
use tensorlink_program::{Engine, EngineError, StepContext};
use tensorlink_types::{B256, JobKey, Opcode, Operator};

/// Where to lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lie {
    /// Absolute step, or number of tokens of a text; every one if there is none.
    pub step: Option<u32>,
    /// Every operator of this kind in the step is falsified.
    pub opcode: Opcode,
    /// What becomes of its output.
    pub deed: Deed,
}

/// What becomes of an operator's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// One element is another, as far from the right one as the type allows. Modulo the output's size.
    Flip(u64),
    /// Nothing is computed: all elements are zero.
    Skip,
    /// Every second element is zero, as of a model half as wide.
    Halve,
    /// The first operand stays as it was, as where an update is left out; where types differ, the same as to skip.
    Stay,
    /// Drawn with another key than the job's.
    OtherKey,
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

impl Deed {
    /// What an operator gives in place of its honest output.
    fn done<E: Engine>(
        self,
        engine: &E,
        (operator, operands): (&Operator, &[&E::Tensor]),
        context: &StepContext,
    ) -> Result<E::Tensor, EngineError> {
        let ty = &operator.output;
        let honest = || engine.export(&engine.execute(operator, operands, context)?);
        let nothing = || Tensor::from_wide(ty.clone(), &vec![0; ty.elements() as usize]);
        let tensor = match self {
            Self::Flip(element) => flip(&honest()?, element)?,
            Self::Skip => nothing()?,
            Self::Halve => {
                let mut mantissas = honest()?.mantissas().to_vec();
                mantissas.iter_mut().skip(1).step_by(2).for_each(|mantissa| *mantissa = 0);
                Tensor::from_wide(ty.clone(), &mantissas)?
            }
            Self::Stay => match operands.first().map(|tensor| engine.export(tensor)).transpose()? {
                Some(before) if before.ty() == ty => before,
                _ => nothing()?,
            },
            Self::OtherKey => {
                let context = StepContext { job_key: JobKey(B256::repeat_byte(0x13)), ..*context };
                return engine.execute(operator, operands, &context);
            }
        };
        engine.import(&tensor)
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
        let elsewhere = self.lie.step.is_some_and(|step| step != context.step) || operator.opcode != self.lie.opcode;
        if elsewhere || one_more(operator) {
            return self.honest.execute(operator, operands, context);
        }
        self.lie.deed.done(&self.honest, (operator, operands), context)
    }
}

/// Whether it is the attention of one more token of a text that is continued. Who repeats the text for its receipt
/// computes all rows at once: a lie about the first row is the same both times, one about each row for itself is not,
/// and a worker that cannot repeat its claim declines to prove itself wrong.
fn one_more(operator: &Operator) -> bool {
    matches!(operator.opcode, Opcode::HeadScores | Opcode::HeadMix) && operator.output.dims().first() == Some(&1)
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

    fn read(&self, room: &E::Room, rows: Range<u32>) -> Result<E::Tensor, EngineError> {
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
