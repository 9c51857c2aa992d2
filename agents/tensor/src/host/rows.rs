//! Operators that reduce rows, or use one value for each row.

use super::block::{Element, for_blocks, rescale_block};
use super::elementwise::Precision;
use super::table::for_rows;
use crate::simd::{Simd, multiversion};
use crate::tensor::{Slice, SliceMut, each_width};

multiversion! {
    /// Rule N-19; `row` elements a row.
    pub(crate) fn row_max<T: Element>(a: &[T], row: usize, out: &mut [T]) {
        for (out, a) in out.iter_mut().zip(a.chunks_exact(row)) {
            *out = a.iter().fold(a[0], |max, x| max.max(*x));
        }
    }
}

multiversion! {
    fn row_sums<T: Element>(a: &[T], row: usize, sums: &mut [i64]) {
        for (sum, a) in sums.iter_mut().zip(a.chunks_exact(row)) {
            *sum = a.iter().map(|x| x.wide()).sum();
        }
    }
}

/// Rule N-21; `row` elements a row.
pub(crate) fn row_sum(simd: Simd, a: Slice<'_>, row: usize, to: Precision, out: &mut SliceMut<'_>) {
    for_blocks::<i64>(simd, out, |start, block| {
        let range = start * row..(start + block.len()) * row;
        each_width!(Slice, a, v => row_sums(simd, &v[range], row, block));
        rescale_block(simd, block, to.shift, to.limit);
    });
}

/// Largest dividend for which a quotient in `f64` has the right floor: the nearest quotient below an integer is further
/// from it than half a unit in the last place.
const F64_DIVIDEND: i64 = 1 << 52;

multiversion! {
    /// `⌊(2·p·2^bits + z) / 2z⌋`, every dividend below [`F64_DIVIDEND`].
    fn divide_small(p: &mut [i64], bits: u32, z: i64, limit: i64) {
        let divisor = (2 * z) as f64;
        for p in p {
            let dividend = (*p << (bits + 1)) + z;
            *p = ((dividend as f64 / divisor).floor() as i64).clamp(-limit, limit);
        }
    }
}

/// Rule N-22; `p_limit` bounds the elements of `p`.
pub(crate) fn normalize(
    simd: Simd,
    (p, p_limit): (Slice<'_>, i64),
    (z, row): (Slice<'_>, usize),
    bits: u32,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    for_blocks::<i64>(simd, out, |start, block| {
        p.load(simd, start, block);
        for_rows(start, row, block, |m, _, part| {
            let z = z.get(m).max(1);
            if (p_limit << (bits + 1)) + z < F64_DIVIDEND {
                divide_small(simd, part, bits, z, limit);
            } else {
                for p in part {
                    *p = ((*p << (bits + 1)) + z).div_euclid(2 * z).clamp(-limit, limit);
                }
            }
        });
    });
}

/// Rule N-23.
pub(crate) fn one_hot_sub(
    simd: Simd,
    p: Slice<'_>,
    (label, row): (Slice<'_>, usize),
    one: i64,
    to: Precision,
    out: &mut SliceMut<'_>,
) {
    for_blocks::<i64>(simd, out, |start, block| {
        p.load(simd, start, block);
        for_rows(start, row, block, |m, first, part| {
            // A label below 0 or beyond the row names no column of it.
            let column = usize::try_from(label.get(m)).ok().and_then(|label| label.checked_sub(first));
            if let Some(p) = column.and_then(|column| part.get_mut(column)) {
                *p -= one;
            }
        });
        rescale_block(simd, block, to.shift, to.limit);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quotients one unit of the dividend below, at and above an integer, up to the largest dividend.
    #[test]
    fn quotients_next_to_integers_have_the_right_floor() {
        let limit = i64::MAX;
        for simd in [Simd::BASELINE, Simd::detect()] {
            for z in (0..51).map(|b| (1i64 << b) + 1).chain([3, 7, 1_000_003]) {
                let z = z | 1;
                for quotient in (0..51).map(|b| 1i64 << b).flat_map(|q| [q - 1, q, q + 1]).flat_map(|q| [q, -q]) {
                    let Some(exact) = (2 * z).checked_mul(quotient).filter(|d| d.abs() < F64_DIVIDEND - 1) else {
                        continue;
                    };
                    // With no bits the dividend is 2p + z, odd as z is.
                    for dividend in [exact - 1, exact + 1] {
                        let mut p = [(dividend - z) / 2];
                        divide_small(simd, &mut p, 0, z, limit);
                        assert_eq!(p[0], dividend.div_euclid(2 * z), "{dividend} / {}", 2 * z);
                    }
                }
            }
        }
    }
}
