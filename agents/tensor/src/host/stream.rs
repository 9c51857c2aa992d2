//! What is larger than the caches: fetched before it is computed with, and written past them, so that memory is not
//! read to be overwritten.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm512_castsi256_si512, _mm512_cvtepi64_epi32, _mm512_inserti64x4,
    _mm512_loadu_si512, _mm512_stream_si512,
};

#[cfg(target_arch = "x86_64")]
use super::block::Element;
#[cfg(target_arch = "x86_64")]
use crate::simd::Level;
use crate::simd::Simd;
use crate::slice::{Slice, SliceMut};

/// Bytes of a line.
const LINE: usize = 64;

impl Slice<'_> {
    /// Begins to fetch so many elements from `start` on, where processors take hints.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn fetch(&self, start: usize, length: usize) {
        fn lines<T: Element>(v: &[T], start: usize, length: usize) {
            let part = &v[start.min(v.len())..(start + length).min(v.len())];
            for line in part.chunks(LINE / size_of::<T>()) {
                // SAFETY: every processor of this architecture has it, and it is no access.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
            }
        }
        crate::slice::each_width!(Slice, self, v => lines(v, start, length));
    }

    /// Nothing, where there are no hints.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) const fn fetch(&self, _: usize, _: usize) {}
}

impl SliceMut<'_> {
    /// As [`Self::store`], past the caches where lines are whole and the processor can; [`fence`] makes it last.
    pub(crate) fn stream(&mut self, simd: Simd, start: usize, block: &[i64]) {
        #[cfg(target_arch = "x86_64")]
        if simd.level() == Level::Avx512 && block.len().is_multiple_of(LINE / size_of::<i32>()) {
            let range = start..start + block.len();
            match self {
                Self::I32(v) if v[start..].as_ptr().addr().is_multiple_of(LINE) => {
                    // SAFETY: the level is the proof of AVX-512.
                    return unsafe { stream_i32(block, &mut v[range]) };
                }
                Self::I64(v) if v[start..].as_ptr().addr().is_multiple_of(LINE) => {
                    // SAFETY: as above.
                    return unsafe { stream_i64(block, &mut v[range]) };
                }
                _ => {}
            }
        }
        self.store(simd, start, block);
    }
}

/// Orders what was streamed before whatever this thread does next.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has it.
    unsafe {
        _mm_sfence();
    }
}

/// Narrows values, which fit, into whole lines.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn stream_i32(from: &[i64], to: &mut [i32]) {
    assert!(to.as_ptr().addr().is_multiple_of(LINE), "lines begin there");
    for (from, to) in from.as_chunks::<16>().0.iter().zip(to.as_chunks_mut::<16>().0) {
        // SAFETY: sixteen elements are two vectors of what is read and an aligned one of what is written.
        unsafe {
            let [low, high] =
                [0, 8].map(|first| _mm512_cvtepi64_epi32(_mm512_loadu_si512(from[first..].as_ptr().cast())));
            let line = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            _mm512_stream_si512(to.as_mut_ptr().cast(), line);
        }
    }
}

/// The same without narrowing.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn stream_i64(from: &[i64], to: &mut [i64]) {
    assert!(to.as_ptr().addr().is_multiple_of(LINE), "lines begin there");
    for (from, to) in from.as_chunks::<8>().0.iter().zip(to.as_chunks_mut::<8>().0) {
        // SAFETY: eight elements are a vector, and aligned where they are written.
        unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), _mm512_loadu_si512(from.as_ptr().cast())) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C, align(64))]
    struct Aligned<T>(T);

    #[test]
    fn what_is_streamed_is_there() {
        let values: Vec<i64> = (0..48).map(|i| (i - 20) * 0x0234_5678).collect();
        for simd in [Simd::BASELINE, Simd::detect()] {
            // From a line on, from within one, and less than lines.
            for (start, length) in [(16, 48), (3, 48), (16, 5)] {
                let (mut narrow, mut wide) = (Aligned([7i32; 80]), Aligned([7i64; 80]));
                SliceMut::I32(&mut narrow.0).stream(simd, start, &values[..length]);
                SliceMut::I64(&mut wide.0).stream(simd, start, &values[..length]);
                fence();
                let due: Vec<i64> = (0..80)
                    .map(|i: usize| i.checked_sub(start).filter(|i| *i < length).map_or(7, |i| values[i]))
                    .collect();
                assert_eq!(wide.0.as_slice(), due);
                assert_eq!(narrow.0.map(i64::from).as_slice(), due);
            }
        }
    }
}
