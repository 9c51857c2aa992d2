//! Normalize: exact rounded quotients of rows by a divisor each; and OneHotSub, by which its gradient begins.
//!
//! An estimate in floating point is at most one off; the remainder, computed in integers, tells.

use tensorlink_num::operators::{Normalize, OneHotSub};
use tensorlink_program::EngineError;

use super::block::{Element, Precision, for_blocks, for_rows, rescale_block};
use super::quotient::{F32_LIMIT, corrected_quotient};
use super::{Host, OnHost};
use crate::simd::{Simd, multiversion};
use crate::slice::{Slice, SliceMut};

/// Largest dividend for which a quotient in `f64` has the right floor: the nearest quotient below an integer is further
/// from it than half a unit in the last place.
const F64_DIVIDEND: i64 = 1 << 52;

/// Divisors up to which remainders of estimated quotients fit `i32`: they lie between −2z and 4z.
const I32_DIVISOR: i64 = 1 << 29;

/// Elements at the end of a row that are looked at together for whether all are 0.
const ZEROS: usize = 64;

multiversion! {
    /// `⌊(2·p·2^bits + z) / 2z⌋`, every dividend below [`F64_DIVIDEND`].
    fn divide_f64(p: &mut [i64], bits: u32, z: i64, limit: i64) {
        let divisor = (2 * z) as f64;
        for p in p {
            let dividend = (*p << (bits + 1)) + z;
            *p = ((dividend as f64 / divisor).floor() as i64).clamp(-limit, limit);
        }
    }
}

multiversion! {
    /// The same for rows of `p` of at most 32 bits, quotients of at most 16, `bits` at most 30, and divisors up to
    /// [`I32_DIVISOR`].
    fn divide_f32<P: Element, Y: Element>(p: &[P], rows: (&[i64], usize), bits: u32, limit: i64, out: &mut [Y]) {
        let (z, row) = rows;
        let limit = limit as i32;
        for ((p, z), out) in p.chunks_exact(row).zip(z).zip(out.chunks_exact_mut(row)) {
            let factor = (f64::from(1u32 << bits) / *z as f64) as f32;
            let z = *z as i32;
            // Causal rows end in zeros, whose quotients are 0.
            let zero = |part: &&[P]| part.iter().fold(0, |bits, p| bits | p.wide()) == 0;
            let zeros: usize = p.rchunks(ZEROS).take_while(zero).map(<[P]>::len).sum();
            let (out, hidden) = out.split_at_mut(row - zeros);
            hidden.fill(Y::default());
            for (p, out) in p.iter().zip(out) {
                let p = p.wide() as i32;
                let dividend = (p << (bits + 1)).wrapping_add(z);
                let quotient = corrected_quotient(p as f32 * factor + 0.5, dividend, 2 * z, limit);
                *out = Y::narrow(quotient.into());
            }
        }
    }
}

/// Rule N-22; `p_limit` bounds the elements of `p`, and what is below 1 in `z` becomes 1.
pub(crate) fn normalize(
    simd: Simd,
    (p, p_limit): (Slice<'_>, i64),
    (z, row): (&mut [i64], usize),
    bits: u32,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    for z in &mut *z {
        *z = (*z).max(1);
    }
    let estimated = limit <= F32_LIMIT && bits <= 30 && z.iter().all(|z| *z <= I32_DIVISOR);
    let rows = (&*z, row);
    match (p, &mut *out) {
        (Slice::I16(p), SliceMut::I8(out)) if estimated => divide_f32(simd, p, rows, bits, limit, out),
        (Slice::I16(p), SliceMut::I16(out)) if estimated => divide_f32(simd, p, rows, bits, limit, out),
        (Slice::I32(p), SliceMut::I8(out)) if estimated => divide_f32(simd, p, rows, bits, limit, out),
        (Slice::I32(p), SliceMut::I16(out)) if estimated => divide_f32(simd, p, rows, bits, limit, out),
        _ => divide_blocks(simd, (p, p_limit), rows, bits, limit, out),
    }
}

/// [`normalize`] of anything, block by block.
fn divide_blocks(
    simd: Simd,
    (p, p_limit): (Slice<'_>, i64),
    (z, row): (&[i64], usize),
    bits: u32,
    limit: i64,
    out: &mut SliceMut<'_>,
) {
    for_blocks::<i64>(simd, out, |start, block| {
        p.load(simd, start, block);
        for_rows(start, row, block, |m, _, part| {
            let z = z[m];
            if (p_limit << (bits + 1)) + z < F64_DIVIDEND {
                divide_f64(simd, part, bits, z, limit);
            } else {
                for p in part {
                    *p = ((*p << (bits + 1)) + z).div_euclid(2 * z).clamp(-limit, limit);
                }
            }
        });
    });
}

impl OnHost for Normalize {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let mut z = on.operand(1)?.to_wide();
        let (p, z) = ((on.operand(0)?, on.ty(0)?.limit()), (&mut *z, self.depth as usize));
        normalize(on.simd, p, z, self.bits, on.limit(), out);
        Ok(())
    }
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

impl OnHost for OneHotSub {
    fn on_host(&self, on: &Host<'_>, out: &mut SliceMut<'_>) -> Result<(), EngineError> {
        let label = (on.operand(1)?, self.depth as usize);
        one_hot_sub(on.simd, on.operand(0)?, label, self.one, on.to(self.shift), out);
        Ok(())
    }
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
                        divide_f64(simd, &mut p, 0, z, limit);
                        assert_eq!(p[0], dividend.div_euclid(2 * z), "{dividend} / {}", 2 * z);
                    }
                }
            }
        }
    }

    /// Dividends around every kind of quotient: next to integers, beyond the limit, of either sign.
    #[test]
    fn estimates_are_corrected() {
        for simd in [Simd::BASELINE, Simd::detect()] {
            for z in [1i64, 2, 3, 127, 255, 256, 32767, 65537, 1 << 20, (1 << 24) + 1, I32_DIVISOR - 1, I32_DIVISOR] {
                for (bits, limit) in [(0u32, 32767i64), (7, 127), (7, 32767), (14, 8191), (15, 32767), (30, 32767)] {
                    let edges = (0..31).map(|b| 1i64 << b).chain([limit, limit + 1, limit + 2]).flat_map(|q| {
                        let exact = ((2 * q - 1) * z) >> (bits + 1);
                        [exact - 1, exact, exact + 1, q, q - 1]
                    });
                    let p: Vec<i32> = edges.flat_map(|p| [p, -p]).filter_map(|p| i32::try_from(p).ok()).collect();
                    let mut out = vec![0i16; p.len()];
                    divide_f32(simd, &p, (&[z], p.len()), bits, limit, &mut out);
                    for (p, out) in p.iter().zip(out) {
                        let due = ((i128::from(*p) << (bits + 1)) + i128::from(z)).div_euclid(2 * i128::from(z));
                        let due = due.clamp(-i128::from(limit), i128::from(limit));
                        assert_eq!(i128::from(out), due, "{p}·2^{bits} / {z}");
                    }
                }
            }
        }
    }
}
