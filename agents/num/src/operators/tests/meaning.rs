//! Operators that are run, and what their results are compared with.

use tensorlink_types::{B256, JobKey, Opcode, Operand, Operator, Source, TensorType};

use crate::arbitrary::Dice;
use crate::context::StepContext;
use crate::execute;
use crate::tensor::Tensor;

pub(super) fn tensor(bits: u8, exponent: i16, dims: &[u32], values: &[i64]) -> Tensor {
    Tensor::from_wide(TensorType::new(bits, exponent, dims).unwrap(), values).unwrap()
}

pub(super) fn uniform(dice: &mut Dice, bits: u8, exponent: i16, dims: &[u32]) -> Tensor {
    let ty = TensorType::new(bits, exponent, dims).unwrap();
    let values: Vec<i64> = (0..ty.elements()).map(|_| dice.range(-ty.limit(), ty.limit())).collect();
    Tensor::from_wide(ty, &values).unwrap()
}

pub(super) fn run(opcode: Opcode, operands: &[&Tensor], attributes: &[i64], output: (u8, i16, &[u32])) -> Tensor {
    run_in(&StepContext::default(), opcode, operands, attributes, output)
}

pub(super) fn run_in(
    context: &StepContext,
    opcode: Opcode,
    operands: &[&Tensor],
    attributes: &[i64],
    output: (u8, i16, &[u32]),
) -> Tensor {
    let named = operands.iter().map(|t| Operand { source: Source::State(0), ty: t.ty().clone() }).collect();
    let output = TensorType::new(output.0, output.1, output.2).unwrap();
    let operator = Operator { opcode, operands: named, attributes: attributes.to_vec(), output };
    execute(&operator, operands, context).unwrap()
}

/// Of an operator that draws, in this step of one job.
pub(super) fn at(step: u32) -> StepContext {
    StepContext { job_key: JobKey(B256::repeat_byte(7)), step }
}

pub(super) fn wide(tensor: &Tensor) -> Vec<i64> {
    tensor.mantissas().to_vec()
}

/// The largest difference of two lists of values.
pub(super) fn distance(actual: &[f64], expected: impl IntoIterator<Item = f64>) -> f64 {
    let expected: Vec<f64> = expected.into_iter().collect();
    assert_eq!(actual.len(), expected.len());
    actual.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The gradient of `f` at `x`, by central differences.
pub(super) fn slope(f: impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    let moved = |k: usize, by: f64| {
        let mut x = x.to_vec();
        x[k] += by;
        f(&x)
    };
    (0..x.len()).map(|k| (moved(k, 1e-5) - moved(k, -1e-5)) / 2e-5).collect()
}
