//! Draws of the standard Gumbel distribution for Perturb (rule N-36).

use tensorlink_types::{TensorType, U256};

use super::TableError;
use super::real::{FRACTION, Reals, one};
use crate::bounds::{GUMBEL_EXPONENT, GUMBEL_TABLE_LEN};
use crate::tensor::Tensor;

/// The least that hold the largest entry, that of `v = 2^−32`: 22.2 with 16 fraction bits.
const BITS: u8 = 22;
/// Binary places of the cells of an octave.
const CELL: usize = 8;
/// `1 − v` is at least `2^−33` (rule N-36).
const LEAST: usize = 33;

/// Entry `257·n + j` is `−ln(−ln(1 − v))` at `v = 2^−(n+1)·(1 + j/256)`, rounded to 16 fraction bits: 8224 entries of
/// 22 bits, the same on every machine.
///
/// # Errors
/// None for these constants; those of the constructors are passed on rather than assumed away.
pub fn gumbel_table() -> Result<Tensor, TableError> {
    let len = u32::try_from(GUMBEL_TABLE_LEN).unwrap_or_default();
    let ty = TensorType::new(BITS, GUMBEL_EXPONENT, &[len])?;
    let reals = Reals::new();
    let octave = |n: usize| (0..=1u64 << CELL).map(move |j| (n, j));
    let values: Vec<i64> = (0..32).flat_map(octave).map(|(n, j)| entry(&reals, n, j)).collect();
    Ok(Tensor::from_wide(ty, &values)?)
}

fn entry(reals: &Reals, n: usize, j: u64) -> i64 {
    // 256 + j is 1 + j/256 in cells.
    let cells = U256::from(j.saturating_add(1 << CELL));
    let v = cells.wrapping_shl(FRACTION.wrapping_sub(CELL).wrapping_sub(n).wrapping_sub(1));
    let rest = one().saturating_sub(v).max(one().wrapping_shr(LEAST));
    let (_, decay) = reals.ln(rest);
    let (above, value) = reals.ln(decay);
    let drop = FRACTION.wrapping_sub(GUMBEL_EXPONENT.unsigned_abs().into());
    let half = U256::from(1).wrapping_shl(drop.wrapping_sub(1));
    let magnitude = value.wrapping_add(half).wrapping_shr(drop).saturating_to::<i64>();
    if above { magnitude.saturating_neg() } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_the_nearest() {
        for (i, entry) in gumbel_table().unwrap().to_f64().into_iter().enumerate() {
            let (n, j) = (i / 257, i % 257);
            let v = (-(n as f64) - 1.0).exp2() * (1.0 + j as f64 / 256.0);
            // Accurate for small v, where a float's 1 − v is not.
            let exact = -(-(-v.min(1.0 - (-33f64).exp2())).ln_1p()).ln();
            assert!((entry - exact).abs() < 0.500_01 / 65_536.0, "{n} {j}: {entry}, not {exact}");
        }
    }

    /// A change of this is a change of every program that draws.
    #[test]
    fn bits_are_pinned() {
        let hash = alloy_primitives::keccak256(gumbel_table().unwrap().to_bytes());
        assert_eq!(hash.to_string(), "0xcc41d0952d872848ce50048bdc4afe0ad9d430ff0b2ef411f233dff534f7a4e9");
    }
}
