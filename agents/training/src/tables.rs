//! Tables of the functions that integers look up: constants of a program. Their contents come from
//! [`tensorlink_num::tables`], by integer arithmetic; here is what the compiler needs around them.

use tensorlink_num::Tensor;
use tensorlink_num::tables::{self, Grid};
use tensorlink_types::TensorType;
use thiserror::Error;

use crate::step::Function;

/// `log2` of the number of cells of a [`lookup`] table.
pub const LOOKUP_LOG: u8 = 12;
/// Bits of its entries.
const LOOKUP_BITS: u8 = 26;

/// A table could not be formed for an input type.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TableError {
    /// The input's range is beyond what tables cover.
    #[error(transparent)]
    Contents(#[from] tables::TableError),
    /// The input has fewer than 13 or more than 28 bits, so that cells would hold no or too many fractions.
    #[error("a lookup of {0} bits: use 13 to 28")]
    InputBits(u8),
}

/// A table and the attributes of the Lookup that reads it (rule N-18).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookupTable {
    /// `2^12 + 1` entries over the whole range of the input type.
    pub table: Tensor,
    /// `low`: the fixed-point input of the first entry.
    pub low: i64,
    /// `fraction_bits`.
    pub fraction_bits: i64,
}

/// Table of a function over everything an input type can hold, so that no input is clamped and none is shifted.
///
/// # Errors
/// [`TableError::InputBits`] for inputs narrower than 13 bits or wider than 28; [`TableError::Contents`] for inputs
/// whose range no table covers.
pub fn lookup(function: Function, input: &TensorType) -> Result<LookupTable, TableError> {
    let bits = input.bits();
    let fraction_bits = bits.saturating_sub(LOOKUP_LOG);
    if !(1..=16).contains(&fraction_bits) {
        return Err(TableError::InputBits(bits));
    }
    // Inputs lie in ±2^range; so does GELU, while its derivative stays in ±2, and the hyperbolic tangent in ±1.
    let range = i16::from(bits).saturating_sub(1).saturating_sub(input.exponent());
    let (function, reach) = match function {
        Function::Gelu => (tables::Function::Gelu, range.max(0)),
        Function::GeluDerivative => (tables::Function::GeluDerivative, 1),
        Function::GeluTanh => (tables::Function::GeluTanh, range.max(0)),
        Function::GeluTanhDerivative => (tables::Function::GeluTanhDerivative, 1),
        Function::Silu => (tables::Function::Silu, range.max(0)),
        Function::SiluDerivative => (tables::Function::SiluDerivative, 1),
        Function::Tanh => (tables::Function::Tanh, 0),
    };
    let cell = range.saturating_add(1).saturating_sub(LOOKUP_LOG.into());
    let grid = Grid { first: -(1 << (LOOKUP_LOG - 1)), cell, log: LOOKUP_LOG.into() };
    let exponent = i16::from(LOOKUP_BITS).saturating_sub(2).saturating_sub(reach);
    let table = tables::function_table(function, grid, LOOKUP_BITS, exponent)?;
    Ok(LookupTable { table, low: -(1i64 << (bits - 1)), fraction_bits: fraction_bits.into() })
}

/// A function in floats.
pub fn value(function: Function, x: f64) -> f64 {
    let logistic = |x: f64| 1.0 / (1.0 + libm::exp(-x));
    let sigmoid = || logistic(x);
    match function {
        Function::Gelu => gelu(x),
        Function::GeluDerivative => gelu_derivative(x),
        Function::GeluTanh => x * logistic(tanh_argument(x)),
        Function::GeluTanhDerivative => {
            let share = logistic(tanh_argument(x));
            share + x * share * (1.0 - share) * TANH_FACTOR * (1.0 + 3.0 * TANH_CUBIC * x * x)
        }
        Function::Silu => x * sigmoid(),
        Function::SiluDerivative => sigmoid() * (1.0 + x * (1.0 - sigmoid())),
        Function::Tanh => libm::tanh(x),
    }
}

/// `2·√(2/π)`, and the share of the cube, of the hyperbolic tangent that approximates GELU.
const TANH_FACTOR: f64 = 2.0 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2;
const TANH_CUBIC: f64 = 0.044_715;

/// What the logistic function is taken of.
fn tanh_argument(x: f64) -> f64 {
    TANH_FACTOR * (x + TANH_CUBIC * x * x * x)
}

/// `x·Φ(x)` in floats.
pub fn gelu(x: f64) -> f64 {
    x * normal(x)
}

/// `Φ(x) + x·φ(x)` in floats.
pub fn gelu_derivative(x: f64) -> f64 {
    normal(x) + x * libm::exp(-x * x / 2.0) / libm::sqrt(2.0 * std::f64::consts::PI)
}

/// Distribution function of the standard normal.
fn normal(x: f64) -> f64 {
    libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_matches_known_values() {
        // Φ(1) = 0.8413447460685429…, Φ(3) = 0.9986501019683699… (any table of the normal distribution).
        for (x, y) in [(0.0, 0.0), (1.0, 0.841_344_746), (-1.0, -0.158_655_254), (3.0, 2.995_950_306)] {
            assert!((gelu(x) - y).abs() < 1e-8, "{x}");
        }
        for x in [-3.0, -0.7, 0.0, 0.4, 2.5] {
            let difference = (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
            assert!((gelu_derivative(x) - difference).abs() < 1e-8, "{x}");
        }
    }

    /// The integer table and the float function are the same function, at every entry.
    #[test]
    fn tables_agree_with_floats() {
        for exponent in [8, 12, 15, 17] {
            let input = TensorType::new(16, exponent, &[1]).unwrap();
            for function in [
                Function::Gelu,
                Function::GeluDerivative,
                Function::GeluTanh,
                Function::GeluTanhDerivative,
                Function::Silu,
                Function::SiluDerivative,
                Function::Tanh,
            ] {
                let LookupTable { table, low, fraction_bits } = lookup(function, &input).unwrap();
                assert_eq!((low, fraction_bits), (-(1 << 15), 4));
                let half_unit = libm::exp2(-f64::from(table.ty().exponent()) - 1.0);
                for (entry, j) in table.to_f64().into_iter().zip(-2048i32..) {
                    let x = f64::from(j * 16) * libm::exp2(-f64::from(exponent));
                    assert!(
                        (entry - value(function, x)).abs() <= half_unit * 1.001,
                        "{function:?}({x}) at e{exponent}"
                    );
                }
            }
        }
    }

    #[test]
    fn narrow_inputs_are_refused() {
        let ty = TensorType::new(8, 4, &[1]).unwrap();
        assert_eq!(lookup(Function::Gelu, &ty), Err(TableError::InputBits(8)));
    }
}
