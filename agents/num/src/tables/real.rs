//! Elementary functions of non-negative reals in fixed point: 90 fraction bits in 256-bit words.
//!
//! Every series below has only positive terms, so nothing cancels and each truncation costs at most one unit of 2^−90 a
//! term: results are good to 2^−80 on the ranges named. Operations on [`U256`] wrap instead of panicking; the ranges
//! keep them far from wrapping. No divisor is zero.

use tensorlink_types::U256;

/// Fraction bits.
pub(super) const FRACTION: usize = 90;

/// One.
pub(super) fn one() -> U256 {
    U256::from(1).wrapping_shl(FRACTION)
}

/// Product of two fixed-point numbers whose integer parts have at most 76 bits together.
pub(super) fn times(a: U256, b: U256) -> U256 {
    a.wrapping_mul(b).wrapping_shr(FRACTION)
}

/// Sum of a series given by its first term and each term's successor, until terms vanish.
fn series(first: U256, next: impl Fn(U256, u64) -> U256) -> U256 {
    let (mut term, mut sum, mut n) = (first, first, 0u64);
    // Terms shrink at least geometrically after the 100th on every range used here.
    while term != U256::ZERO && n < 2_000 {
        term = next(term, n);
        sum = sum.wrapping_add(term);
        n = n.wrapping_add(1);
    }
    sum
}

fn over(a: U256, n: u64) -> U256 {
    a.checked_div(U256::from(n)).unwrap_or_default()
}

/// `2n + odd`.
const fn odd(n: u64, odd: u64) -> u64 {
    n.wrapping_mul(2).wrapping_add(odd)
}

/// `ln 2 = Σ 1 / (k·2^k)`.
fn ln2() -> U256 {
    (1..=FRACTION as u64).fold(U256::ZERO, |sum, k| sum.wrapping_add(over(one().wrapping_shr(k as usize), k)))
}

/// `√(2π)`; π by Machin's formula, `16·atan(1/5) − 4·atan(1/239)`.
fn sqrt_two_pi() -> U256 {
    let atan_inverse = |n: u64| {
        let power = |k: u64| (0..odd(k, 1)).fold(one(), |p, _| over(p, n));
        let term = |k: u64| over(power(k), odd(k, 1));
        let sum =
            |parity: u64| (0..40u64).filter(|k| k & 1 == parity).fold(U256::ZERO, |sum, k| sum.wrapping_add(term(k)));
        sum(0).wrapping_sub(sum(1))
    };
    let pi = atan_inverse(5).wrapping_shl(4).wrapping_sub(atan_inverse(239).wrapping_shl(2));
    // √(x·2^−90) is √(x·2^90)·2^−90.
    pi.wrapping_shl(FRACTION.wrapping_add(1)).root(2)
}

/// Constants that every evaluation needs, computed once a table.
pub(super) struct Reals {
    ln2: U256,
    sqrt_two_pi: U256,
}

/// `e^−x = mantissa · 2^−halvings`, mantissa between 1 and 2: small results keep their digits.
struct Decay {
    mantissa: U256,
    halvings: usize,
}

impl Reals {
    pub(super) fn new() -> Self {
        Self { ln2: ln2(), sqrt_two_pi: sqrt_two_pi() }
    }

    /// `√(2π)`.
    pub(super) const fn sqrt_two_pi(&self) -> U256 {
        self.sqrt_two_pi
    }

    /// `e^−x` for `x < 128`.
    fn decay(&self, x: U256) -> Decay {
        let halvings = x.checked_div(self.ln2).unwrap_or_default().saturating_to::<usize>().saturating_add(1);
        let rest = self.ln2.wrapping_mul(U256::from(halvings)).wrapping_sub(x);
        let mantissa = series(one(), |term, n| over(times(term, rest), n.wrapping_add(1)));
        Decay { mantissa, halvings }
    }

    /// `e^−x` for `x < 128`.
    pub(super) fn exp_neg(&self, x: U256) -> U256 {
        let Decay { mantissa, halvings } = self.decay(x);
        mantissa.wrapping_shr(halvings)
    }

    /// `ln x` for `0 < x < 2^32`, as whether it is positive, and magnitude. With x = m·2^e, ½ ≤ m < 1, it is
    /// `e·ln 2 − 2·artanh((1 − m)/(1 + m))`; nothing cancels but where x is a little more than 1.
    pub(super) fn ln(&self, x: U256) -> (bool, U256) {
        let (places, positive) = (x.bit_len(), x > one());
        let m = x.wrapping_shl(FRACTION.saturating_sub(places)).wrapping_shr(places.saturating_sub(FRACTION));
        let ratio = one().saturating_sub(m).wrapping_shl(FRACTION);
        let z = ratio.checked_div(one().wrapping_add(m)).unwrap_or_default();
        let square = times(z, z);
        let (mut power, mut artanh, mut n) = (z, z, 3u64);
        while power != U256::ZERO {
            power = times(power, square);
            artanh = artanh.wrapping_add(over(power, n));
            n = n.wrapping_add(2);
        }
        let octaves = self.ln2.wrapping_mul(U256::from(places.abs_diff(FRACTION)));
        let rest = artanh.wrapping_shl(1);
        (positive, if places <= FRACTION { octaves.wrapping_add(rest) } else { octaves.abs_diff(rest) })
    }

    /// Density of the standard normal distribution, for `z < 9`.
    pub(super) fn density(&self, z: U256) -> U256 {
        let e = self.exp_neg(times(z, z).wrapping_shr(1));
        e.wrapping_shl(FRACTION).checked_div(self.sqrt_two_pi).unwrap_or_default()
    }

    /// `Φ(z)`, distribution of the standard normal, for `z < 9`: `½ + φ(z)·Σ z^(2n+1) / (1·3·…·(2n+1))` (Marsaglia,
    /// *Evaluating the normal distribution*, J. Stat. Softw. 2004).
    pub(super) fn normal(&self, z: U256) -> U256 {
        let square = times(z, z);
        let sum = series(z, |term, n| over(times(term, square), odd(n, 3)));
        let Decay { mantissa, halvings } = self.decay(square.wrapping_shr(1));
        let product = sum.wrapping_mul(mantissa).wrapping_shr(halvings);
        one().wrapping_shr(1).wrapping_add(product.checked_div(self.sqrt_two_pi).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digits from the literature, in units of 10^−24.
    fn digits(x: U256) -> U256 {
        (x * U256::from(10u64.pow(12)) * U256::from(10u64.pow(12)) + (one() >> 1)) >> FRACTION
    }

    fn close(x: U256, decimal: &str) {
        let (x, expected) = (digits(x), decimal.parse::<U256>().unwrap());
        assert!(x.abs_diff(expected) <= U256::from(1), "{x} is not {expected}");
    }

    #[test]
    fn constants() {
        close(ln2(), "693147180559945309417232");
        close(sqrt_two_pi(), "2506628274631000502415765");
    }

    #[test]
    fn exponential() {
        let reals = Reals::new();
        close(reals.exp_neg(U256::ZERO), "1000000000000000000000000");
        close(reals.exp_neg(one()), "367879441171442321595524");
        close(reals.exp_neg(one() * U256::from(20)), "2061153622438558");
    }

    #[test]
    fn logarithm() {
        let reals = Reals::new();
        close(reals.ln(one()).1, "0");
        for (x, positive, decimal) in [
            (one() * U256::from(10), true, "2302585092994045684017991"),
            (one() / U256::from(10), false, "2302585092994045684017991"),
            (one() * U256::from(3) / U256::from(2), true, "405465108108164381978013"),
            (one() >> 32, false, "22180709777918249901351428"),
        ] {
            assert_eq!(reals.ln(x).0, positive);
            close(reals.ln(x).1, decimal);
        }
    }

    #[test]
    fn normal_distribution() {
        let reals = Reals::new();
        close(reals.normal(U256::ZERO), "500000000000000000000000");
        close(reals.normal(one()), "841344746068542948585233");
        close(reals.normal(one() * U256::from(3)), "998650101968369905473348");
        close(reals.density(U256::ZERO), "398942280401432677939946");
        close(reals.density(one()), "241970724519143349797830");
        // 1 − Φ(8) = 6.22·10^−16.
        close(one() - reals.normal(one() * U256::from(8)), "622096057");
    }
}
