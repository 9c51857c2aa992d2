//! Tables of the functions that integers look up: constants of a program.
//!
//! Floats come from `libm`, whose software arithmetic gives the same bits on every machine.

use tensorlink_num::{Tensor, TensorError};
use tensorlink_types::{TensorType, TypeError};
use thiserror::Error;

use crate::step::Function;

/// `log2` of the number of cells of a [`lookup`] table.
pub const LOOKUP_LOG: i64 = 12;
/// Bits of its entries.
const LOOKUP_BITS: u8 = 26;

/// A table could not be formed for an input type.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum TableError {
    /// The table's type is out of range.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// An entry does not fit.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The table of powers of two could not be made.
    #[error(transparent)]
    Exp(#[from] tensorlink_num::tables::TableError),
    /// The input has fewer than 13 or more than 28 bits, so that cells would hold no or too many fractions.
    #[error("a lookup of {0} bits: use 13 to 28")]
    InputBits(u8),
}

/// A table and the attributes of the Lookup that reads it (rule N-18).
#[derive(Clone, PartialEq, Debug)]
pub struct LookupTable {
    /// `2^12 + 1` entries over the whole range of the input type.
    pub table: Tensor,
    /// `low`: the fixed-point input of the first entry.
    pub low: i64,
    /// `fraction_bits`.
    pub fraction_bits: i64,
}

/// `x·Φ(x)`.
pub fn gelu(x: f64) -> f64 {
    x * normal(x)
}

/// `Φ(x) + x·φ(x)`.
pub fn gelu_derivative(x: f64) -> f64 {
    normal(x) + x * libm::exp(-x * x / 2.0) / libm::sqrt(2.0 * std::f64::consts::PI)
}

/// Distribution function of the standard normal.
fn normal(x: f64) -> f64 {
    libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// Table of a function over everything an input type can hold, so that no input is clamped and none is shifted.
///
/// # Errors
/// [`TableError::InputBits`] for inputs narrower than 13 bits or wider than 28.
pub fn lookup(function: Function, input: &TensorType) -> Result<LookupTable, TableError> {
    let bits = i64::from(input.bits());
    let fraction_bits = bits - LOOKUP_LOG;
    if !(1..=16).contains(&fraction_bits) {
        return Err(TableError::InputBits(input.bits()));
    }
    // Inputs lie in ±2^range; so does the function, or in ±2 for the derivative.
    let range = bits - 1 - i64::from(input.exponent());
    let (f, reach): (fn(f64) -> f64, i64) = match function {
        Function::Gelu => (gelu, range.max(0)),
        Function::GeluDerivative => (gelu_derivative, 1),
    };
    let exponent = i64::from(LOOKUP_BITS) - 2 - reach;
    let unit = libm::exp2(exponent as f64);
    let cell = libm::exp2((range + 1 - LOOKUP_LOG) as f64);
    let half = 1i64 << (LOOKUP_LOG - 1);
    let entries: Vec<i64> = (-half..=half).map(|j| libm::round(f(j as f64 * cell) * unit) as i64).collect();
    let ty = TensorType::new(LOOKUP_BITS, i16::try_from(exponent).unwrap_or(i16::MAX), &[entries.len() as u32])?;
    Ok(LookupTable { table: Tensor::from_wide(ty, &entries)?, low: -(1i64 << (bits - 1)), fraction_bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_matches_known_values() {
        // Values of the exact form as PyTorch prints them.
        for (x, y) in [(0.0, 0.0), (1.0, 0.841_344_746), (-1.0, -0.158_655_254), (3.0, 2.995_950_306)] {
            assert!((gelu(x) - y).abs() < 1e-8, "{x}");
        }
        for x in [-3.0, -0.7, 0.0, 0.4, 2.5] {
            let difference = (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
            assert!((gelu_derivative(x) - difference).abs() < 1e-8, "{x}");
        }
    }

    #[test]
    fn narrow_inputs_are_refused() {
        let ty = TensorType::new(8, 4, &[1]).unwrap();
        assert_eq!(lookup(Function::Gelu, &ty), Err(TableError::InputBits(8)));
    }
}
