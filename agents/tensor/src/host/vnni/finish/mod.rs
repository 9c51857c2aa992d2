//! What becomes of the sums of a product while they are in registers.
//!
//! | module | what lives there |
//! |---|---|
//! | `round` | sums of sixteen lanes: widened, joined, rounded |
//! | `scales` | scales of rows and columns |
//! | `rescaled`, `scaled`, `shifted` | the finishes |

mod rescaled;
mod round;
mod scaled;
mod scales;
mod shifted;

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_mask_cvtepi32_storeu_epi8, _mm512_mask_cvtepi32_storeu_epi16,
    _mm512_mask_storeu_epi32, _mm512_slli_epi32, _mm512_storeu_si512,
};

use super::super::block::{Accumulator, Element};
use super::lanes::{LANES, store};

pub(crate) use rescaled::Rescaled;
pub(in crate::host) use round::widen;
pub(crate) use scaled::{Added, Scaled};
pub(crate) use shifted::Shifted;

/// Turns sums into mantissas of the result. Columns begin at multiples of [`LANES`].
pub(crate) trait Finish: Sync {
    /// Whether sums of at most `bound` in magnitude may come in `i32`.
    fn narrow(&self, bound: u128) -> bool;

    /// Finishes the sums of a row from a column on; as many as `out` has elements.
    fn finish<A: Accumulator, T: Element>(&self, place: (usize, usize), sums: &mut [A; LANES], out: &mut [T]);

    /// The same apart, for what is not computed in registers: the code of what is stays small.
    #[inline(never)]
    fn finish_apart<A: Accumulator, T: Element>(&self, place: (usize, usize), sums: &mut [A; LANES], out: &mut [T]) {
        self.finish(place, sums, out);
    }

    /// The same for sums of 32 bits in a register.
    ///
    /// # Safety
    /// The processor has AVX-512.
    unsafe fn finish_narrow<T: Element>(&self, place: (usize, usize), sums: __m512i, out: &mut [T]);

    /// The same for sums of 64 bits in two registers.
    ///
    /// # Safety
    /// The processor has AVX-512.
    unsafe fn finish_wide<T: Element>(&self, place: (usize, usize), sums: [__m512i; 2], out: &mut [T]);

    /// The same for sums `256·high + low` of two registers of 32 bits: high, low; `narrow` if the sums fit 32 bits
    /// too, and may come in them.
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn finish_halves<T: Element>(
        &self,
        place: (usize, usize),
        (narrow, [high, low]): (bool, [__m512i; 2]),
        out: &mut [T],
    ) {
        // SAFETY: the caller vouches for AVX-512.
        unsafe {
            if narrow {
                self.finish_narrow(place, _mm512_add_epi32(_mm512_slli_epi32::<8>(high), low), out);
            } else {
                self.finish_joined(place, [high, low], out);
            }
        }
    }

    /// The same for sums that do not fit 32 bits.
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    #[inline]
    unsafe fn finish_joined<T: Element>(&self, place: (usize, usize), halves: [__m512i; 2], out: &mut [T]) {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { self.finish_wide(place, round::join(halves), out) };
    }
}

/// Lanes of the first `n` of sixteen elements.
const fn first_lanes(n: usize) -> u16 {
    if n >= LANES { u16::MAX } else { (1 << n) - 1 }
}

fn write<A: Accumulator, T: Element>(from: &[A; LANES], to: &mut [T]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = T::narrow(from.wide());
    }
}

/// Narrows lanes, which fit, to as many elements as there are.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn write_lanes<T: Element>(from: __m512i, to: &mut [T]) {
    let (mask, address) = (first_lanes(to.len()), to.as_mut_ptr());
    // SAFETY: the mask admits as many elements as `to` has, of as many bytes.
    unsafe {
        match size_of::<T>() {
            1 => _mm512_mask_cvtepi32_storeu_epi8(address.cast(), mask, from),
            2 => _mm512_mask_cvtepi32_storeu_epi16(address.cast(), mask, from),
            4 => _mm512_mask_storeu_epi32(address.cast(), mask, from),
            _ => write(&store(from).0, to),
        }
    }
}

/// Sums in memory.
#[target_feature(enable = "avx512f")]
#[inline]
fn spill(sums: [__m512i; 2]) -> [i64; LANES] {
    let mut memory = [0i64; LANES];
    for (memory, vector) in memory.as_chunks_mut::<{ LANES / 2 }>().0.iter_mut().zip(sums) {
        // SAFETY: eight elements are a vector.
        unsafe { _mm512_storeu_si512(memory.as_mut_ptr().cast(), vector) };
    }
    memory
}
