//! Powers of two for ExpNeg (rule N-20).

use std::iter;

use tensorlink_types::TensorType;

use super::TableError;
use crate::bounds::{EXP_BITS, EXP_EXPONENT, EXP_TABLE_LEN};
use crate::tensor::Tensor;

/// Fraction bits of the computation: 38 more than the table's, of which rounding eats at most ten.
const FRACTION: u32 = 62;

/// `table[j] = ⌊2^24 · 2^(−j/256) + ½⌋` for `j` in `0..=256`: 257 entries of 26 bits, exponent 24 (rule N-20).
///
/// # Errors
/// None for these constants; those of the constructors are passed on rather than assumed away.
pub fn exp2_table() -> Result<Tensor, TableError> {
    let len = u32::try_from(EXP_TABLE_LEN).unwrap_or_default();
    let ty = TensorType::new(EXP_BITS, EXP_EXPONENT, &[len])?;
    let values: Vec<i64> = entries().collect();
    Ok(Tensor::from_wide(ty, &values)?)
}

fn entries() -> impl Iterator<Item = i64> {
    let one = 1u128 << FRACTION;
    // 2^(−1/256) is the eighth repeated square root of one half.
    let step = (0..8).fold(one >> 1, |x, _| (x << FRACTION).isqrt());
    let powers = iter::successors(Some(one), move |x| Some(x.wrapping_mul(step) >> FRACTION));
    let drop = FRACTION.wrapping_sub(24);
    let half = 1u128.wrapping_shl(drop) >> 1;
    // SAFETY of the cast: at most 2^24.
    powers.take(257).map(move |x| (x.wrapping_add(half) >> drop) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::Uint;

    /// Holds 256th powers of 26-bit numbers.
    type Wide = Uint<6720, 105>;

    /// `t = ⌊2^24·2^(−j/256) + ½⌋` is `2t − 1 ≤ 2^(25 − j/256) < 2t + 1`; raised to the 256th power, these
    /// are integers.
    #[test]
    fn every_entry_is_the_nearest() {
        for (j, t) in entries().enumerate() {
            let bound = Wide::from(1) << (25 * 256 - j);
            assert!(power256(2 * t - 1) <= bound, "entry {j} is {t}: too large");
            assert!(bound < power256(2 * t + 1), "entry {j} is {t}: too small");
        }
    }

    fn power256(x: i64) -> Wide {
        (0..8).fold(Wide::from(x as u64), |x, _| x * x)
    }

    #[test]
    fn ends_are_one_and_a_half() {
        let table = exp2_table().unwrap();
        assert_eq!((table.get(0), table.get(256), table.get(257)), (Some(1 << 24), Some(1 << 23), None));
    }
}
