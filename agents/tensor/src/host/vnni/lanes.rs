//! Vectors of sixteen words, in memory and in registers.

use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_storeu_si512};

/// Rows of a panel; words of a vector.
pub(in crate::host) const LANES: usize = 16;
/// Bytes of a vector.
pub(in crate::host) const VECTOR: usize = 64;
/// Bytes of a word.
pub(in crate::host) const WORD: usize = 4;

/// One word of each of 16 rows; aligned so that loading one never crosses a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(in crate::host) struct Lanes(pub(in crate::host) [i32; LANES]);

impl Lanes {
    pub(in crate::host) const ZERO: Self = Self([0; LANES]);
}

/// A mask of the first `n` of 64 bytes.
pub(in crate::host) const fn first_bytes(n: usize) -> u64 {
    if n >= VECTOR { u64::MAX } else { (1 << n) - 1 }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(in crate::host) fn load(lanes: &Lanes) -> __m512i {
    // SAFETY: `Lanes` has the size of a vector.
    unsafe { _mm512_loadu_si512((&raw const *lanes).cast()) }
}

/// A vector of bytes.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn vector(bytes: &[u8; VECTOR]) -> __m512i {
    // SAFETY: as many bytes as a vector has.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn store(vector: __m512i) -> Lanes {
    let mut lanes = Lanes::ZERO;
    save(vector, &mut lanes);
    lanes
}

/// [`store`] to where there is room.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn save(vector: __m512i, lanes: &mut Lanes) {
    // SAFETY: `Lanes` has the size of a vector.
    unsafe { _mm512_storeu_si512((&raw mut *lanes).cast(), vector) };
}
