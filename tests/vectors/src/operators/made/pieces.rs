//! What made cases are made of, whatever their family.

use tensorlink_num::arbitrary::{Case, CaseError};
use tensorlink_num::{StepContext, Tensor, check_operator};
use tensorlink_types::{B256, JobKey, Opcode, Operand, Operator, Source, TensorType};

/// A case and what it is about.
pub(super) type Named = (&'static str, Case);

/// What a family has: by opcode, the function that makes its cases.
pub(super) type Made = &'static [(Opcode, fn() -> Result<Vec<Named>, CaseError>)];

pub(super) fn ty(bits: u8, exponent: i16, dims: &[u32]) -> Result<TensorType, CaseError> {
    Ok(TensorType::new(bits, exponent, dims)?)
}

pub(super) fn tensor(bits: u8, exponent: i16, dims: &[u32], values: &[i64]) -> Result<Tensor, CaseError> {
    Ok(Tensor::from_wide(ty(bits, exponent, dims)?, values)?)
}

/// As many numbers as the shape holds, spread over `±limit` by a stride.
pub(super) fn spread(bits: u8, exponent: i16, dims: &[u32], stride: i64) -> Result<Tensor, CaseError> {
    let ty = ty(bits, exponent, dims)?;
    let (limit, count) = (ty.limit(), ty.elements() as i64);
    let values: Vec<i64> = (1..=count).map(|i| (i * stride) % (2 * limit + 1) - limit).collect();
    Ok(Tensor::from_wide(ty, &values)?)
}

/// The same number everywhere.
pub(super) fn constant(bits: u8, exponent: i16, dims: &[u32], value: i64) -> Result<Tensor, CaseError> {
    let ty = ty(bits, exponent, dims)?;
    let values = vec![value; ty.elements() as usize];
    Ok(Tensor::from_wide(ty, &values)?)
}

pub(super) fn case(
    opcode: Opcode,
    operands: Vec<Tensor>,
    attributes: &[i64],
    output: TensorType,
) -> Result<Case, CaseError> {
    let named = (0u32..).zip(&operands).map(|(i, t)| Operand { source: Source::State(i), ty: t.ty().clone() });
    let operator = Operator { opcode, operands: named.collect(), attributes: attributes.to_vec(), output };
    check_operator(&operator)?;
    let context = StepContext { job_key: JobKey(B256::repeat_byte(0x5a)), step: 7 };
    Ok(Case { operator, operands, context })
}

/// The case at another step.
pub(super) fn at_step_of(step: u32, mut case: Case) -> Case {
    case.context.step = step;
    case
}
