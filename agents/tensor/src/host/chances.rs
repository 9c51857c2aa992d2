//! Dropout and Dither: elements dropped, and rounding drawn (rules N-46 and N-48).

use tensorlink_num::bounds::{DITHER_DRAWS, DROPOUT_DRAWS};
use tensorlink_num::operators::{Dither, Dropout};
use tensorlink_num::philox::{SERVED, key_words};
use tensorlink_program::EngineError;
use tensorlink_program::StepContext;

use super::block::{BLOCK, Element, Precision, for_blocks, for_rows, rescale};
use super::philox::draw_all;
use super::quotient::{ESTIMATED, F32_LIMIT, bound, corrected_quotient, floor_quotient};
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut};

/// What the draws of an operator have in common: the key, and the last three words of the counter.
#[derive(Clone, Copy)]
pub(crate) struct Draws {
    key: [u32; 2],
    counter: [u32; 3],
}

impl Draws {
    pub(crate) fn new(context: &StepContext, stream: u32, draws: u32) -> Self {
        Self { key: key_words(&context.job_key), counter: [context.step, stream, draws] }
    }

    /// Words for at most a [`BLOCK`] of elements from `start` on, which is a multiple of it: their counters agree in
    /// all but the first word.
    fn fill(self, simd: Simd, start: u64, words: &mut [u32]) {
        let [step, stream, draws] = self.counter;
        let first = start / SERVED;
        // The halves of the place.
        draw_all(simd, first as u32, self.key, [step, stream, draws.wrapping_add((first >> 32) as u32)], words);
    }
}

multiversion! {
    fn keep_block(a: &mut [i64], words: &[u32], attributes: &Dropout, limit: i64) {
        let Dropout { keep, c, shift, .. } = *attributes;
        for (a, word) in a.iter_mut().zip(words) {
            *a = if i64::from(*word) < keep { c * *a } else { 0 };
        }
        rescale(a, shift as i32, limit);
    }
}

/// Rule N-46.
pub(crate) fn dropout(
    simd: Simd,
    a: Slice<'_>,
    (attributes, draws): (&Dropout, Draws),
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    let mut words = [0u32; BLOCK];
    for_blocks::<i64>(simd, out, |start, block| {
        let words = &mut words[..block.len()];
        draws.fill(simd, start as u64, words);
        a.load(simd, start, block);
        keep_block(simd, block, words, attributes, limit);
    });
}

multiversion! {
    /// `⌊(p·2^bits + ⌊w·d/2^32⌋) / d⌋`, limits below [`ESTIMATED`].
    fn dither_part(p: &mut [i64], words: &[u32], d: i64, to: Precision) {
        let (bits, limit, bound) = (to.shift as u32, to.limit, bound(to.limit));
        for (p, word) in p.iter_mut().zip(words) {
            let rest = (i64::from(*word) * d) >> 32;
            *p = floor_quotient((*p << bits) + rest, d, bound).clamp(-limit, limit);
        }
    }
}

multiversion! {
    /// The same of a row's elements of 32 bits, limits up to [`F32_LIMIT`], at most 30 bits, and divisors below 2^29.
    fn dither_row<Y: Element>(p: &[i32], words: &[u32], d: i64, to: Precision, out: &mut [Y]) {
        let (bits, limit) = (to.shift as u32, to.limit as i32);
        let factor = (f64::from(1u32 << bits) / d as f64) as f32;
        let divisor = d as i32;
        for ((p, word), out) in p.iter().zip(words).zip(out) {
            // What is drawn is below one, and known to a 24th bit.
            let drawn = (word >> 8) as i32 as f32 * (1.0 / (1 << 24) as f32);
            let rest = ((u64::from(*word) * u64::from(divisor as u32)) >> 32) as i32;
            let quotient = corrected_quotient(*p as f32 * factor + drawn, (*p << bits).wrapping_add(rest), divisor, limit);
            *out = Y::narrow(quotient.into());
        }
    }
}

/// Rule N-48; `to` has the bits for a shift.
pub(crate) fn dither(
    simd: Simd,
    (p, row): (Slice<'_>, usize),
    z: Slice<'_>,
    (to, draws): (Precision, Draws),
    out: &mut SliceMut<'_>,
) {
    let estimated = to.limit <= F32_LIMIT && to.shift <= 30;
    match (p, &mut *out) {
        (Slice::I32(p), SliceMut::I8(out)) if estimated => dither_rows(simd, (p, row), z, (to, draws), out),
        (Slice::I32(p), SliceMut::I16(out)) if estimated => dither_rows(simd, (p, row), z, (to, draws), out),
        _ => dither_blocks(simd, (p, row), z, (to, draws), out),
    }
}

/// [`dither`] by [`dither_row`].
fn dither_rows<Y: Element>(
    simd: Simd,
    (p, row): (&[i32], usize),
    z: Slice<'_>,
    (to, draws): (Precision, Draws),
    out: &mut [Y],
) {
    let mut words = [0u32; BLOCK];
    for ((p, out), start) in p.chunks(BLOCK).zip(out.chunks_mut(BLOCK)).zip((0..).step_by(BLOCK)) {
        let words = &mut words[..p.len()];
        draws.fill(simd, start as u64, words);
        let (mut p, mut words) = (p, &*words);
        for_rows(start, row, out, |m, _, out| {
            let ((these, p_rest), (drawn, words_rest)) = (p.split_at(out.len()), words.split_at(out.len()));
            (p, words) = (p_rest, words_rest);
            dither_row(simd, these, drawn, z.get(m).max(1), to, out);
        });
    }
}

/// [`dither`] of anything, block by block.
fn dither_blocks(
    simd: Simd,
    (p, row): (Slice<'_>, usize),
    z: Slice<'_>,
    (to, draws): (Precision, Draws),
    out: &mut SliceMut<'_>,
) {
    let mut words = [0u32; BLOCK];
    for_blocks::<i64>(simd, out, |start, block| {
        let words = &mut words[..block.len()];
        draws.fill(simd, start as u64, words);
        p.load(simd, start, block);
        let mut words = &*words;
        for_rows(start, row, block, |m, _, part| {
            let (these, rest) = words.split_at(part.len());
            words = rest;
            let d = z.get(m).max(1);
            if to.limit < ESTIMATED {
                dither_part(simd, part, these, d, to);
            } else {
                for (p, word) in part.iter_mut().zip(these) {
                    let rest = (i64::from(*word) * d) >> 32;
                    *p = ((*p << to.shift) + rest).div_euclid(d).clamp(-to.limit, to.limit);
                }
            }
        });
    });
}

impl OnHost for Dropout {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let draws = Draws::new(on.context, self.stream, DROPOUT_DRAWS);
        dropout(on.simd, on.operand(0)?, (self, draws), on.limit(), out);
        Ok(())
    }
}

impl OnHost for Dither {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let draws = Draws::new(on.context, self.stream, DITHER_DRAWS);
        let p = (on.operand(0)?, self.depth as usize);
        dither(on.simd, p, on.operand(1)?, (on.to(self.bits.into()), draws), out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dividends around every kind of quotient, next to integers and beyond the limit, under the least, the largest and
    /// middle draws.
    #[test]
    fn estimates_of_drawn_quotients_are_corrected() {
        for simd in [Simd::BASELINE, Simd::detect()] {
            for d in [1i64, 2, 3, 127, 255, 256, 32767, 65537, 1 << 20, (1 << 24) + 1, (1 << 29) - 1] {
                for (shift, limit) in [(0, 32767i64), (7, 127), (7, 32767), (14, 8191), (15, 32767), (30, 32767)] {
                    for word in [0, 1, 255, 256, 1 << 31, (1 << 31) + 255, u32::MAX - 255, u32::MAX] {
                        let drawn = (i64::from(word) * d) >> 32;
                        let edges = (0..31).map(|b| 1i64 << b).chain([limit, limit + 1, limit + 2]).flat_map(|q| {
                            let exact = (q * d - drawn) >> shift;
                            [exact - 1, exact, exact + 1, q, q - 1]
                        });
                        let p: Vec<i32> = edges.flat_map(|p| [p, -p]).filter_map(|p| i32::try_from(p).ok()).collect();
                        let (mut out, words) = (vec![0i16; p.len()], vec![word; p.len()]);
                        dither_row(simd, &p, &words, d, Precision { shift, limit }, &mut out);
                        for (p, out) in p.iter().zip(out) {
                            let dividend = (i128::from(*p) << shift) + i128::from(drawn);
                            let due = dividend.div_euclid(d.into()).clamp((-limit).into(), limit.into());
                            assert_eq!(i128::from(out), due, "({p}·2^{shift} + {drawn}) / {d}");
                        }
                    }
                }
            }
        }
    }
}
