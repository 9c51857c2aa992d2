//! Operators that take one element of their second operand for each run of the first: RowCombine and RowMul.

use super::block::{Accumulator, BLOCK, for_blocks};
use super::elementwise::{Precision, combine_block, mul_block};
use super::rows::for_rows;
use crate::simd::Simd;
use crate::tensor::{Slice, SliceMut};

/// Fills a block with the elements that stand for the runs it lies in.
fn spread<A: Accumulator>(b: Slice<'_>, run: usize, start: usize, block: &mut [A]) {
    for_rows(start, run, block, |m, _, part| part.fill(A::narrow(b.get(m))));
}

/// Rule N-38, accumulating in `A`; `run` elements of a for each of b.
pub(crate) fn combine<A: Accumulator>(
    simd: Simd,
    (a, ca): (Slice<'_>, i64),
    (b, cb): (Slice<'_>, i64),
    run: usize,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let coefficients = (A::narrow(ca), A::narrow(cb));
    let mut other = [A::ZERO; BLOCK];
    for_blocks::<A>(simd, out, |start, block| {
        let other = &mut other[..block.len()];
        a.load(simd, start, block);
        spread(b, run, start, other);
        combine_block(simd, block, other, coefficients, to);
    });
}

/// Rule N-39, accumulating in `A`; `run` elements of a for each of b.
pub(crate) fn mul<A: Accumulator>(
    simd: Simd,
    (a, b): (Slice<'_>, Slice<'_>),
    run: usize,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let mut other = [A::ZERO; BLOCK];
    for_blocks::<A>(simd, out, |start, block| {
        let other = &mut other[..block.len()];
        a.load(simd, start, block);
        spread(b, run, start, other);
        mul_block(simd, block, other, to);
    });
}
