//! Words of Philox4x32-10 (rule N-4) in vectors: as many counters go through each round together as there are lanes.

use tensorlink_num::philox::{MULTIPLIERS, ROUNDS, WEYL, philox4x32};

use crate::simd::multiversion;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Simd;

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
}
