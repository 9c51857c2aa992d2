//! keccak-f[1600] over vectors: one permutation, written once and instantiated for each vector width.

#![allow(
    clippy::indexing_slicing,
    reason = "constant indices into fixed arrays, and offsets checked by `word`'s callers"
)]

/// Bytes absorbed by a permutation of keccak-256.
const RATE: usize = 136;

/// ι: round constants.
const ROUNDS: [u64; 24] = [
    0x0000000000000001,
    0x0000000000008082,
    0x800000000000808a,
    0x8000000080008000,
    0x000000000000808b,
    0x0000000080000001,
    0x8000000080008081,
    0x8000000000008009,
    0x000000000000008a,
    0x0000000000000088,
    0x0000000080008009,
    0x000000008000000a,
    0x000000008000808b,
    0x800000000000008b,
    0x8000000000008089,
    0x8000000000008003,
    0x8000000000008002,
    0x8000000000000080,
    0x000000000000800a,
    0x800000008000000a,
    0x8000000080008081,
    0x8000000000008080,
    0x0000000080000001,
    0x8000000080008008,
];

/// Word at byte `at` of the padded message `domain ‖ payload ‖ 01 00… 80`, whose last byte is at `end − 1`.
#[inline(always)]
fn word(domain: u8, payload: &[u8], at: usize, end: usize) -> u64 {
    // Every word but the first and the last few comes straight from the payload.
    if let Some(Some(bytes)) = at.checked_sub(1).and_then(|from| payload.get(from..)).map(<[u8]>::first_chunk) {
        return u64::from_le_bytes(*bytes);
    }
    let mut bytes = [0u8; 8];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = match (at + i).checked_sub(1) {
            None => domain,
            Some(from) if from == payload.len() => 1,
            Some(from) => payload.get(from).copied().unwrap_or(0),
        };
    }
    if at + 8 == end {
        bytes[7] |= 0x80;
    }
    u64::from_le_bytes(bytes)
}

/// A module that hashes `$n` messages at once. `$xor3(a, b, c) = a ⊕ b ⊕ c`, `$chi(a, b, c) = a ⊕ (¬b ∧ c)`, `$rol::<K>`
/// rotates each word left.
macro_rules! keccak {
    ($name:ident, $feature:literal, $n:literal, $vector:ident, $xor3:ident, $chi:ident, $rol:ident) => {
        pub(super) mod $name {
            use core::arch::x86_64::$vector;

            use super::ops::{$chi, $rol, $xor3};
            use super::{RATE, ROUNDS, word};
            use crate::keccak::Digest;

            /// keccak-256 of `domain ‖ payload` for payloads of one length.
            #[target_feature(enable = $feature)]
            pub(in crate::keccak) fn hash(domain: u8, payloads: [&[u8]; $n], out: &mut [Digest; $n]) {
                let blocks = (payloads[0].len() + 1) / RATE + 1;
                let zero: $vector = bytemuck::cast([0u64; $n]);
                let mut state = [zero; 25];
                for block in 0..blocks {
                    for (i, lane) in state.iter_mut().take(RATE / 8).enumerate() {
                        let at = block * RATE + 8 * i;
                        let words: $vector = bytemuck::cast(payloads.map(|p| word(domain, p, at, blocks * RATE)));
                        *lane = $xor3(*lane, words, zero);
                    }
                    permute(&mut state);
                }
                for (i, words) in state.iter().take(4).enumerate() {
                    let words: [u64; $n] = bytemuck::cast(*words);
                    for (digest, word) in out.iter_mut().zip(words) {
                        digest[8 * i..8 * i + 8].copy_from_slice(&word.to_le_bytes());
                    }
                }
            }

            /// keccak-f[1600]. Word `x, y` is `s[x + 5y]`; θ, ρ and π are fused: row by row of the output, its five words
            /// are fetched from where π takes them, then χ.
            #[target_feature(enable = $feature)]
            fn permute(s: &mut [$vector; 25]) {
                for round in ROUNDS {
                    let a = *s;
                    let column = |x: usize| $xor3($xor3(a[x], a[x + 5], a[x + 10]), a[x + 15], a[x + 20]);
                    let c = [column(0), column(1), column(2), column(3), column(4)];
                    let r = [$rol::<1>(c[0]), $rol::<1>(c[1]), $rol::<1>(c[2]), $rol::<1>(c[3]), $rol::<1>(c[4])];
                    macro_rules! from {
                        ($i:literal, $k:literal) => {
                            $rol::<$k>($xor3(a[$i], c[($i + 4) % 5], r[($i + 1) % 5]))
                        };
                    }
                    let rows = [
                        [from!(0, 0), from!(6, 44), from!(12, 43), from!(18, 21), from!(24, 14)],
                        [from!(3, 28), from!(9, 20), from!(10, 3), from!(16, 45), from!(22, 61)],
                        [from!(1, 1), from!(7, 6), from!(13, 25), from!(19, 8), from!(20, 18)],
                        [from!(4, 27), from!(5, 36), from!(11, 10), from!(17, 15), from!(23, 56)],
                        [from!(2, 62), from!(8, 55), from!(14, 39), from!(15, 41), from!(21, 2)],
                    ];
                    for y in 0..5 {
                        for x in 0..5 {
                            s[x + 5 * y] = $chi(rows[y][x], rows[y][(x + 1) % 5], rows[y][(x + 2) % 5]);
                        }
                    }
                    let constant: $vector = bytemuck::cast([round; $n]);
                    s[0] = $xor3(s[0], constant, bytemuck::cast([0u64; $n]));
                }
            }
        }
    };
}

/// The three word operations at each width.
mod ops {
    use core::arch::x86_64::{
        __m256i, __m512i, _mm_cvtsi32_si128, _mm256_andnot_si256, _mm256_or_si256, _mm256_sll_epi64, _mm256_srl_epi64,
        _mm256_xor_si256, _mm512_rol_epi64, _mm512_ternarylogic_epi64,
    };

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn xor3_512(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        _mm512_ternarylogic_epi64::<0x96>(a, b, c)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn chi_512(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
        _mm512_ternarylogic_epi64::<0xd2>(a, b, c)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn rol_512<const K: i32>(a: __m512i) -> __m512i {
        _mm512_rol_epi64::<K>(a)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn xor3_256(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        _mm256_xor_si256(_mm256_xor_si256(a, b), c)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn chi_256(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
        _mm256_xor_si256(a, _mm256_andnot_si256(b, c))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn rol_256<const K: i32>(a: __m256i) -> __m256i {
        // Shifts by a register count: 64 − K is no constant expression on stable Rust, and a count of 64 gives zero.
        let (left, right) = (_mm_cvtsi32_si128(K), _mm_cvtsi32_si128(64 - K));
        _mm256_or_si256(_mm256_sll_epi64(a, left), _mm256_srl_epi64(a, right))
    }
}

keccak!(avx512, "avx512f", 8, __m512i, xor3_512, chi_512, rol_512);
keccak!(avx2, "avx2", 4, __m256i, xor3_256, chi_256, rol_256);
