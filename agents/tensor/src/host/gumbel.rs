//! Gumbel noise on logits: Perturb (rule N-36).
//!
//! Only elements that reach their row's threshold are computed: they are gathered from a block, drawn for, and
//! put back.

use std::borrow::Cow;

use tensorlink_num::operators;
use tensorlink_program::EngineError;

use super::block::{BLOCK, Element, Precision, rescale};
use super::philox::draw;
use super::tails::least_of;
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut, each_width};

/// Entries of the table for each number of leading zeros.
const OCTAVE: i32 = 257;

/// Elements looked at together for one that reaches the threshold.
const STRIDE: usize = 64;

/// Attributes of rule N-36, and the length of a row.
#[derive(Clone, Copy)]
pub(crate) struct Perturb {
    pub(crate) row: usize,
    pub(crate) bound: i64,
    pub(crate) places: u32,
}

/// Elements of a block that reach the threshold: where they are, and what they become.
struct Reaching {
    count: usize,
    places: [u32; BLOCK],
    values: [i64; BLOCK],
}

/// Draws for them.
struct Draws {
    words: [u32; BLOCK],
    entries: [i32; BLOCK],
    rest: [i32; BLOCK],
    noise: [i64; BLOCK],
}

multiversion! {
    /// Gathers what reaches `least`; `first` is the block's first place in its row.
    fn gather<T: Element>(block: &[T], first: u32, least: T, reaching: &mut Reaching) {
        let mut count = 0;
        for (i, chunk) in block.chunks(STRIDE).enumerate() {
            let reached = chunk.iter().fold(0u8, |count, x| count + u8::from(*x >= least));
            if reached == 0 {
                continue;
            }
            let start = i * STRIDE;
            if usize::from(reached) == chunk.len() {
                let (places, values) = (&mut reaching.places[count..], &mut reaching.values[count..]);
                for (((place, value), x), k) in places.iter_mut().zip(values).zip(chunk).zip(0u32..) {
                    (*place, *value) = (first + start as u32 + k, x.wide());
                }
                count += chunk.len();
                continue;
            }
            for (k, x) in chunk.iter().enumerate() {
                // What does not reach is overwritten by the next.
                reaching.places[count] = first + (start + k) as u32;
                reaching.values[count] = x.wide();
                count += usize::from(*x >= least);
            }
        }
        reaching.count = count;
    }
}

multiversion! {
    /// Where in the table the words lie.
    fn cells(words: &[u32], entries: &mut [i32], rest: &mut [i32]) {
        for ((word, entry), rest) in words.iter().zip(entries).zip(rest) {
            let zeros = word.leading_zeros().min(31);
            // What follows the leading one: 16 bits, of the last word none.
            let fraction = ((*word << zeros) << 1) >> 16;
            *entry = zeros as i32 * OCTAVE + (fraction >> 8) as i32;
            *rest = (fraction & 0xff) as i32;
        }
    }
}

multiversion! {
    fn finish(values: &mut [i64], places: u32, to: Precision) {
        for value in values.iter_mut() {
            *value <<= places;
        }
        rescale(values, to.shift, to.limit);
    }
}

multiversion! {
    fn finish_drawn(values: &mut [i64], noise: &[i64], places: u32, temperature: i64, to: Precision) {
        for (value, noise) in values.iter_mut().zip(noise) {
            // Rounded by 8 places, half to even.
            let noise = (*noise + 127 + ((*noise >> 8) & 1)) >> 8;
            *value = (*value << places) + temperature * noise;
        }
        rescale(values, to.shift, to.limit);
    }
}

/// How a row is perturbed: its seventh part of the controls.
struct Row {
    temperature: i64,
    position: u32,
    seed: [u32; 2],
}

impl Row {
    fn new(controls: Slice<'_>, m: usize) -> Self {
        let control = |i: usize| controls.get(7 * m + i);
        // Modulo 2^32, as the rule says.
        let word = |i: usize| control(i) as u32;
        Self { temperature: control(1).max(0), position: word(2), seed: [word(5), word(6)] }
    }
}

impl Draws {
    /// The sums of neighbouring entries for `places` of a row, 8 binary places above the draws.
    fn fill(&mut self, simd: Simd, row: &Row, places: &[u32], table: &[i32]) -> &[i64] {
        let Self { words, entries, rest, noise } = self;
        let n = places.len();
        draw(simd, places, row.seed, [row.position, 0, 0], &mut words[..n]);
        cells(simd, &words[..n], &mut entries[..n], &mut rest[..n]);
        for ((noise, entry), rest) in noise[..n].iter_mut().zip(&entries[..n]).zip(&rest[..n]) {
            let (entry, rest) = (*entry as usize, i64::from(*rest));
            let (left, right) = (i64::from(table[entry]), i64::from(table[entry + 1]));
            *noise = (left << 8) + (right - left) * rest;
        }
        &noise[..n]
    }
}

/// Rule N-36, of elements, thresholds, controls and the table of draws.
pub(crate) fn perturb(simd: Simd, operands: [Slice<'_>; 4], perturb: &Perturb, to: Precision, out: &mut SliceMut<'_>) {
    let [a, t, controls, table] = operands;
    // At most 32 bits, by the check.
    let table = match table {
        Slice::I32(table) => Cow::Borrowed(table),
        table => Cow::Owned(table.to_wide().into_iter().map(|entry| entry as i32).collect()),
    };
    let mut reaching = Reaching { count: 0, places: [0; BLOCK], values: [0; BLOCK] };
    let mut draws = Draws { words: [0; BLOCK], entries: [0; BLOCK], rest: [0; BLOCK], noise: [0; BLOCK] };
    let mut block = [0i64; BLOCK];
    for m in 0..t.len() {
        let (row, least) = (Row::new(controls, m), t.get(m) + perturb.bound);
        for first in (0..perturb.row).step_by(BLOCK) {
            let length = BLOCK.min(perturb.row - first);
            let start = m * perturb.row + first;
            each_width!(Slice, a, a => match least_of(least) {
                None => reaching.count = 0,
                Some(least) => gather(simd, &a[start..start + length], first as u32, least, &mut reaching),
            });
            let Reaching { count, places, values } = &mut reaching;
            let (places, values) = (&places[..*count], &mut values[..*count]);
            if row.temperature > 0 {
                let noise = draws.fill(simd, &row, places, &table);
                finish_drawn(simd, values, noise, perturb.places, row.temperature, to);
            } else {
                finish(simd, values, perturb.places, to);
            }
            let block = &mut block[..length];
            block.fill(-to.limit);
            for (place, value) in places.iter().zip(values) {
                block[*place as usize - first] = *value;
            }
            out.store(simd, start, block);
        }
    }
}

impl OnHost for operators::Perturb {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let perturb = Perturb { row: self.row as usize, bound: self.bound, places: self.places };
        let operands = [on.operand(0)?, on.operand(1)?, on.operand(2)?, on.operand(3)?];
        self::perturb(on.simd, operands, &perturb, on.to(self.shift), out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_octave_and_place() {
        let words = [0, 1, 2, 3, 0x8000_0000, 0x8000_ffff, 0x0001_2345, u32::MAX];
        for simd in [Simd::BASELINE, Simd::detect()] {
            let (mut entries, mut rest) = ([0i32; 8], [0i32; 8]);
            cells(simd, &words, &mut entries, &mut rest);
            let octaves = [31, 31, 30, 30, 0, 0, 15, 0].map(|octave| octave * OCTAVE);
            let places = [0, 0, 0, 128, 0, 0, 0x23, 255];
            assert_eq!(entries.to_vec(), octaves.iter().zip(places).map(|(o, p)| o + p).collect::<Vec<_>>());
            assert_eq!(rest, [0, 0, 0, 0, 0, 1, 0x45, 255]);
        }
    }
}
