//! Random accepted operators with operands, for differential tests of engines and contracts.
//!
//! A case is a function of opcode, size and seed alone, so a failure is reproduced from the three numbers it
//! prints. Operands mix uniform, small and extreme mantissas; lengths are odd as often as even; reductions are
//! rarely 4096 long.

#![allow(clippy::arithmetic_side_effects, reason = "sums of small numbers drawn here, never of input")]

mod attention;
mod chances;
mod choices;
mod dice;
mod elementwise;
mod embeddings;
mod gradients;
mod gumbel;
mod linear;
mod norms;
mod parts;
mod pieces;
mod positions;
mod reductions;
mod roots;
mod runs;
mod sampling;
mod selections;
mod shifts;
mod softmax;
mod tables;
mod tails;

#[cfg(any(test, feature = "arbitrary"))]
use proptest::prelude::*;
use tensorlink_types::{JobKey, Opcode, Operator, TypeError};
use thiserror::Error;

use crate::context::StepContext;
use crate::error::OpError;
use crate::operators::check_operator;
use crate::tables::TableError;
use crate::tensor::{Tensor, TensorError};

use self::pieces::Drawn;

pub use self::dice::Dice;

/// Largest `size` that [`Case::new`] distinguishes.
pub const MAX_SIZE: u32 = 12;

/// An accepted operator and everything it is computed from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The operator; its sources are `State(0)`, `State(1)` and so on.
    pub operator: Operator,
    /// Its operands.
    pub operands: Vec<Tensor>,
    /// Job key and step.
    pub context: StepContext,
}

/// A generated case broke a rule: a bug of the generator.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CaseError {
    /// A type.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// A tensor.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The operator.
    #[error(transparent)]
    Operator(#[from] OpError),
}

/// An operator of which accepted cases can be drawn; `size` bounds a dimension.
trait Draw {
    fn draw(dice: &mut Dice, size: u32) -> Result<Drawn, CaseError>;
}

macro_rules! declare {
    ($($family:ident: $($name:ident),+;)*) => {
        fn draw(opcode: Opcode, dice: &mut Dice, size: u32) -> Result<Drawn, CaseError> {
            match opcode { $($(Opcode::$name => crate::operators::$name::draw(dice, size),)+)* }
        }
    };
}

crate::operators!(declare);

impl Case {
    /// The case of this opcode, size (`1..=MAX_SIZE`: bound of a dimension) and seed.
    ///
    /// # Errors
    /// [`CaseError`] if the generator has a bug.
    pub fn new(opcode: Opcode, size: u32, seed: u64) -> Result<Self, CaseError> {
        let mut dice = Dice::new(seed);
        let (operator, operands) = draw(opcode, &mut dice, size.clamp(1, MAX_SIZE))?;
        let context = StepContext { job_key: JobKey(dice.word()), step: (dice.bits(32) as u32) >> dice.range(0, 31) };
        check_operator(&operator)?;
        Ok(Self { operator, operands, context })
    }

    /// The operands, borrowed as [`crate::execute()`] takes them.
    pub fn operands(&self) -> Vec<&Tensor> {
        self.operands.iter().collect()
    }
}

#[cfg(any(test, feature = "arbitrary"))]
/// Cases of one opcode; shrink towards small sizes.
pub fn case_of(opcode: Opcode) -> impl Strategy<Value = Case> {
    (1..=MAX_SIZE, any::<u64>())
        .prop_filter_map("the generator has a bug", move |(size, seed)| Case::new(opcode, size, seed).ok())
}

#[cfg(any(test, feature = "arbitrary"))]
/// Cases of every opcode.
pub fn case() -> impl Strategy<Value = Case> {
    prop::sample::select(Opcode::ALL).prop_flat_map(case_of)
}
