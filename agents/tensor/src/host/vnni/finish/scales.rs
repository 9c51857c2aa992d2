//! Scales of rows and of columns.

use std::arch::x86_64::{__m512i, _mm512_maskz_loadu_epi32};
use std::borrow::Cow;

use super::super::super::block::Element;
use super::first_lanes;
use crate::slice::{Slice, each_width};

/// Scales in 32 bits, if they fit.
pub(super) fn narrow(scales: Slice<'_>) -> Option<Cow<'_, [i32]>> {
    match scales {
        Slice::I32(scales) => Some(Cow::Borrowed(scales)),
        scales => {
            let fit = each_width!(Slice, scales, v => v.iter().map(|x| i32::try_from(x.wide()).ok()).collect());
            Option::<Vec<i32>>::map(fit, Cow::Owned)
        }
    }
}

/// The largest magnitude.
pub(super) fn largest(scales: &[i32]) -> u64 {
    scales.iter().fold(0, |largest, scale| largest.max(scale.unsigned_abs())).into()
}

/// Scales of the columns of a panel; zeros beyond the last.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn panel(c: &[i32], first: usize) -> __m512i {
    let c = &c[first..];
    // SAFETY: the mask admits as many elements as there are.
    unsafe { _mm512_maskz_loadu_epi32(first_lanes(c.len()), c.as_ptr()) }
}
