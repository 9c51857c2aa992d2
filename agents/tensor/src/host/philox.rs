//! Words of Philox4x32-10 (rule N-4) in vectors: as many counters go through each round together as there are lanes.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_mask_blend_epi32, _mm512_mul_epu32, _mm512_permutex2var_epi64, _mm512_set1_epi64,
    _mm512_setr_epi64, _mm512_slli_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_ternarylogic_epi64,
};
#[cfg(target_arch = "x86_64")]
use std::array;

use tensorlink_num::philox::{MULTIPLIERS, ROUNDS, SERVED, WEYL, philox4x32};

#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, ODD};
use crate::simd::{Simd, multiversion};

/// Counters that go together.
const LANES: usize = 16;

/// Words in the low halves of lanes as wide as their products; of the high halves nothing is read.
type Words = [u64; LANES];

/// Products of words by a constant: in their low halves the low words, as they are.
#[inline(always)]
fn products(multiplier: u32, mut words: Words) -> Words {
    for word in &mut words {
        *word = (*word & 0xffff_ffff) * u64::from(multiplier);
    }
    words
}

/// High words of products, mixed with words and a key.
#[inline(always)]
fn mixed(mut products: Words, words: Words, key: u32) -> Words {
    for (product, word) in products.iter_mut().zip(words) {
        *product = (*product >> 32) ^ word ^ u64::from(key);
    }
    products
}

multiversion! {
    /// Output word 0 of the counters `(place, rest)`.
    pub(crate) fn draw(places: &[u32], key: [u32; 2], rest: [u32; 3], words: &mut [u32]) {
        let (chunks, last) = places.as_chunks::<LANES>();
        let (out, out_last) = words.split_at_mut(chunks.len() * LANES);
        for (places, out) in chunks.iter().zip(out.chunks_exact_mut(LANES)) {
            let rest = rest.map(|word| [u64::from(word); LANES]);
            let [mut c0, mut c1, mut c2, mut c3] = [places.map(u64::from), rest[0], rest[1], rest[2]];
            let [mut k0, mut k1] = key;
            for _ in 0..ROUNDS {
                let (first, second) = (products(MULTIPLIERS[0], c0), products(MULTIPLIERS[1], c2));
                (c0, c1, c2, c3) = (mixed(second, c1, k0), second, mixed(first, c3, k1), first);
                (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
            }
            for (out, word) in out.iter_mut().zip(c0) {
                *out = word as u32;
            }
        }
        for (place, word) in last.iter().zip(out_last) {
            *word = philox4x32(key, [*place, rest[0], rest[1], rest[2]])[0];
        }
    }
}

/// All output words of the counters `(first, rest)`, `(first + 1, rest)` and so on, one after the other.
pub(crate) fn draw_all(simd: Simd, first: u32, key: [u32; 2], rest: [u32; 3], words: &mut [u32]) {
    let [c1, c2, c3] = rest;
    let (mut next, mut words) = (first, words);
    #[cfg(target_arch = "x86_64")]
    if simd.level() == Level::Avx512 {
        let (groups, last) = words.as_chunks_mut();
        next = next.wrapping_add((groups.len() * GROUP) as u32);
        // SAFETY: a `Simd` of this level exists only where `Simd::detect` found these features.
        unsafe { draw_groups(first, key, rest, groups) };
        words = last;
    }
    for words in words.chunks_mut(SERVED as usize) {
        let block = philox4x32(key, [next, c1, c2, c3]);
        words.copy_from_slice(&block[..words.len()]);
        next = next.wrapping_add(1);
    }
}

/// Counters that go together in [`draw_groups`]: one in each lane of 64 bits.
#[cfg(target_arch = "x86_64")]
const GROUP: usize = 8;

/// [`draw_all`] of whole groups; a compiler left to itself moves words through memory between rounds.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn draw_groups(first: u32, key: [u32; 2], [c1, c2, c3]: [u32; 3], groups: &mut [[u32; GROUP * SERVED as usize]]) {
    let splat = |word: u32| _mm512_set1_epi64(word.into());
    let multipliers = MULTIPLIERS.map(splat);
    let keys: [[__m512i; 2]; ROUNDS as usize] =
        array::from_fn(|round| array::from_fn(|i| splat(key[i].wrapping_add(WEYL[i].wrapping_mul(round as u32)))));
    let rest = [splat(c1), splat(c2), splat(c3)];
    // Words in pairs, of which the first is the low one; then pairs in turn.
    let (low, high) = (_mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15));
    // Of lanes, only the low halves are read.
    let mut places = _mm512_add_epi64(splat(first), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
    for group in groups {
        let (mut c0, [mut c1, mut c2, mut c3]) = (places, rest);
        for [k0, k1] in keys {
            let (p0, p1) = (_mm512_mul_epu32(c0, multipliers[0]), _mm512_mul_epu32(c2, multipliers[1]));
            c0 = _mm512_ternarylogic_epi64::<XOR>(_mm512_srli_epi64::<32>(p1), c1, k0);
            c2 = _mm512_ternarylogic_epi64::<XOR>(_mm512_srli_epi64::<32>(p0), c3, k1);
            (c1, c3) = (p1, p0);
        }
        let first = _mm512_mask_blend_epi32(ODD, c0, _mm512_slli_epi64::<32>(c1));
        let second = _mm512_mask_blend_epi32(ODD, c2, _mm512_slli_epi64::<32>(c3));
        let (start, end) = group.split_at_mut(GROUP * SERVED as usize / 2);
        // SAFETY: half a group is a vector.
        unsafe {
            _mm512_storeu_si512(start.as_mut_ptr().cast(), _mm512_permutex2var_epi64(first, low, second));
            _mm512_storeu_si512(end.as_mut_ptr().cast(), _mm512_permutex2var_epi64(first, high, second));
        }
        places = _mm512_add_epi64(places, _mm512_set1_epi64(GROUP as i64));
    }
}

/// Of three operands, by their bits.
#[cfg(target_arch = "x86_64")]
const XOR: i32 = 0x96;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_draw_what_the_reference_draws() {
        let places: Vec<u32> = (0..100u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
        for simd in [Simd::BASELINE, Simd::detect()] {
            for length in [1, 15, 16, 17, 100] {
                let (key, rest) = ([3, u32::MAX - 5], [7, u32::MAX, 1 << 17]);
                let mut words = vec![0; length];
                draw(simd, &places[..length], key, rest, &mut words);
                let due = places[..length].iter().map(|place| philox4x32(key, [*place, rest[0], rest[1], rest[2]])[0]);
                assert!(due.eq(words));
            }
        }
    }

    #[test]
    fn all_words_of_a_block_are_drawn_in_order() {
        for simd in [Simd::BASELINE, Simd::detect()] {
            for length in [1, 4, 31, 32, 33, 63, 64, 65, 200] {
                let (first, key, rest) = (u32::MAX - 20, [3, u32::MAX - 5], [7, u32::MAX, 1 << 17]);
                let mut words = vec![0; length];
                draw_all(simd, first, key, rest, &mut words);
                let block = |i| philox4x32(key, [first.wrapping_add(i), rest[0], rest[1], rest[2]]);
                assert!((0..).flat_map(block).take(length).eq(words));
            }
        }
    }
}
