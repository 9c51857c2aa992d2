//! Rounding and clamping over the integers (rules N-2 and N-3). Total functions: no input panics or wraps.

/// Largest magnitude of a shift in an operator (rule N-2). [`rescale`] itself takes any.
pub const MAX_SHIFT: i64 = 63;

/// Largest mantissa of `bits` bits: `2^(bits−1) − 1` (rule N-1). Bits are taken into `1..=64`.
pub const fn limit(bits: u8) -> i64 {
    match bits {
        0 | 1 => 0,
        // SAFETY of the shift: 1 ≤ 64 − bits ≤ 62.
        2..=63 => i64::MAX >> (64u8.saturating_sub(bits)),
        _ => i64::MAX,
    }
}

/// `clamp(x, limit) = max(−limit, min(limit, x))`.
pub fn clamp(x: i128, limit: i64) -> i64 {
    let limit = limit.max(0);
    match i64::try_from(x) {
        Ok(x) => x.clamp(limit.saturating_neg(), limit),
        Err(_) if x > 0 => limit,
        Err(_) => limit.saturating_neg(),
    }
}

/// `clamp(⌊x / 2^shift⌉, limit(bits))`, rounding half to even; `x · 2^−shift` clamped where `shift ≤ 0` (rule N-2).
pub fn rescale(x: i128, shift: i64, bits: u8) -> i64 {
    clamp(round_shift(x, shift), limit(bits))
}

/// `⌊x / 2^shift⌉`, rounding half to even, saturating at the ends of `i128` where `shift` is negative.
fn round_shift(x: i128, shift: i64) -> i128 {
    let saturated = match x.signum() {
        0 => 0,
        1 => i128::MAX,
        _ => i128::MIN,
    };
    match u32::try_from(shift.unsigned_abs()) {
        Ok(left) if shift <= 0 && left < 127 => x.saturating_mul(1i128.wrapping_shl(left)),
        Ok(right @ 1..=127) => {
            let quotient = x.wrapping_shr(right);
            let rest = (x as u128) & (u128::MAX.wrapping_shr(128u32.wrapping_sub(right)));
            let half = 1u128.wrapping_shl(right.wrapping_sub(1));
            let up = rest > half || (rest == half && quotient & 1 == 1);
            quotient.saturating_add(i128::from(up))
        }
        // |x| ≤ 2^127, so |x| / 2^128 is at most one half, which rounds to even: 0.
        _ if shift > 0 => 0,
        _ => saturated,
    }
}

/// `⌊(2a + b) / (2b)⌋` (rule N-3). None where `b ≤ 0` or `2a + b` leaves `i128`; rule N-6 keeps accepted operators far
/// from both.
pub fn div(a: i128, b: i128) -> Option<i128> {
    if b <= 0 {
        return None;
    }
    // `div_euclid` is the floor because the divisor is positive.
    a.checked_mul(2)?.checked_add(b)?.checked_div_euclid(b.checked_mul(2)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn limits() {
        assert_eq!([limit(2), limit(8), limit(63), limit(64)], [1, 127, (1 << 62) - 1, i64::MAX]);
    }

    #[test]
    fn half_goes_to_even() {
        let halves = [-5, -3, -1, 1, 3, 5].map(|x| rescale(x, 1, 8));
        assert_eq!(halves, [-2, -2, 0, 0, 2, 2]);
        assert_eq!([-7, -6, -5, 5, 6, 7].map(|x| rescale(x, 2, 8)), [-2, -2, -1, 1, 2, 2]);
    }

    #[test]
    fn extremes_do_not_wrap() {
        assert_eq!(rescale(i128::MAX, -63, 64), i64::MAX);
        assert_eq!(rescale(i128::MIN, -63, 64), -i64::MAX);
        assert_eq!(rescale(i128::MIN, 63, 2), -1);
        assert_eq!(rescale(i128::MIN, 127, 8), -1);
        assert_eq!(rescale(i128::MIN, 128, 8), 0);
        assert_eq!(rescale(i128::MAX, i64::MAX, 8), 0);
        assert_eq!(rescale(-1, i64::MIN, 8), -127);
        assert_eq!(rescale(0, i64::MIN, 8), 0);
    }

    #[test]
    fn div_rounds_half_up() {
        assert_eq!([-3, -2, -1, 0, 1, 2, 3].map(|a| div(a, 2).unwrap()), [-1, -1, 0, 0, 1, 1, 2]);
        assert_eq!(div(1, 0), None);
        assert_eq!(div(1, -1), None);
        assert_eq!(div(i128::MAX, 1), None);
    }

    proptest! {
        #[test]
        fn rescale_is_the_nearest(x in any::<i64>(), shift in 1i64..=63) {
            let (x, unit) = (i128::from(x), 1i128 << shift);
            let y = i128::from(rescale(x, shift, 64));
            let distance = (x - y * unit).abs();
            prop_assert!(2 * distance <= unit);
            prop_assert!(2 * distance < unit || y % 2 == 0);
        }

        #[test]
        fn negative_shift_multiplies(x in any::<i64>(), shift in 0u32..=63, bits in 2u8..=64) {
            let exact = i128::from(x) * (1i128 << shift);
            let expected = exact.clamp(-i128::from(limit(bits)), i128::from(limit(bits)));
            prop_assert_eq!(i128::from(rescale(i128::from(x), -i64::from(shift), bits)), expected);
        }

        #[test]
        fn div_is_the_floor(a in any::<i64>(), b in 1i64..) {
            let (a, b) = (i128::from(a), i128::from(b));
            let y = div(a, b).unwrap();
            prop_assert!(2 * b * y <= 2 * a + b && 2 * a + b < 2 * b * (y + 1));
        }
    }
}
