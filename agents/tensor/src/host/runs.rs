//! RowCombine and RowMul: an element of the second operand for each run of the first (rules N-38 and N-39).

use super::block::{Accumulator, BLOCK, for_blocks};
use super::elementwise::{Precision, combine_block, mul_block};
use crate::simd::Simd;
use crate::tensor::{Slice, SliceMut};

/// Rule N-38, accumulating in `A`.
pub(crate) fn row_combine<A: Accumulator>(
    simd: Simd,
    (a, ca): (Slice<'_>, i64),
    (b, cb): (Slice<'_>, i64),
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let (run, coefficients) = (a.len() / b.len(), (A::narrow(ca), A::narrow(cb)));
    let mut other = [A::ZERO; BLOCK];
    for_blocks::<A>(simd, out, |start, block| {
        let other = &mut other[..block.len()];
        a.load(simd, start, block);
        b.load_runs(simd, run, start, other);
        combine_block(simd, block, other, coefficients, to);
    });
}

/// Rule N-39, accumulating in `A`.
pub(crate) fn row_mul<A: Accumulator>(simd: Simd, a: Slice<'_>, b: Slice<'_>, to: Precision, out: &mut SliceMut<'_>) {
    let run = a.len() / b.len();
    let mut other = [A::ZERO; BLOCK];
    for_blocks::<A>(simd, out, |start, block| {
        let other = &mut other[..block.len()];
        a.load(simd, start, block);
        b.load_runs(simd, run, start, other);
        mul_block(simd, block, other, to);
    });
}
