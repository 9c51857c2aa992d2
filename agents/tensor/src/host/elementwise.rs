//! Operators that compute an element from the elements at the same place.

use super::block::{Accumulator, BLOCK, Block, Element, for_blocks, rescale};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut};

/// Output precision of an operator: by how much to rescale, and the limit to clamp to.
#[derive(Clone, Copy)]
pub(crate) struct Precision {
    pub(crate) shift: i32,
    pub(crate) limit: i64,
}

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
