//! Operators on the host, in one pass over libtorch's memory each.
//!
//! | module | what lives there |
//! |---|---|
//! | `attention` to `tails` | the families of operators, as `tensorlink_num::operators` has them |
//! | [`block`] | the pass itself: widen, compute, rescale, narrow |
//! | [`fused`], [`wide`] | Combine, Mul and Lookup of words; of more bits, and ShiftRows |
//! | [`run`] | elementwise operators, RowCombine, RowMul and Ratio one after another, a block at a time |
//! | [`cells`], [`values`], [`exp`] | entries of tables; functions computed once for each argument; powers of two |
//! | `row_softmax` | RowMax, ExpNeg, RowSum and Normalize of a row at a time, within attention |
//! | [`quotient`], [`philox`] | exact quotients and roots of 64 bits; draws |
//! | [`stream`] | memory beyond the caches |
//! | `vnni`, `amx`, `avx2` | MatMul, ScaledMatMul, HeadScores and HeadMix by AVX-512 VNNI, by AMX and by AVX2 |

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
mod attention;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
pub(crate) mod block;
pub(crate) mod cells;
pub(crate) mod chances;
pub(crate) mod choices;
pub(crate) mod elementwise;
pub(crate) mod embeddings;
pub(crate) mod exp;
pub(crate) mod fused;
pub(crate) mod gradients;
pub(crate) mod gumbel;
pub(crate) mod linear;
pub(crate) mod norms;
pub(crate) mod philox;
pub(crate) mod positions;
pub(crate) mod quotient;
pub(crate) mod reductions;
pub(crate) mod roots;
#[cfg(target_arch = "x86_64")]
pub(crate) mod row_softmax;
pub(crate) mod run;
pub(crate) mod runs;
mod sampling;
pub(crate) mod selections;
pub(crate) mod shifts;
pub(crate) mod softmax;
pub(crate) mod stream;
pub(crate) mod tables;
pub(crate) mod tails;
pub(crate) mod values;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vnni;
pub(crate) mod wide;

use tensorlink_num::CheckedOperator;
use tensorlink_program::{EngineError, StepContext};
use tensorlink_types::{Operator, TensorType};

use self::block::{Precision, fits_i32};
use self::reductions::Rows;
use crate::simd::Simd;
use crate::slice::{Slice, SliceMut};
use crate::tensor::TorchTensor;

/// Largest mantissa of a type, for bounds of accumulators.
fn magnitude(ty: &TensorType) -> u128 {
    u128::from(ty.limit().unsigned_abs())
}

/// An operator that was checked, and operands of its types in host memory.
pub(crate) struct Host<'a> {
    simd: Simd,
    operator: &'a Operator,
    operands: &'a [&'a TorchTensor],
    context: &'a StepContext,
}

impl<'a> Host<'a> {
    fn tensor(&self, i: usize) -> Result<&'a TorchTensor, EngineError> {
        let missing = || EngineError::Malformed(format!("{}: operand {i} is missing", self.operator));
        self.operands.get(i).copied().ok_or_else(missing)
    }

    fn operand(&self, i: usize) -> Result<Slice<'a>, EngineError> {
        self.tensor(i)?.slice()
    }

    fn ty(&self, i: usize) -> Result<&'a TensorType, EngineError> {
        Ok(self.tensor(i)?.ty())
    }

    /// Largest magnitude of an operand's elements.
    fn reach(&self, i: usize) -> Result<u128, EngineError> {
        Ok(magnitude(self.ty(i)?))
    }

    /// Elements of a row of the first operand.
    fn row(&self) -> Result<usize, EngineError> {
        Ok(self.ty(0)?.row() as usize)
    }

    /// Limit of the output.
    fn limit(&self) -> i64 {
        self.operator.output.limit()
    }

    /// The output's precision; the check keeps shifts within ±63.
    fn to(&self, shift: i64) -> Precision {
        Precision { shift: shift as i32, limit: self.limit() }
    }

    /// Runs of `length` of the first operand.
    fn rows(&self, length: usize, causal: bool) -> Result<Rows, EngineError> {
        // A causal operand has at least two dimensions.
        let tokens = self.ty(0)?.dims().iter().rev().nth(1).map(|tokens| *tokens as usize);
        Ok(Rows { length, causal: tokens.filter(|_| causal) })
    }

    /// Whether accumulators up to a bound fit `i32`. Operands must fit too: a coefficient of 0 bounds nothing.
    fn is_narrow(&self, bound: u128) -> bool {
        let loads = self.operands.iter().map(|t| magnitude(t.ty())).max().unwrap_or(0);
        fits_i32(bound.max(loads), self.limit())
    }
}

/// What one pass over memory computes.
trait OnHost {
    /// # Errors
    /// [`EngineError::Device`] if an operand is not in host memory; [`EngineError::Malformed`] of an operator that is
    /// computed elsewhere.
    fn on_host(&self, on: &Host<'_>, _out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        Err(EngineError::Malformed(format!("{} is not computed here", on.operator)))
    }
}

/// Computes every operator but products and Sample; the operands are of the operator's types.
///
/// # Errors
/// [`EngineError::Device`] if memory runs out or an operand is not in host memory.
pub(crate) fn execute(
    simd: Simd,
    checked: &CheckedOperator,
    operator: &Operator,
    operands: &[&TorchTensor],
    context: &StepContext,
) -> Result<TorchTensor, EngineError> {
    let on = Host { simd, operator, operands, context };
    macro_rules! each {
        ($($family:ident: $($name:ident),+;)*) => {
            |out: &mut SliceMut<'_>| match checked { $($(CheckedOperator::$name(op) => op.on_host(&on, out),)+)* }
        };
    }
    let compute = tensorlink_num::operators!(each);
    TorchTensor::build(&operator.output, |mut out| compute(&mut out))
}
