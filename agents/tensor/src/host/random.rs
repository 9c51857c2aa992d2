//! Dropout and Dither: elements dropped, and rounding drawn (rules N-46 and N-48).

use tensorlink_graph::StepContext;
use tensorlink_num::philox::key_words;

use super::block::{BLOCK, for_blocks, rescale};
use super::elementwise::Precision;
use super::philox::draw;
use super::quotient::{ESTIMATED, bound, floor_quotient};
use super::rows::for_rows;
use crate::instruction::Dropout;
use crate::simd::{Simd, multiversion};
use crate::tensor::{Slice, SliceMut};

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

    /// Words for at most a block of elements from `start` on, whose places agree in all but their low 32 bits.
    fn fill(self, simd: Simd, start: u64, words: &mut [u32]) {
        let [step, stream, draws] = self.counter;
        // The halves of the place.
        let (first, high) = (start as u32, (start >> 32) as u32);
        let mut places = [0u32; BLOCK];
        for (place, i) in places.iter_mut().zip(0..) {
            *place = first.wrapping_add(i);
        }
        draw(simd, &places[..words.len()], self.key, [step, stream, draws.wrapping_add(high)], words);
    }
}

multiversion! {
    fn keep_block(a: &mut [i64], words: &[u32], attributes: &Dropout, limit: i64) {
        let Dropout { keep, c, shift, .. } = *attributes;
        for (a, word) in a.iter_mut().zip(words) {
            *a = if i64::from(*word) < keep { c * *a } else { 0 };
        }
        rescale(a, shift, limit);
    }
}

/// Rule N-46. Blocks are a divisor of 2^32 long, so that places of one agree in their high half.
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

/// Rule N-48; `to` has the bits for a shift.
pub(crate) fn dither(
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
