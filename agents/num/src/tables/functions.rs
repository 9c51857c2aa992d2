//! Tables of activation functions for Lookup (rule N-18).

use tensorlink_types::{TensorType, U256};

use super::TableError;
use super::real::{FRACTION, Reals, one, times};
use crate::bounds::MAX_TABLE_LOG;
use crate::tensor::Tensor;

/// A function that a table holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Function {
    /// `x·Φ(x)`, Φ being the distribution of the standard normal.
    Gelu,
    /// `Φ(x) + x·φ(x)`, the derivative of GELU.
    GeluDerivative,
    /// `x·σ(2·√(2/π)·(x + 0.044715·x³))`, the approximation of GELU by a hyperbolic tangent.
    GeluTanh,
    /// `σ(a) + x·σ(a)·(1 − σ(a))·da/dx`, its derivative, `a` being what σ is taken of.
    GeluTanhDerivative,
    /// `x·σ(x)`.
    Silu,
    /// `σ(x)·(1 + x·(1 − σ(x)))`, the derivative of SiLU.
    SiluDerivative,
    /// `Φ(x)`.
    GeluCdf,
    /// `σ(2·√(2/π)·(x + 0.044715·x³))`, its approximation by a hyperbolic tangent.
    GeluTanhCdf,
    /// `1 / (1 + e^−x)`.
    Sigmoid,
    /// `(1 − e^−2x) / (1 + e^−2x)`.
    Tanh,
}

/// Where a table samples its function: at `(first + j) · 2^cell` for `j` in `0..=2^log`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Grid {
    /// First point, in cells. At most 2^31 in magnitude.
    pub first: i64,
    /// `log2` of the cell width, −64 to 32.
    pub cell: i16,
    /// `log2` of the number of cells, at most 12.
    pub log: u32,
}

/// Beyond this, Φ is 1 within 2^−63, finer than a 32-bit entry can show.
const NORMAL_END: u64 = 9;
/// Beyond this, the argument of GELU's hyperbolic tangent is beyond [`DECAY_END`].
const TANH_END: u64 = 11;
/// Beyond this, `e^−x` is below 2^−92.
const DECAY_END: u64 = 64;

impl Grid {
    /// The grid over `low..=high` in `2^log` cells, where `high − low` is a power of two.
    ///
    /// # Errors
    /// [`TableError::Grid`].
    pub fn over(low: i32, high: i32, log: u32) -> Result<Self, TableError> {
        let span = i64::from(high).saturating_sub(low.into());
        let refused = TableError::Grid { first: low.into(), cell: 0, log };
        let cell = match u64::try_from(span).ok().filter(|s| s.is_power_of_two()).and_then(u64::checked_ilog2) {
            Some(span) if log <= MAX_TABLE_LOG => i64::from(span).saturating_sub(log.into()),
            _ => return Err(refused),
        };
        // A cell wider than one must divide the first point.
        let wide = 1i64.checked_shl(cell.max(0).try_into().unwrap_or(u32::MAX)).unwrap_or(i64::MAX);
        let narrow = 1i64.checked_shl(cell.saturating_neg().max(0).try_into().unwrap_or(u32::MAX)).unwrap_or(i64::MAX);
        if i64::from(low).checked_rem(wide) != Some(0) {
            return Err(refused);
        }
        let first = i64::from(low).checked_div(wide).unwrap_or(0).saturating_mul(narrow);
        Self { first, cell: cell.try_into().unwrap_or(i16::MAX), log }.checked()
    }

    fn checked(self) -> Result<Self, TableError> {
        let Self { first, cell, log } = self;
        if first.unsigned_abs() <= 1 << 31 && (-64..=32).contains(&cell) && log <= MAX_TABLE_LOG {
            return Ok(self);
        }
        Err(TableError::Grid { first, cell, log })
    }

    /// The points, as sign and fixed-point magnitude (below 2^65).
    fn points(self) -> impl Iterator<Item = (bool, U256)> {
        let cells = 1i64.wrapping_shl(self.log);
        let places = i64::from(self.cell).saturating_add(FRACTION as i64).unsigned_abs() as usize;
        (0..=cells).map(move |j| {
            let x = self.first.saturating_add(j);
            (x < 0, U256::from(x.unsigned_abs()).wrapping_shl(places))
        })
    }
}

/// The table of a function on a grid: `2^log + 1` entries `⌊|f|·2^exponent + ½⌋` with the sign of `f`, good to half a
/// unit and the same on every machine.
///
/// # Errors
/// [`TableError::Grid`] or [`TableError::Exponent`] outside the ranges named there, [`TableError::Type`] for bits that
/// no tensor has, [`TableError::Tensor`] if a value does not fit the bits.
pub fn function_table(function: Function, grid: Grid, bits: u8, exponent: i16) -> Result<Tensor, TableError> {
    let grid = grid.checked()?;
    let Ok(drop @ 1usize..256) = (FRACTION as i64).saturating_sub(exponent.into()).try_into() else {
        return Err(TableError::Exponent(exponent));
    };
    let len = 1u32.wrapping_shl(grid.log).wrapping_add(1);
    let ty = TensorType::new(bits, exponent, &[len])?;
    let reals = Reals::new();
    let half = U256::from(1).wrapping_shl(drop.wrapping_sub(1));
    let entry = |(negative, x)| {
        let (minus, value) = function.at(&reals, negative, x);
        let magnitude = value.wrapping_add(half).wrapping_shr(drop).saturating_to::<i64>();
        if minus { magnitude.saturating_neg() } else { magnitude }
    };
    let values: Vec<i64> = grid.points().map(entry).collect();
    Ok(Tensor::from_wide(ty, &values)?)
}

impl Function {
    /// Value at `±x`, as sign and magnitude.
    fn at(self, reals: &Reals, negative: bool, x: U256) -> (bool, U256) {
        match self {
            Self::GeluCdf => (false, reflect(negative, phi(reals, x))),
            Self::GeluTanhCdf => (false, sigmoid(reals, negative, tanh_argument(reals, x))),
            Self::Gelu => (negative, times(x, reflect(negative, phi(reals, x)))),
            Self::GeluTanh => (negative, times(x, sigmoid(reals, negative, tanh_argument(reals, x)))),
            Self::Silu => (negative, times(x, sigmoid(reals, negative, x))),
            Self::GeluDerivative => {
                let slope = if x < whole(NORMAL_END) { times(x, reals.density(x)) } else { U256::ZERO };
                mirrored(negative, phi(reals, x).wrapping_add(slope))
            }
            Self::GeluTanhDerivative => {
                let share = sigmoid(reals, false, tanh_argument(reals, x));
                let slope = times(times(x, tanh_slope(reals, x)), times(share, reflect(true, share)));
                mirrored(negative, share.wrapping_add(slope))
            }
            Self::SiluDerivative => {
                let share = sigmoid(reals, false, x);
                mirrored(negative, share.wrapping_add(times(times(x, share), reflect(true, share))))
            }
            Self::Sigmoid => (false, sigmoid(reals, negative, x)),
            Self::Tanh => {
                let e = decay(reals, x.wrapping_shl(1));
                (negative, quotient(one().wrapping_sub(e), one().wrapping_add(e)))
            }
        }
    }
}

fn whole(n: u64) -> U256 {
    U256::from(n).wrapping_shl(FRACTION)
}

/// `f(−x) = 1 − f(x)`.
fn reflect(negative: bool, value: U256) -> U256 {
    if negative { one().saturating_sub(value) } else { value }
}

/// `f(±x)` of a function with `f(−x) = 1 − f(x)` that may exceed 1, from `f(x)`.
fn mirrored(negative: bool, value: U256) -> (bool, U256) {
    if negative { (value > one(), value.abs_diff(one())) } else { (false, value) }
}

fn phi(reals: &Reals, x: U256) -> U256 {
    if x < whole(NORMAL_END) { reals.normal(x) } else { one() }
}

fn sigmoid(reals: &Reals, negative: bool, x: U256) -> U256 {
    reflect(negative, quotient(one(), one().wrapping_add(decay(reals, x))))
}

/// `2·√(2/π)·(x + 0.044715·x³)`; anything beyond [`DECAY_END`] where x is beyond [`TANH_END`].
fn tanh_argument(reals: &Reals, x: U256) -> U256 {
    if x >= whole(TANH_END) {
        return whole(DECAY_END);
    }
    times(x, tanh_factor(reals, x, 1))
}

/// The derivative of [`tanh_argument`]; nothing beyond [`TANH_END`], where σ does not change.
fn tanh_slope(reals: &Reals, x: U256) -> U256 {
    if x < whole(TANH_END) { tanh_factor(reals, x, 3) } else { U256::ZERO }
}

/// `2·√(2/π)·(1 + n·0.044715·x²)`.
fn tanh_factor(reals: &Reals, x: U256, n: u64) -> U256 {
    let squared = quotient(times(x, x).wrapping_mul(U256::from(44_715).wrapping_mul(U256::from(n))), whole(1_000_000));
    // 2·√(2/π) is 4/√(2π).
    quotient(one().wrapping_add(squared).wrapping_mul(U256::from(4)), reals.sqrt_two_pi())
}

fn decay(reals: &Reals, x: U256) -> U256 {
    if x < whole(DECAY_END) { reals.exp_neg(x) } else { U256::ZERO }
}

fn quotient(a: U256, b: U256) -> U256 {
    a.wrapping_shl(FRACTION).checked_div(b).unwrap_or_default()
}
