//! Operators that compute an element from the elements at the same place.

use tensorlink_num::operators::{Combine, Mul, Relu, ReluGrad, Scale};
use tensorlink_program::EngineError;

use super::block::{Accumulator, BLOCK, Block, Element, Precision, for_blocks, rescale};
use super::{Host, OnHost, fused, wide};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width, same_width};

multiversion! {
    pub(super) fn combine_block<A: Accumulator>(a: &mut [A], b: &[A], coefficients: (A, A), to: Precision) {
        for (a, b) in a.iter_mut().zip(b) {
            *a = coefficients.0 * *a + coefficients.1 * *b;
        }
        rescale(a, to.shift, to.limit);
    }
}

multiversion! {
    pub(crate) fn scale_block<A: Accumulator>(a: &mut [A], c: A, to: Precision) {
        for a in a.iter_mut() {
            *a = c * *a;
        }
        rescale(a, to.shift, to.limit);
    }
}

multiversion! {
    pub(super) fn mul_block<A: Accumulator>(a: &mut [A], b: &[A], to: Precision) {
        for (a, b) in a.iter_mut().zip(b) {
            *a = *a * *b;
        }
        rescale(a, to.shift, to.limit);
    }
}

/// Rule N-13, accumulating in `A`.
pub(crate) fn combine<A: Accumulator>(
    simd: Simd,
    (a, ca): (Slice<'_>, i64),
    (b, cb): (Slice<'_>, i64),
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    let coefficients = (A::narrow(ca), A::narrow(cb));
    let Block(other) = &mut Block([A::ZERO; BLOCK]);
    for_blocks::<A>(simd, out, |start, block| {
        let other = &mut other[..block.len()];
        a.load(simd, start, block);
        b.load_repeated(simd, start, other);
        combine_block(simd, block, other, coefficients, to);
    });
}

/// Rule N-14, accumulating in `A`.
pub(crate) fn scale<A: Accumulator>(simd: Simd, a: Slice<'_>, c: i64, to: Precision, out: &mut SliceMut<'_>) {
    for_blocks::<A>(simd, out, |start, block| {
        a.load(simd, start, block);
        scale_block(simd, block, A::narrow(c), to);
    });
}

/// Rule N-15, accumulating in `A`.
pub(crate) fn mul<A: Accumulator>(simd: Simd, a: Slice<'_>, b: Slice<'_>, to: Precision, out: &mut SliceMut<'_>) {
    let Block(other) = &mut Block([A::ZERO; BLOCK]);
    for_blocks::<A>(simd, out, |start, block| {
        let other = &mut other[..block.len()];
        a.load(simd, start, block);
        b.load_repeated(simd, start, other);
        mul_block(simd, block, other, to);
    });
}

multiversion! {
    /// Rule N-16.
    pub(crate) fn relu<T: Element>(a: &[T], out: &mut [T]) {
        for (out, a) in out.iter_mut().zip(a) {
            *out = (*a).max(T::default());
        }
    }
}

multiversion! {
    /// Rule N-17.
    pub(crate) fn relu_grad<T: Element, X: Element>(dy: &[T], x: &[X], out: &mut [T]) {
        for ((out, dy), x) in out.iter_mut().zip(dy).zip(x) {
            *out = if *x > X::default() { *dy } else { T::default() };
        }
    }
}

impl OnHost for Combine {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let (a, b, to) = (on.operand(0)?, on.operand(1)?, on.to(self.shift));
        let bound =
            on.reach(0)? * u128::from(self.ca.unsigned_abs()) + on.reach(1)? * u128::from(self.cb.unsigned_abs());
        let fused = on.is_narrow(bound) && fused::serves(to.shift);
        if let (true, Slice::I16(a), Slice::I16(b), SliceMut::I16(out)) = (fused, a, b, &mut *out) {
            fused::combine(on.simd, (a, self.ca as i32), (b, self.cb as i32), to, out);
        } else if on.is_narrow(bound) {
            combine::<i32>(on.simd, (a, self.ca), (b, self.cb), to, out);
        } else if let (true, Slice::I32(a), Slice::I32(b), SliceMut::I32(out)) =
            (wide::serves(to.shift), a, b, &mut *out)
        {
            wide::combine(on.simd, (a, self.ca), (b, self.cb), to, out);
        } else {
            combine::<i64>(on.simd, (a, self.ca), (b, self.cb), to, out);
        }
        Ok(())
    }
}

impl OnHost for Scale {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let (a, to) = (on.operand(0)?, on.to(self.shift));
        if on.is_narrow(on.reach(0)? * u128::from(self.c.unsigned_abs())) {
            scale::<i32>(on.simd, a, self.c, to, out);
        } else {
            scale::<i64>(on.simd, a, self.c, to, out);
        }
        Ok(())
    }
}

impl OnHost for Mul {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let (a, b, to, bound) = (on.operand(0)?, on.operand(1)?, on.to(self.shift), on.reach(0)? * on.reach(1)?);
        let fused = on.is_narrow(bound) && fused::serves(to.shift);
        if let (true, Slice::I16(a), Slice::I16(b), SliceMut::I16(out)) = (fused, a, b, &mut *out) {
            fused::mul(on.simd, a, b, to, out);
        } else if on.is_narrow(bound) {
            mul::<i32>(on.simd, a, b, to, out);
        } else if let (true, Slice::I32(a), Slice::I32(b), SliceMut::I32(out)) =
            (wide::serves(to.shift), a, b, &mut *out)
        {
            wide::mul(on.simd, a, b, to, out);
        } else {
            mul::<i64>(on.simd, a, b, to, out);
        }
        Ok(())
    }
}

impl OnHost for Relu {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        same_width!(on.operand(0)?, out, (a, out) => relu(on.simd, a, out));
        Ok(())
    }
}

impl OnHost for ReluGrad {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let x = on.operand(1)?;
        same_width!(on.operand(0)?, out, (dy, out) => each_width!(Slice, x, x => relu_grad(on.simd, dy, x, out)));
        Ok(())
    }
}
