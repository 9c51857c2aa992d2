//! RowCombine and RowMul: an element of the second operand for each run of the first (rules N-38 and N-39).

use tensorlink_num::operators::{RowCombine, RowMul};
use tensorlink_program::EngineError;

use super::block::{Accumulator, BLOCK, Block, Precision, for_blocks, for_rows, rescale};
use super::elementwise::{combine_block, mul_block, scale_block};
use super::{Host, OnHost, fused};
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

impl OnHost for RowCombine {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let (a, b, to) = (on.operand(0)?, on.operand(1)?, on.to(self.shift));
        let bound =
            on.reach(0)? * u128::from(self.ca.unsigned_abs()) + on.reach(1)? * u128::from(self.cb.unsigned_abs());
        let fused = on.is_narrow(bound) && fused::serves(to.shift) && long(a, b);
        if let (true, Slice::I16(a), Slice::I16(b), SliceMut::I16(out)) = (fused, a, b, &mut *out) {
            fused::row_combine(on.simd, (a, self.ca as i32), (b, self.cb as i32), to, out);
        } else if on.is_narrow(bound) {
            row_combine::<i32>(on.simd, (a, self.ca), (b, self.cb), to, out);
        } else {
            row_combine::<i64>(on.simd, (a, self.ca), (b, self.cb), to, out);
        }
        Ok(())
    }
}

impl OnHost for RowMul {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let (a, b, to, bound) = (on.operand(0)?, on.operand(1)?, on.to(self.shift), on.reach(0)? * on.reach(1)?);
        let fused = on.is_narrow(bound) && fused::serves(to.shift) && long(a, b);
        if let (true, Slice::I16(a), Slice::I16(b), SliceMut::I16(out)) = (fused, a, b, &mut *out) {
            fused::row_mul(on.simd, a, b, to, out);
        } else if on.is_narrow(bound) {
            row_mul::<i32>(on.simd, a, b, to, out);
        } else {
            row_mul::<i64>(on.simd, a, b, to, out);
        }
        Ok(())
    }
}
