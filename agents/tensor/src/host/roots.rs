//! Ratio and Shrink: quotients by square roots, estimated in floating point and corrected in integers.

use super::block::{BLOCK, for_blocks};
use crate::simd::{Simd, multiversion};
use crate::tensor::{Slice, SliceMut};

/// Largest root of an `i64`.
const LARGEST_ROOT: u64 = 3_037_000_499;
/// Quotients of smaller dividends have the right floor in `f64`: see `divide`.
const F64_DIVIDEND: u128 = 1 << 52;

/// `⌊√v⌋` of what is not negative: the root in `f64` is at most one off.
#[inline(always)]
fn root(v: i64) -> i64 {
    let v = v.max(0).cast_unsigned();
    let root = ((v as f64).sqrt() as u64).min(LARGEST_ROOT);
    let root = root - u64::from(root * root > v);
    (root + u64::from(root < LARGEST_ROOT && (root + 1) * (root + 1) <= v)).cast_signed()
}

multiversion! {
    /// Every dividend below [`F64_DIVIDEND`].
    fn ratio_f64(m: &mut [i64], v: &[i64], attributes: Ratio) {
        for (m, v) in m.iter_mut().zip(v) {
            let divisor = root(*v) + attributes.floor;
            let dividend = (*m << (attributes.bits + 1)) + divisor;
            let quotient = (dividend as f64 / (2 * divisor) as f64).floor() as i64;
            *m = quotient.clamp(-attributes.limit, attributes.limit);
        }
    }
}

/// Attributes of rule N-42, and the output's limit.
#[derive(Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) bits: u32,
    pub(crate) floor: i64,
    pub(crate) limit: i64,
}

/// Rule N-42; operands with their limits.
pub(crate) fn ratio(
    simd: Simd,
    (m, m_limit): (Slice<'_>, i64),
    (v, v_limit): (Slice<'_>, i64),
    attributes: Ratio,
    out: &mut SliceMut<'_>,
) {
    let largest = u128::from(m_limit.unsigned_abs()) << (attributes.bits + 1);
    let divisor = u128::from((root(v_limit) + attributes.floor).unsigned_abs());
    let estimated = largest + divisor < F64_DIVIDEND;
    let mut roots = [0i64; BLOCK];
    for_blocks::<i64>(simd, out, |start, block| {
        let roots = &mut roots[..block.len()];
        m.load(simd, start, block);
        v.load(simd, start, roots);
        if estimated {
            return ratio_f64(simd, block, roots, attributes);
        }
        for (m, v) in block.iter_mut().zip(roots) {
            let divisor = root(*v) + attributes.floor;
            let quotient = ((*m << (attributes.bits + 1)) + divisor).div_euclid(2 * divisor);
            *m = quotient.clamp(-attributes.limit, attributes.limit);
        }
    });
}

/// Rule N-43.
pub(crate) fn shrink(simd: Simd, s: Slice<'_>, most: i64, bits: u32, limit: i64, out: &mut SliceMut<'_>) {
    for_blocks::<i64>(simd, out, |start, block| {
        s.load(simd, start, block);
        for s in block {
            *s = (1i64 << bits).min((most << bits) / root(*s).max(1)).min(limit);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_floors() {
        let squares = (0..32).map(|b| 1u64 << b).chain([3, LARGEST_ROOT, LARGEST_ROOT - 1, (1 << 26) + 1]);
        for n in squares.filter(|n| *n <= LARGEST_ROOT) {
            let square = n * n;
            for v in [square.saturating_sub(1), square, square + 1] {
                let Ok(v) = i64::try_from(v) else { continue };
                assert_eq!(root(v), v.isqrt(), "{v}");
            }
        }
        assert_eq!([root(-5), root(0), root(i64::MAX)], [0, 0, LARGEST_ROOT as i64]);
    }
}
