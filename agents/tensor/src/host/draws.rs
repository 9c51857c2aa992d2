//! Dropout and Dither: what Philox draws for each element.

use tensorlink_num::StepContext;
use tensorlink_num::kernel::{DITHER_DRAWS, DROPOUT_DRAWS};
use tensorlink_num::philox::draw_element;

use super::block::{for_blocks, rescale_block};
use super::elementwise::Precision;
use super::rows::for_rows;
use crate::simd::Simd;
use crate::tensor::{Slice, SliceMut};

/// Rule N-46: factor and what is kept of the stream.
pub(crate) fn dropout(
    simd: Simd,
    (a, c): (Slice<'_>, i64),
    (keep, stream): (u64, u32),
    context: &StepContext,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    for_blocks::<i64>(simd, out, |start, block| {
        a.load(simd, start, block);
        for (i, a) in (start as u64..).zip(block.iter_mut()) {
            let word = draw_element(&context.job_key, i, context.step, stream, DROPOUT_DRAWS);
            *a = if u64::from(word) < keep { c * *a } else { 0 };
        }
        rescale_block(simd, block, to.shift, to.limit);
    });
}

/// Rule N-48; `row` elements to a divisor.
pub(crate) fn dither(
    simd: Simd,
    (p, z, row): (Slice<'_>, Slice<'_>, usize),
    (bits, stream): (u32, u32),
    context: &StepContext,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    for_blocks::<i64>(simd, out, |start, block| {
        p.load(simd, start, block);
        for_rows(start, row, block, |m, first, part| {
            let d = z.get(m).max(1);
            for (i, p) in ((m * row + first) as u64..).zip(part) {
                let word = draw_element(&context.job_key, i, context.step, stream, DITHER_DRAWS);
                let rest = (i64::from(word) * d) >> 32;
                *p = ((*p << bits) + rest).div_euclid(d).clamp(-limit, limit);
            }
        });
    });
}
