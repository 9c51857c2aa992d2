//! RowCombine and RowMul: an element of the second operand for each run of the first (rules N-38 and N-39).

use super::block::{Accumulator, BLOCK, Block, for_blocks, for_rows, rescale};
use super::elementwise::{Precision, combine_block, mul_block, scale_block};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut};

/// Runs from which on elements are computed with one for all of them; shorter ones are written out.
const LONG: usize = 32;

multiversion! {
    fn combine_part<A: Accumulator>(a: &mut [A], ca: A, term: A, to: Precision) {
        for a in a.iter_mut() {
            *a = ca * *a + term;
        }
        rescale(a, to.shift, to.limit);
    }
}

/// Whether each element of `b` is for so many of `a` that they are computed together.
pub(crate) fn long(a: Slice<'_>, b: Slice<'_>) -> bool {
    a.len() / b.len() >= LONG
}

/// Rule N-38, accumulating in `A`.
pub(crate) fn row_combine<A: Accumulator>(
    simd: Simd,
    (a, ca): (Slice<'_>, i64),
    (b, cb): (Slice<'_>, i64),
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let (run, ca, cb) = (a.len() / b.len(), A::narrow(ca), A::narrow(cb));
    let Block(other) = &mut Block([A::ZERO; BLOCK]);
    for_blocks::<A>(simd, out, |start, block| {
        a.load(simd, start, block);
        if run < LONG {
            let other = &mut other[..block.len()];
            b.load_runs(simd, run, start, other);
            combine_block(simd, block, other, (ca, cb), to);
        } else {
            for_rows(start, run, block, |m, _, part| combine_part(simd, part, ca, cb * A::narrow(b.get(m)), to));
        }
    });
}

/// Rule N-39, accumulating in `A`.
pub(crate) fn row_mul<A: Accumulator>(simd: Simd, a: Slice<'_>, b: Slice<'_>, to: Precision, out: &mut SliceMut<'_>) {
    let run = a.len() / b.len();
    let Block(other) = &mut Block([A::ZERO; BLOCK]);
    for_blocks::<A>(simd, out, |start, block| {
        a.load(simd, start, block);
        if run < LONG {
            let other = &mut other[..block.len()];
            b.load_runs(simd, run, start, other);
            mul_block(simd, block, other, to);
        } else {
            for_rows(start, run, block, |m, _, part| scale_block(simd, part, A::narrow(b.get(m)), to));
        }
    });
}
