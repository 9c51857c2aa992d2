//! keccak-f[1600] over vectors: one permutation, written once and instantiated for each vector width.

#![allow(
    clippy::indexing_slicing,
    reason = "constant or reduced indices into fixed arrays; a rest is shorter than its chunk"
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

/// `N` bytes of a payload from byte `at`, and of what follows it: 01, then zeros.
#[inline(always)]
fn chunk<const N: usize>(payload: &[u8], at: usize) -> [u8; N] {
    if let Some(chunk) = payload.get(at..).and_then(<[u8]>::first_chunk) {
        return *chunk;
    }
    let mut chunk = [0u8; N];
    let rest = payload.get(at..).unwrap_or_default();
    chunk[..rest.len()].copy_from_slice(rest);
    if at <= payload.len() {
        chunk[rest.len()] = 1;
    }
    chunk
}

/// A module that hashes `$n` messages at once. `$xor3(a, b, c) = a ⊕ b ⊕ c`, `$chi(a, b, c) = a ⊕ (¬b ∧ c)`,
/// `$rol::<K>` rotates each word left, `$shift(a, b)` moves each word of `a` up by a byte and brings in the top byte of
/// that of `b`, `$transpose` turns one vector a message into one vector a word.
macro_rules! keccak {
    (
        $name:ident, $feature:literal, $n:literal, $vector:ident, $xor3:ident, $chi:ident, $rol:ident, $shift:ident,
        $transpose:ident
    ) => {
        pub(super) mod $name {
            use core::arch::x86_64::$vector;

            use super::ops::{$chi, $rol, $shift, $transpose, $xor3};
            use super::{RATE, ROUNDS, chunk};
            use crate::keccak::Digest;

            /// keccak-256 of `domain ‖ payload` for payloads of one length.
            #[target_feature(enable = $feature)]
            pub(in crate::keccak) fn hash(domain: u8, payloads: [&[u8]; $n], out: &mut [Digest; $n]) {
                let blocks = (payloads[0].len() + 1) / RATE + 1;
                let zero: $vector = bytemuck::cast([0u64; $n]);
                let mut state = [zero; 25];
                // Payloads are read in whole vectors; the domain byte before them moves every word up by a byte.
                let mut words = [zero; $n];
                let mut before: $vector = bytemuck::cast([u64::from(domain) << 56; $n]);
                let mut read = 0;
                for block in 1..=blocks {
                    for lane in state.iter_mut().take(RATE / 8) {
                        if read % $n == 0 {
                            let chunks = payloads.map(|p| bytemuck::cast(chunk::<{ 8 * $n }>(p, 8 * read)));
                            words = $transpose(chunks);
                        }
                        let word = words[read % $n];
                        *lane = $xor3(*lane, $shift(word, before), zero);
                        (before, read) = (word, read + 1);
                    }
                    if block == blocks {
                        let end: $vector = bytemuck::cast([0x80u64 << 56; $n]);
                        state[RATE / 8 - 1] = $xor3(state[RATE / 8 - 1], end, zero);
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

            /// keccak-f[1600]. Word `x, y` is `s[x + 5y]`; θ, ρ and π are fused: row by row of the output, its five
            /// words are fetched from where π takes them, then χ.
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

/// The operations on words at each width.
mod ops {
    use core::arch::x86_64::{
        __m256i, __m512i, _mm_cvtsi32_si128, _mm256_andnot_si256, _mm256_or_si256, _mm256_permute2x128_si256,
        _mm256_sll_epi64, _mm256_slli_epi64, _mm256_srl_epi64, _mm256_srli_epi64, _mm256_unpackhi_epi64,
        _mm256_unpacklo_epi64, _mm256_xor_si256, _mm512_or_si512, _mm512_rol_epi64, _mm512_shuffle_i64x2,
        _mm512_slli_epi64, _mm512_srli_epi64, _mm512_ternarylogic_epi64, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
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
    #[target_feature(enable = "avx512f")]
    pub(super) fn shift_512(a: __m512i, b: __m512i) -> __m512i {
        _mm512_or_si512(_mm512_slli_epi64::<8>(a), _mm512_srli_epi64::<56>(b))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn transpose_512(r: [__m512i; 8]) -> [__m512i; 8] {
        // Pairs of rows interleaved: even words low, odd words high.
        let even = [(0, 1), (2, 3), (4, 5), (6, 7)].map(|(i, j)| _mm512_unpacklo_epi64(r[i], r[j]));
        let odd = [(0, 1), (2, 3), (4, 5), (6, 7)].map(|(i, j)| _mm512_unpackhi_epi64(r[i], r[j]));
        // Quarters 0 and 2, or 1 and 3, of two vectors; twice gives one quarter of each of four.
        let columns = |t: [__m512i; 4]| {
            let (a, b) = (_mm512_shuffle_i64x2::<0x88>(t[0], t[1]), _mm512_shuffle_i64x2::<0xdd>(t[0], t[1]));
            let (c, d) = (_mm512_shuffle_i64x2::<0x88>(t[2], t[3]), _mm512_shuffle_i64x2::<0xdd>(t[2], t[3]));
            [
                _mm512_shuffle_i64x2::<0x88>(a, c),
                _mm512_shuffle_i64x2::<0x88>(b, d),
                _mm512_shuffle_i64x2::<0xdd>(a, c),
                _mm512_shuffle_i64x2::<0xdd>(b, d),
            ]
        };
        let (even, odd) = (columns(even), columns(odd));
        [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
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

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn shift_256(a: __m256i, b: __m256i) -> __m256i {
        _mm256_or_si256(_mm256_slli_epi64::<8>(a), _mm256_srli_epi64::<56>(b))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn transpose_256(r: [__m256i; 4]) -> [__m256i; 4] {
        let (a, b) = (_mm256_unpacklo_epi64(r[0], r[1]), _mm256_unpackhi_epi64(r[0], r[1]));
        let (c, d) = (_mm256_unpacklo_epi64(r[2], r[3]), _mm256_unpackhi_epi64(r[2], r[3]));
        [
            _mm256_permute2x128_si256::<0x20>(a, c),
            _mm256_permute2x128_si256::<0x20>(b, d),
            _mm256_permute2x128_si256::<0x31>(a, c),
            _mm256_permute2x128_si256::<0x31>(b, d),
        ]
    }
}

keccak!(avx512, "avx512f", 8, __m512i, xor3_512, chi_512, rol_512, shift_512, transpose_512);
keccak!(avx2, "avx2", 4, __m256i, xor3_256, chi_256, rol_256, shift_256, transpose_256);
