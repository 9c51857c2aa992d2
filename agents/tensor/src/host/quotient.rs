//! Exact floors of quotients and roots of 64 bits: an estimate in floating point is at most one off; what remains,
//! computed in integers, tells.

/// Results beyond which an estimate in `f64`, of two roundings of 2^-53 each, may be more than one off.
pub(super) const ESTIMATED: i64 = 1 << 50;

/// Bound to clamp estimates to where results are clamped to a limit below [`ESTIMATED`]: what is beyond is clamped
/// whatever its remainder is taken to be.
pub(super) const fn bound(limit: i64) -> f64 {
    (limit + 2) as f64
}

/// `⌊a / b⌋`, if that is within the bound; beyond the bound's other side otherwise. `|a| < 2^62`, `1 ≤ b < 2^62`.
#[inline(always)]
pub(super) fn floor_quotient(a: i64, b: i64, bound: f64) -> i64 {
    let estimate = (a as f64 / b as f64).clamp(-bound, bound).floor();
    // SAFETY: finite, as the divisor is not 0, and within a bound that an `i64` holds.
    let quotient: i64 = unsafe { estimate.to_int_unchecked() };
    // Within −b and 2b, so that the product need not fit.
    let rest = a.wrapping_sub(quotient.wrapping_mul(b));
    quotient - i64::from(rest < 0) + i64::from(rest >= b)
}

/// Limit of quotients that an `f32` estimates to far less than one: three roundings of 2^-24 of 2^15 each.
pub(super) const F32_LIMIT: i64 = i16::MAX as i64;

/// The same in 32 bits from an estimate that is less than one off, clamped to a limit up to [`F32_LIMIT`]. Of the
/// dividend only the low half is given: a remainder lies between −b and 2b, and fits though the dividend need not, for
/// divisors up to 2^30.
#[inline(always)]
pub(super) fn corrected_quotient(estimate: f32, a: i32, b: i32, limit: i32) -> i32 {
    let bound = (limit + 2) as f32;
    // Quotients beyond the bound are clamped whatever their remainder is taken to be.
    let estimate = estimate.max(-bound).min(bound).floor();
    // SAFETY: within the bound, even where the estimate is no number.
    let quotient: i32 = unsafe { estimate.to_int_unchecked() };
    let rest = a.wrapping_sub(quotient.wrapping_mul(b));
    (quotient - i32::from(rest < 0) + i32::from(rest >= b)).clamp(-limit, limit)
}

/// `⌊√x⌋` of `x ≥ 0`.
#[inline(always)]
pub(super) fn floor_root(x: i64) -> i64 {
    let estimate = (x as f64).sqrt();
    // SAFETY: a root of at most 2^63.
    let root: i64 = unsafe { estimate.to_int_unchecked() };
    // At most 2^31.5 in magnitude, and so is twice the root.
    let rest = x - root * root;
    root - i64::from(rest < 0) + i64::from(rest > 2 * root)
}
