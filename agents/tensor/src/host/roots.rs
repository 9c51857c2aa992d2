//! Ratio and Shrink: quotients by roots (rules N-42 and N-43).

use tensorlink_num::operators::{Ratio, Shrink};
use tensorlink_program::EngineError;

use super::block::{BLOCK, Block, Element, for_blocks};
use super::quotient::{ESTIMATED, bound, floor_quotient, floor_root};
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut};

multiversion! {
    /// What Ratio divides by.
    fn divisors(v: &mut [i64], floor: i64) {
        for v in v {
            *v = floor_root((*v).max(0)) + floor;
        }
    }
}

/// `⌊(2·m·2^bits + d) / 2d⌋`, limits below [`ESTIMATED`].
#[inline(always)]
fn rounded(m: i64, d: i64, bits: u32, limit: i64) -> i64 {
    floor_quotient((m << (bits + 1)) + d, 2 * d, bound(limit)).clamp(-limit, limit)
}

/// Rule N-42 by bits and a floor, limits below [`ESTIMATED`].
#[inline(always)]
pub(super) fn rounded_ratio(m: i64, v: i64, (bits, floor): (u32, i64), limit: i64) -> i64 {
    rounded(m, floor_root(v.max(0)) + floor, bits, limit)
}

multiversion! {
    /// Rule N-42, limits below [`ESTIMATED`]: in one pass, so that memory is fetched while quotients are computed.
    fn estimated<M: Element, V: Element, Y: Element>(m: &[M], v: &[V], by: (u32, i64), limit: i64, out: &mut [Y]) {
        for ((m, v), out) in m.iter().zip(v).zip(out) {
            *out = Y::narrow(rounded_ratio(m.wide(), v.wide(), by, limit));
        }
    }
}

/// [`estimated`] for the widths that optimisers have; whether these are.
fn fused(simd: Simd, m: Slice<'_>, v: Slice<'_>, by: (u32, i64), limit: i64, out: &mut SliceMut<'_>) -> bool {
    match (m, v, out) {
        (Slice::I32(m), Slice::I32(v), SliceMut::I16(out)) => estimated(simd, m, v, by, limit, out),
        (Slice::I32(m), Slice::I32(v), SliceMut::I32(out)) => estimated(simd, m, v, by, limit, out),
        (Slice::I32(m), Slice::I64(v), SliceMut::I16(out)) => estimated(simd, m, v, by, limit, out),
        (Slice::I32(m), Slice::I64(v), SliceMut::I32(out)) => estimated(simd, m, v, by, limit, out),
        (Slice::I64(m), Slice::I64(v), SliceMut::I32(out)) => estimated(simd, m, v, by, limit, out),
        (Slice::I64(m), Slice::I64(v), SliceMut::I64(out)) => estimated(simd, m, v, by, limit, out),
        _ => return false,
    }
    true
}

/// Rule N-42.
pub(crate) fn ratio(
    simd: Simd,
    m: Slice<'_>,
    v: Slice<'_>,
    (bits, floor): (u32, i64),
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    if limit < ESTIMATED && fused(simd, m, v, (bits, floor), limit, out) {
        return;
    }
    let Block(other) = &mut Block([0i64; BLOCK]);
    for_blocks::<i64>(simd, out, |start, block| {
        let other = &mut other[..block.len()];
        m.load(simd, start, block);
        v.load(simd, start, other);
        divisors(simd, other, floor);
        if limit < ESTIMATED {
            for (m, d) in block.iter_mut().zip(&*other) {
                *m = rounded(*m, *d, bits, limit);
            }
        } else {
            for (m, d) in block.iter_mut().zip(&*other) {
                *m = ((*m << (bits + 1)) + d).div_euclid(2 * d).clamp(-limit, limit);
            }
        }
    });
}

/// Rule N-43: few elements, norms of tensors.
pub(crate) fn shrink(simd: Simd, s: Slice<'_>, (most, bits): (i64, u32), limit: i64, out: &mut SliceMut<'_>) {
    let one = 1i64 << bits;
    for_blocks::<i64>(simd, out, |start, block| {
        s.load(simd, start, block);
        for s in block {
            *s = (one * most / floor_root((*s).max(0)).max(1)).min(one).min(limit);
        }
    });
}

impl OnHost for Ratio {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        ratio(on.simd, on.operand(0)?, on.operand(1)?, (self.bits, self.floor), on.limit(), out);
        Ok(())
    }
}

impl OnHost for Shrink {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        shrink(on.simd, on.operand(0)?, (self.limit, self.bits), on.limit(), out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Roots one below, at and one above squares, up to the largest.
    #[test]
    fn roots_next_to_squares_have_the_right_floor() {
        let roots = (0..32).flat_map(|b| [(1i64 << b) - 1, 1 << b, (1 << b) + 1]).chain([3_037_000_498, 3_037_000_499]);
        let squares = roots.filter_map(|root| root.checked_mul(root)).flat_map(|x| [x - 1, x, x.saturating_add(1)]);
        for x in squares.chain([i64::MAX - 1, i64::MAX]) {
            for simd in [Simd::BASELINE, Simd::detect()] {
                let mut d = [x; 9];
                divisors(simd, &mut d, 1);
                assert_eq!(d, [x.max(0).isqrt() + 1; 9], "{x}");
            }
        }
    }

    /// Dividends around whole multiples of the divisor, of either sign, and beyond the limit.
    #[test]
    fn estimates_are_corrected() {
        for d in [1i64, 2, 3, 127, 255, 65537, 1 << 20, (1 << 31) + 1, (1 << 40) - 1, (1 << 41) + 7] {
            for limit in [127, 32767, i64::from(i32::MAX), ESTIMATED - 1] {
                let edges = (0..61).map(|b| 1i64 << b).chain([limit - 1, limit, limit + 1, limit + 2, limit + 3]);
                // Half odd multiples of the divisor, where rounding turns.
                let multiples =
                    edges.filter_map(|q| (2 * q - 1).checked_mul(d)).filter(|x| *x < 1 << 61).map(|x| x >> 1);
                let m: Vec<i64> = multiples.flat_map(|m| [m - 1, m, m + 1]).flat_map(|m| [m, -m]).collect();
                for simd in [Simd::BASELINE, Simd::detect()] {
                    let mut out = vec![0i64; m.len()];
                    estimated(simd, &m, &vec![0i32; m.len()], (0, d), limit, &mut out);
                    for (m, out) in m.iter().zip(out) {
                        let due = (2 * i128::from(*m) + i128::from(d)).div_euclid(2 * i128::from(d));
                        assert_eq!(i128::from(out), due.clamp((-limit).into(), limit.into()), "{m} / {d}");
                    }
                }
            }
        }
    }
}
