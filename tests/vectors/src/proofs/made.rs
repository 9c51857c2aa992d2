//! Operators whose elements read unusual places.

use tensorlink_num::arbitrary::{Case, CaseError, Dice};
use tensorlink_num::tables::exp2_table;
use tensorlink_num::{StepContext, Tensor, check_operator};
use tensorlink_types::{B256, JobKey, Opcode, Operand, Operator, Source, TensorType};

use super::stage::STEPS;

/// An element of [`apart`] that turns: the 50th of the second token.
pub(super) const APART: u64 = 450;
/// An element of [`hidden`] that comes after its token: the last of the first row.
pub(super) const HIDDEN: u64 = 3;

/// An element of [`shared`]: the 150th of the second token.
pub(super) const SHARED: u64 = 550;
/// An element of [`dropped`], as all but a draw of 0 are.
pub(super) const DROPPED: u64 = 5;

/// A GroupSum of three heads that lie more than a leaf apart.
pub(super) fn shared() -> Result<Case, CaseError> {
    let a = Dice::new(9).tensor(&TensorType::new(16, 9, &[2, 1200])?)?;
    case(Opcode::GroupSum, vec![a], &[3, 2], TensorType::new(16, 7, &[2, 400])?)
}

/// A Dropout that keeps as good as nothing.
pub(super) fn dropped() -> Result<Case, CaseError> {
    let a = Dice::new(10).tensor(&TensorType::new(16, 9, &[2, 4])?)?;
    case(Opcode::Dropout, vec![a], &[1, 3, 1, 0], TensorType::new(16, 9, &[2, 4])?)
}

/// A Rope whose pairs lie more than a leaf apart, in its first operand and in its table.
pub(super) fn apart() -> Result<Case, CaseError> {
    let mut dice = Dice::new(7);
    let (x, table) = (TensorType::new(16, 9, &[2, 400])?, TensorType::new(16, 14, &[2, 400])?);
    let output = TensorType::new(16, 8, &[2, 400])?;
    case(Opcode::Rope, vec![dice.tensor(&x)?, dice.tensor(&table)?], &[1, 15], output)
}

/// A causal ExpNeg.
pub(super) fn hidden() -> Result<Case, CaseError> {
    let mut dice = Dice::new(8);
    let (a, max) = (TensorType::new(16, 8, &[4, 4])?, TensorType::new(16, 8, &[4])?);
    let output = TensorType::new(26, 24, &[4, 4])?;
    case(Opcode::ExpNeg, vec![dice.tensor(&a)?, dice.tensor(&max)?, exp2_table()?], &[23637, 6, 1], output)
}

fn case(opcode: Opcode, operands: Vec<Tensor>, attributes: &[i64], output: TensorType) -> Result<Case, CaseError> {
    let named = (0u32..).zip(&operands).map(|(i, t)| Operand { source: Source::State(i), ty: t.ty().clone() });
    let operator = Operator { opcode, operands: named.collect(), attributes: attributes.to_vec(), output };
    check_operator(&operator)?;
    let context = StepContext { job_key: JobKey(B256::repeat_byte(0x3c)), step: 4 * STEPS + 1 };
    Ok(Case { operator, operands, context })
}
