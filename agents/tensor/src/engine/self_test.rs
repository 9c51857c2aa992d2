//! What a kernel must reproduce before money is staked on it: products of extremes over the longest dot product, and of
//! noise in odd shapes; then every operator.

use tensorlink_num::Tensor;
use tensorlink_num::execute as reference;
use tensorlink_num::philox::philox4x32;
use tensorlink_program::{Engine, EngineError, StepContext, conformance};
use tensorlink_types::operator::MAX_REDUCTION;
use tensorlink_types::{Opcode, Operand, Operator, Source, TensorType, Width};

use super::TorchEngine;
use crate::device::Device;
use crate::kernels::Kernels;

/// Rows of `a`, rows of `b`, elements of a dot product: few rows and many, whole vectors, odd ends, single elements.
const SHAPES: [(u32, u32, u32); 7] = [
    (1, 5, MAX_REDUCTION as u32),
    (17, 50, MAX_REDUCTION as u32),
    (3, 4, 77),
    (13, 3, 5),
    (2, 9, 1),
    (20, 1, 2),
    (1, 1, 1),
];

/// Drawn cases of each opcode.
const CASES: u32 = 4;

/// Bits of the outputs: enough for any sum, so that no wrong bit is rounded away.
const OUTPUT_BITS: u8 = 62;

/// Runs the kernel of one operand width against the scalar reference.
///
/// # Errors
/// [`EngineError::Device`] naming the kernels and the first wrong element.
pub(super) fn products(device: Device, kernels: Kernels, width: Width) -> Result<(), EngineError> {
    let engine = TorchEngine::unchecked(device, kernels)?;
    for (m, n, k) in SHAPES {
        for pattern in [Pattern::Extremes, Pattern::Opposed, Pattern::Alternating, Pattern::Noise] {
            let (a, b) = (pattern.tensor(width, m, k, 1)?, pattern.tensor(width, n, k, 2)?);
            compare(&engine, pattern, &mat_mul(&a, &b, m, n)?, &[&a, &b])?;
            if width == Width::I16 {
                let (b, [r, c]) = (pattern.tensor(Width::I8, n, k, 2)?, [ones(m)?, ones(n)?]);
                for opcode in [Opcode::ScaledMatMul, Opcode::ShiftedMatMul] {
                    compare(&engine, pattern, &scaled(opcode, &a, &b, [&r, &c])?, &[&a, &b, &r, &c])?;
                }
            }
        }
    }
    Ok(())
}

/// Runs every operator against the scalar reference: with drawn operands, and on a GPU, where libraries compute that
/// nobody has tested there, in the shapes of a small transformer too, which takes most of a second.
///
/// # Errors
/// [`EngineError::Device`] naming the kernels, the operator and the first wrong element.
pub(super) fn operators(engine: &TorchEngine) -> Result<(), EngineError> {
    let conforms = match engine.device() {
        Device::Cpu => conformance::drawn(engine, CASES),
        Device::Cuda(_) => conformance::operators(engine, CASES),
    };
    conforms.map_err(|failure| EngineError::Device(format!("{}: {failure}", engine.describe())))
}

/// Compares an operator's output with the reference's.
fn compare(
    engine: &TorchEngine,
    pattern: Pattern,
    operator: &Operator,
    operands: &[&Tensor],
) -> Result<(), EngineError> {
    let imported = operands.iter().map(|tensor| engine.import(tensor)).collect::<Result<Vec<_>, _>>()?;
    let context = StepContext::default();
    let actual = engine.export(&engine.execute(operator, &imported.iter().collect::<Vec<_>>(), &context)?)?;
    let due = reference(operator, operands, &context).map_err(internal)?;
    if actual == due {
        return Ok(());
    }
    let wrong = (0..due.ty().elements()).find(|i| actual.get(*i) != due.get(*i));
    let described = engine.describe();
    Err(EngineError::Device(format!("{described} gave a wrong product: {operator}, {pattern:?}, element {wrong:?}")))
}

#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// Every mantissa at its positive limit.
    Extremes,
    /// One operand at the positive limit, the other at the negative.
    Opposed,
    /// The limit with changing sign, in step between the operands: pairs neither cancel nor agree in sign of factors.
    Alternating,
    /// Philox.
    Noise,
}

impl Pattern {
    fn tensor(self, width: Width, rows: u32, row: u32, seed: u32) -> Result<Tensor, EngineError> {
        let bits = if width == Width::I8 { 8 } else { 16 };
        let ty = TensorType::new(bits, 0, &[rows, row]).map_err(internal)?;
        let limit = ty.limit();
        let value = |i: u32| match self {
            Self::Extremes => limit,
            Self::Opposed => {
                if seed == 1 {
                    limit
                } else {
                    -limit
                }
            }
            Self::Alternating => {
                if i.is_multiple_of(2) {
                    limit
                } else {
                    -limit
                }
            }
            Self::Noise => {
                let [word, ..] = philox4x32([seed, 0], [i, 0, 0, 0]);
                i64::from(word) % (2 * limit + 1) - limit
            }
        };
        let values: Vec<i64> = (0..rows * row).map(value).collect();
        Ok(Tensor::from_wide(ty, &values)?)
    }
}

/// Scales that change nothing, and shifts by one.
fn ones(count: u32) -> Result<Tensor, EngineError> {
    let ty = TensorType::new(2, 0, &[count]).map_err(internal)?;
    Ok(Tensor::from_wide(ty, &vec![1; count as usize])?)
}

fn operand(source: u32, tensor: &Tensor) -> Operand {
    Operand { source: Source::State(source), ty: tensor.ty().clone() }
}

fn mat_mul(a: &Tensor, b: &Tensor, m: u32, n: u32) -> Result<Operator, EngineError> {
    Ok(Operator {
        opcode: Opcode::MatMul,
        operands: vec![operand(0, a), operand(1, b)],
        attributes: vec![0],
        output: TensorType::new(OUTPUT_BITS, 0, &[m, n]).map_err(internal)?,
    })
}

fn scaled(opcode: Opcode, a: &Tensor, b: &Tensor, [r, c]: [&Tensor; 2]) -> Result<Operator, EngineError> {
    let dims = [r, c].map(|scales| scales.ty().row());
    let dims = dims.map(|dim| u32::try_from(dim).unwrap_or(u32::MAX));
    Ok(Operator {
        opcode,
        operands: vec![operand(0, a), operand(1, b), operand(2, r), operand(3, c)],
        attributes: vec![0, 0],
        output: TensorType::new(OUTPUT_BITS, 0, &dims).map_err(internal)?,
    })
}

fn internal(error: impl std::fmt::Display) -> EngineError {
    EngineError::Device(format!("the self-test itself failed: {error}"))
}
