//! Philox4x32-10, the counter-based generator of every pseudo-random draw (rule N-4).
//!
//! Salmon, Moraes, Dror, Shaw: *Parallel random numbers: as easy as 1, 2, 3*, SC 2011. Chosen because any draw can be
//! recomputed from its coordinates alone.

use tensorlink_types::JobKey;

/// What words 0 and 2 are multiplied by in a round.
pub const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
/// What the words of the key grow by from round to round.
pub const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Rounds.
pub const ROUNDS: u32 = 10;

/// One block of four words.
#[inline]
pub fn philox4x32(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let [mut k0, mut k1] = key;
    let [w0, w1] = WEYL;
    let mut state = counter;
    for _ in 0..ROUNDS {
        state = round([k0, k1], state);
        k0 = k0.wrapping_add(w0);
        k1 = k1.wrapping_add(w1);
    }
    state
}

#[inline]
fn round([k0, k1]: [u32; 2], [c0, c1, c2, c3]: [u32; 4]) -> [u32; 4] {
    let [m0, m1] = MULTIPLIERS;
    let (high0, low0) = product(m0, c0);
    let (high1, low1) = product(m1, c2);
    [high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0]
}

/// Both halves of a product, high first.
#[inline]
const fn product(a: u32, b: u32) -> (u32, u32) {
    // SAFETY of the casts: the product of two 32-bit words fits 64 bits; the casts take its halves.
    let wide = (a as u64).wrapping_mul(b as u64);
    ((wide >> 32) as u32, wide as u32)
}

/// The first 8 bytes of a job key as two little-endian words (rule N-4).
pub fn key_words(job_key: &JobKey) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h, ..] = job_key.0.0;
    [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
}

/// The draw of rule N-4: output word 0 of the counter `(row, step, stream, 0)`.
pub fn draw(job_key: &JobKey, row: u32, step: u32, stream: u32) -> u32 {
    let [word, ..] = philox4x32(key_words(job_key), [row, step, stream, 0]);
    word
}

/// Elements that a block serves, one word each (rules N-46 and N-48).
pub const SERVED: u64 = 4;

/// The draw for element `index` of a tensor (rules N-46 and N-48): with `n = ⌊index/4⌋`, output word `index mod 4` of
/// the counter `(n mod 2^32, step, stream, draws + ⌊n/2^32⌋)`.
pub fn draw_element(job_key: &JobKey, index: u64, step: u32, stream: u32, draws: u32) -> u32 {
    let block = index / SERVED;
    // SAFETY of the casts: the two halves.
    let (low, high) = (block as u32, (block >> 32) as u32);
    let [first, second, third, fourth] = philox4x32(key_words(job_key), [low, step, stream, draws.wrapping_add(high)]);
    match index % SERVED {
        0 => first,
        1 => second,
        2 => third,
        _ => fourth,
    }
}

/// A draw scaled to `0..population` (rule N-24): `⌊draw · population / 2^32⌋`. `population ≤ 2^32`.
pub fn draw_below(job_key: &JobKey, row: u32, step: u32, population: u64) -> u64 {
    u64::from(draw(job_key, row, step, 0)).saturating_mul(population) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensorlink_types::B256;

    /// Known answers published with the authors' Random123 library (`kat_vectors`, philox4x32 10).
    #[test]
    fn known_answers() {
        assert_eq!(philox4x32([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32([u32::MAX; 2], [u32::MAX; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox4x32([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn key_is_little_endian() {
        let mut bytes = [0xff; 32];
        bytes[..8].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let key = JobKey(B256::from(bytes));
        assert_eq!(key_words(&key), [0x0403_0201, 0x0807_0605]);
        assert_eq!(draw(&key, 3, 5, 7), philox4x32([0x0403_0201, 0x0807_0605], [3, 5, 7, 0])[0]);
    }

    #[test]
    fn four_elements_share_a_block() {
        let key = JobKey(B256::repeat_byte(7));
        let block = |low, draws| philox4x32(key_words(&key), [low, 3, 5, draws]);
        let drawn = |first: u64| [0, 1, 2, 3].map(|i| draw_element(&key, first + i, 3, 5, 9));
        assert_eq!(drawn(0), block(0, 9));
        assert_eq!(drawn(44), block(11, 9));
        assert_eq!(drawn((1 << 34) - 4), block(u32::MAX, 9));
        assert_eq!(drawn((3 << 34) + 8), block(2, 12));
    }

    #[test]
    fn draws_cover_the_population_evenly() {
        let key = JobKey(B256::repeat_byte(7));
        let mut counts = [0u32; 10];
        for row in 0..10_000 {
            counts[draw_below(&key, row, 1, 10) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");
        assert!((0..1000).all(|row| draw_below(&key, row, 0, 1) == 0));
    }
}
