//! Elementwise operators on what lies between products, of 17 to 32 bits, in one pass: what activations of 24 bits are
//! made of.

use tensorlink_num::operators::Lookup;

use super::block::{BLOCK, Element, Precision, rescale};
use crate::simd::{Simd, multiversion};

/// Computes `f` of the elements of `a` and `b`, and rounds to `2^shift`, for which [`serves`] holds (rule N-2).
#[inline(always)]
fn zip<Y: Element>(a: &[i32], b: &[i32], to: Precision, out: &mut [Y], f: impl Fn(i64, i64) -> i64) {
    let (by, limit) = (to.shift as u32, to.limit);
    if by == 0 {
        for ((a, b), out) in a.iter().zip(b).zip(out) {
            *out = Y::narrow(f((*a).into(), (*b).into()).clamp(-limit, limit));
        }
        return;
    }
    let below_half = (1i64 << (by - 1)) - 1;
    for ((a, b), out) in a.iter().zip(b).zip(out) {
        let x = f((*a).into(), (*b).into());
        let odd = (x >> by) & 1;
        *out = Y::narrow(((x + below_half + odd) >> by).clamp(-limit, limit));
    }
}

/// Whether results rounded by this shift are computed here, accumulators being below 2^62.
pub(crate) const fn serves(shift: i32) -> bool {
    0 <= shift && shift < i64::BITS as i32 - 1
}

multiversion! {
    fn combine_part(a: &[i32], b: &[i32], coefficients: (i64, i64), to: Precision, out: &mut [i32]) {
        let (ca, cb) = coefficients;
        zip(a, b, to, out, |a, b| ca * a + cb * b);
    }
}

multiversion! {
    fn mul_part(a: &[i32], b: &[i32], to: Precision, out: &mut [i32]) {
        zip(a, b, to, out, |a, b| a * b);
    }
}

/// Rule N-13 where [`serves`] holds; `b` is repeated along `a`.
pub(crate) fn combine(simd: Simd, (a, ca): (&[i32], i64), (b, cb): (&[i32], i64), to: Precision, out: &mut [i32]) {
    for (a, out) in a.chunks(b.len()).zip(out.chunks_mut(b.len())) {
        combine_part(simd, a, b, (ca, cb), to, out);
    }
}

/// Rule N-15 where [`serves`] holds; `b` is repeated along `a`.
pub(crate) fn mul(simd: Simd, a: &[i32], b: &[i32], to: Precision, out: &mut [i32]) {
    for (a, out) in a.chunks(b.len()).zip(out.chunks_mut(b.len())) {
        mul_part(simd, a, b, to, out);
    }
}

multiversion! {
    /// Rule N-50 of a row below 2^30.
    pub(crate) fn shift_row<Y: Element>(x: &[i32], shift: i32, limit: i64, out: &mut [Y]) {
        let limit = limit as i32;
        if shift == 0 {
            for (out, x) in out.iter_mut().zip(x) {
                *out = Y::narrow((*x).clamp(-limit, limit).into());
            }
            return;
        }
        // A shift of 31 leaves nothing of what is below 2^30.
        let by = (shift as u32).min(31);
        let below_half = (1i32 << (by - 1)) - 1;
        for (out, x) in out.iter_mut().zip(x) {
            let odd = (*x >> by) & 1;
            let rounded = (x.wrapping_add(below_half).wrapping_add(odd)) >> by;
            *out = Y::narrow(rounded.clamp(-limit, limit).into());
        }
    }
}

multiversion! {
    /// Entry and rest of each argument below 2^30 (first half of rule N-18).
    fn cells(x: &[i32], entries: &mut [i32], rest: &mut [i32], attributes: &Lookup) {
        let Lookup { input_shift, fraction_bits, log, .. } = *attributes;
        let (end, last, low) = (1i32 << (log + fraction_bits), (1i32 << log) - 1, attributes.low as i32);
        entries.copy_from_slice(x);
        rescale(entries, input_shift as i32, i64::from(i32::MAX));
        for (x, rest) in entries.iter_mut().zip(rest) {
            let u = (*x - low).clamp(0, end);
            *x = (u >> fraction_bits).min(last);
            *rest = u - (*x << fraction_bits);
        }
    }
}

multiversion! {
    /// Blends neighbouring entries and rounds (second half of the rule).
    fn blend(pairs: &[[i32; 2]], rest: &[i32], attributes: &Lookup, limit: i64, out: &mut [i32]) {
        let (by, fraction_bits) = (attributes.shift as u32, attributes.fraction_bits);
        let below_half = (1i64 << (by - 1)) - 1;
        for (([left, right], rest), out) in pairs.iter().zip(rest).zip(out) {
            let x = (i64::from(*left) << fraction_bits) + i64::from(right - left) * i64::from(*rest);
            let odd = (x >> by) & 1;
            *out = ((x + below_half + odd) >> by).clamp(-limit, limit) as i32;
        }
    }
}

/// Whether a Lookup of arguments up to a limit is computed here: arguments and offset stay below 2^30, and entries,
/// which differ by less than 2^31.
pub(crate) fn looks_up(attributes: &Lookup, x_limit: i64, table_limit: i64) -> bool {
    let Lookup { input_shift, low, fraction_bits, log, shift } = *attributes;
    let argument = u128::from(x_limit.unsigned_abs()) << input_shift.min(0).unsigned_abs();
    let small = argument < 1 << 29 && low.unsigned_abs() < 1 << 29 && log + fraction_bits < 30;
    small && table_limit < 1 << 30 && (1..62).contains(&shift)
}

/// Rule N-18 where [`looks_up`] holds; `entries` is the table.
pub(crate) fn lookup(simd: Simd, x: &[i32], entries: &[i32], attributes: &Lookup, limit: i64, out: &mut [i32]) {
    let (mut places, mut rest, mut pairs) = ([0i32; BLOCK], [0i32; BLOCK], [[0i32; 2]; BLOCK]);
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        let (places, rest, pairs) = (&mut places[..x.len()], &mut rest[..x.len()], &mut pairs[..x.len()]);
        cells(simd, x, places, rest, attributes);
        for (pair, place) in pairs.iter_mut().zip(places.iter()) {
            // Places lie below the last entry's.
            let place = *place as usize;
            pair.copy_from_slice(&entries[place..place + 2]);
        }
        blend(simd, pairs, rest, attributes, limit, out);
    }
}
