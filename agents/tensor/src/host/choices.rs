//! The largest elements of rows: RowArgMax, RowPick, Choose (rules N-32, N-33 and N-37).

use tensorlink_num::operators::{Choose, RowArgMax, RowPick};
use tensorlink_program::EngineError;

use super::block::Element;
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width, same_width};

/// Elements searched at once for the largest; vectors without a branch.
const STRIDE: usize = 64;

/// The place of the first element that none exceeds, in two passes: the largest, and where it is.
#[inline(always)]
fn first_largest<T: Element>(part: &[T]) -> usize {
    let largest = part.iter().fold(part[0], |max, x| max.max(*x));
    for (i, chunk) in part.chunks(STRIDE).enumerate() {
        if chunk.iter().fold(false, |hit, x| hit | (*x == largest)) {
            return i * STRIDE + chunk.iter().position(|x| *x == largest).unwrap_or(0);
        }
    }
    0
}

multiversion! {
    fn places<T: Element>(a: &[T], run: usize, out: &mut [i32]) {
        for (out, part) in out.iter_mut().zip(a.chunks_exact(run)) {
            // Below 4096.
            *out = first_largest(part) as i32;
        }
    }
}

/// Rule N-32, of parts of `run` elements.
pub(crate) fn row_arg_max(simd: Simd, a: Slice<'_>, run: usize, out: &mut [i32]) {
    each_width!(Slice, a, a => places(simd, a, run, out));
}

/// Rule N-33, from parts of `run` elements.
pub(crate) fn row_pick<T: Element>(a: &[T], place: Slice<'_>, run: usize, out: &mut [T]) {
    let last = run as i64 - 1;
    for ((i, out), part) in out.iter_mut().enumerate().zip(a.chunks_exact(run)) {
        *out = part[place.get(i).clamp(0, last) as usize];
    }
}

/// Rule N-37; rows of as many elements as there are for each of the output.
pub(crate) fn choose(
    simd: Simd,
    (place, best, controls): (Slice<'_>, Slice<'_>, Slice<'_>),
    length: i64,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    let parts = place.len() / out.len();
    let (mut part, mut chosen) = ([0i32; 1], [0i64; 1]);
    for m in 0..out.len() {
        let range = m * parts..(m + 1) * parts;
        each_width!(Slice, best, best => places(simd, &best[range], parts, &mut part));
        let within = place.get(m * parts + part[0] as usize);
        let choice = (i64::from(part[0]) * length + within).clamp(-limit, limit);
        chosen[0] = if controls.get(7 * m) == 0 { 0 } else { choice };
        out.store(simd, m, &chosen);
    }
}

impl OnHost for RowArgMax {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let SliceMut::I32(out) = out else {
            return Err(EngineError::Malformed("RowArgMax gives 32 bits".to_owned()));
        };
        row_arg_max(on.simd, on.operand(0)?, self.depth as usize, out);
        Ok(())
    }
}

impl OnHost for RowPick {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let place = on.operand(1)?;
        same_width!(on.operand(0)?, out, (a, out) => row_pick(a, place, self.depth as usize, out));
        Ok(())
    }
}

impl OnHost for Choose {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let operands = (on.operand(0)?, on.operand(1)?, on.operand(2)?);
        choose(on.simd, operands, self.length, on.limit(), out);
        Ok(())
    }
}
