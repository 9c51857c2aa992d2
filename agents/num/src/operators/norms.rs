//! Rules N-28 and N-40: rows divided by their spread, and what they are divided by.

use tensorlink_types::operator::MAX_REDUCTION;

use super::check::{A, B, C, Check, OUT, exponent};
use super::site::{one, run};
use super::whole::{Rescale, rows};
use super::{Operation, Read, Site, Whole};
use crate::bounds::{
    ACCUMULATOR_BOUND, EPSILON_BOUND, MAX_BIAS_SHIFT, MIN_INVERSE_SHIFT, NORM_INPUT_BITS, RECIPROCAL_EXPONENT,
    norm_exponent, norm_places, reciprocal_exponent,
};
use crate::error::OpError;
use crate::fixed::{MAX_SHIFT, div, limit, rescale};

/// The largest accumulators, whatever bits x has: `Σ(2^f·x − μ)² + ε` with `|μ| ≤ 2^f·|x|`, and `n·gain + bias·2^t`
/// with n of two more bits than its exponent, and gain and bias of 16.
const _: () = {
    let (mut bits, vector) = (2, limit(16) as u128);
    while bits <= NORM_INPUT_BITS {
        let deviation = (limit(bits) as u128) << (norm_places(bits) + 1);
        assert!(MAX_REDUCTION as u128 * deviation * deviation + (EPSILON_BOUND as u128) < ACCUMULATOR_BOUND);
        assert!((vector << (norm_exponent(bits) + 1)) + (vector << MAX_BIAS_SHIFT) < ACCUMULATOR_BOUND);
        bits += 1;
    }
};

/// What mean and spread of a row are computed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Elements that are normalised together.
    pub depth: u64,
    /// The f of the rules.
    pub places: u8,
    /// Whether the mean is taken off.
    pub center: bool,
    /// Added to the sum of squares.
    pub epsilon: i64,
}

impl Spread {
    /// `2^f`, by what the mean is finer than the input.
    const fn unit(&self) -> i64 {
        1i64.wrapping_shl(self.places as u32)
    }

    /// Exponent of the normalised value n.
    pub const fn exponent(&self) -> u8 {
        NORM_INPUT_BITS.saturating_sub(self.places)
    }

    /// Bits of n, which is between −2 and 2.
    pub const fn bits(&self) -> u8 {
        self.exponent().saturating_add(2)
    }

    /// How far a product with R is shifted to become n, before R's j.
    pub const fn reciprocal_shift(&self) -> i64 {
        RECIPROCAL_EXPONENT.saturating_sub(self.exponent() as i64)
    }

    /// Of the elements from `first` on.
    fn of_run(&self, site: &Site<'_>, first: u64) -> Result<Moments, OpError> {
        let length = i128::from(self.depth);
        let (mut sum, mut squares) = (0i128, 0i128);
        for k in 0..self.depth {
            let x = site.get(0, first.saturating_add(k))?;
            sum = sum.saturating_add(x);
            squares = squares.saturating_add(x.saturating_mul(x));
        }
        let unit = i128::from(self.unit());
        let mean = if self.center { div(sum.saturating_mul(unit), length).unwrap_or_default() } else { 0 };
        let cross = mean.saturating_mul(sum).saturating_mul(unit).saturating_mul(2);
        let v = squares.saturating_mul(unit).saturating_mul(unit).saturating_sub(cross);
        let v = v.saturating_add(length.saturating_mul(mean).saturating_mul(mean)).saturating_add(self.epsilon.into());
        // A sum of squares and epsilon: from 1 to below 2^62.
        let bits = 128u32.saturating_sub(v.leading_zeros());
        let j = 62u32.saturating_sub(bits) >> 1;
        let root = v.max(1).wrapping_shl(j.saturating_mul(2)).isqrt();
        let reciprocal = 1i128.wrapping_shl(RECIPROCAL_EXPONENT as u32).checked_div(root).unwrap_or_default();
        Ok(Moments { mean, reciprocal, j: j.into() })
    }
}

/// Mean (times `2^f`), R and j of rule N-28.
struct Moments {
    mean: i128,
    reciprocal: i128,
    j: i64,
}

/// LayerNorm or RMSNorm of rows, or of equal parts of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Norm {
    /// Mean and spread.
    pub spread: Spread,
    /// Binary places by which the bias is shifted to be added.
    pub bias_shift: u32,
    /// Binary places rounded away.
    pub shift: i64,
}

impl Operation for Norm {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        let (x, gain, bias) = (check.ty(A), check.ty(B), check.ty(C));
        check.normalisable()?;
        for place in [B, C] {
            check.at_most_16_bits(place)?;
        }
        let length = gain.elements();
        check.require(
            B,
            x.row().checked_rem(length) == Some(0),
            "as many elements as divide a row of the first operand",
        )?;
        check.require(C, bias.elements() == length, "as many elements as the second operand")?;
        check.same_shape(OUT, A)?;
        let spread = check.spread(check.reduction(length)?)?;
        let product = norm_exponent(x.bits()).saturating_add(exponent(gain));
        let bias_shift = check.attribute(2, 0, MAX_BIAS_SHIFT)?;
        check.bound(2, bias_shift, product.saturating_sub(exponent(bias)))?;
        let shift = check.bound_shift(3, product)?;
        // SAFETY of the cast: between 0 and 40.
        Ok(Self { spread, bias_shift: bias_shift as u32, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let ([x, gain, bias], round) = (whole.wide()?, whole.rescale(self.shift));
        let row = |row| {
            let scale = RowScale::new(row, &self.spread);
            let pairs = <[i64]>::iter(row).zip(gain.iter().zip(&bias));
            pairs.map(move |(x, (gain, bias))| {
                let n = scale.apply(*x);
                round.apply(n.wrapping_mul(*gain).wrapping_add(bias.wrapping_shl(self.bias_shift)))
            })
        };
        whole.collect(rows(&x, self.spread.depth).flat_map(row))
    }

    /// `n·gain[k] + bias[k]·2^t`.
    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let spread = self.spread;
        let (m, k) = site.split(spread.depth);
        let Moments { mean, reciprocal, j } = spread.of_run(site, m.saturating_mul(spread.depth))?;
        let centered = site.here(0)?.saturating_mul(spread.unit().into()).saturating_sub(mean);
        let places = spread.reciprocal_shift().saturating_sub(j);
        let n = i128::from(rescale(centered.saturating_mul(reciprocal), places, spread.bits()));
        let bias = site.get(2, k)?.saturating_mul(1i128.wrapping_shl(self.bias_shift));
        Ok(site.rescale(n.saturating_mul(site.get(1, k)?).saturating_add(bias), self.shift))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        let depth = self.spread.depth;
        let (m, k) = site.split(depth);
        Ok(vec![run(0, m.saturating_mul(depth), depth), one(1, k), one(2, k)])
    }
}

/// What Norm multiplies a row by, `1/√(Σ(x − mean)² + ε)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InverseNorm {
    /// Mean and spread.
    pub spread: Spread,
    /// Binary places rounded away, before R's j.
    pub shift: i64,
}

impl Operation for InverseNorm {
    fn check(check: &Check<'_>) -> Result<Self, OpError> {
        check.normalisable()?;
        let (x, y) = (check.ty(A), check.ty(OUT));
        let depth = check.reduction(check.equal_parts(OUT)?)?;
        let spread = check.spread(depth)?;
        let expected = reciprocal_exponent(x.bits()).saturating_sub(exponent(x)).saturating_sub(exponent(y));
        let shift = check.bound(2, check.attribute(2, MIN_INVERSE_SHIFT, MAX_SHIFT)?, expected)?;
        Ok(Self { spread, shift })
    }

    fn execute(&self, whole: &Whole<'_>) -> Result<Vec<i64>, OpError> {
        let [x] = whole.wide()?;
        let inverse = |row: &[i64]| {
            let RowScale { reciprocal, j, .. } = RowScale::new(row, &self.spread);
            whole.rescale(self.shift.wrapping_sub(j)).apply(reciprocal)
        };
        whole.collect(rows(&x, self.spread.depth).map(inverse))
    }

    /// `rescale(R, shift − j)`.
    fn element(&self, site: &Site<'_>) -> Result<i64, OpError> {
        let first = site.index.saturating_mul(self.spread.depth);
        let Moments { reciprocal, j, .. } = self.spread.of_run(site, first)?;
        Ok(site.rescale(reciprocal, self.shift.saturating_sub(j)))
    }

    fn reads(&self, site: &Site<'_>) -> Result<Vec<Read>, OpError> {
        let depth = self.spread.depth;
        Ok(vec![run(0, site.index.saturating_mul(depth), depth)])
    }
}

/// What rule N-28 multiplies a row by: `n = rescale((unit·x − mean)·reciprocal, 30 + f − j)`.
#[derive(Clone, Copy)]
struct RowScale {
    unit: i64,
    mean: i64,
    reciprocal: i64,
    j: i64,
    round: Rescale,
}

impl RowScale {
    fn new(row: &[i64], spread: &Spread) -> Self {
        // At most 4096 elements, and squares below 2^60 whatever their bits, everything below 2^62.
        let (length, unit) = (row.len() as i64, spread.unit());
        let sum = row.iter().fold(0i64, |sum, x| sum.wrapping_add(*x));
        let squares = row.iter().fold(0i64, |sum, x| sum.wrapping_add(x.wrapping_mul(*x)));
        let half_up =
            sum.wrapping_mul(unit).wrapping_mul(2).wrapping_add(length).checked_div_euclid(length.wrapping_mul(2));
        let mean = if spread.center { half_up.unwrap_or_default() } else { 0 };
        let cross = mean.wrapping_mul(sum).wrapping_mul(unit).wrapping_mul(2);
        let squares = squares.wrapping_mul(unit).wrapping_mul(unit);
        let deviations = squares.wrapping_sub(cross).wrapping_add(length.wrapping_mul(mean.wrapping_pow(2)));
        // A sum of squares and epsilon: at least 1, below 2^61.
        let v = deviations.wrapping_add(spread.epsilon).max(1);
        let j = v.leading_zeros().saturating_sub(2) >> 1;
        let root = v.wrapping_shl(j.wrapping_mul(2)).isqrt();
        let reciprocal = (1i64 << RECIPROCAL_EXPONENT).checked_div(root).unwrap_or_default();
        let round = Rescale { shift: spread.reciprocal_shift().wrapping_sub(j.into()), limit: limit(spread.bits()) };
        Self { unit, mean, reciprocal, j: j.into(), round }
    }

    fn apply(&self, x: i64) -> i64 {
        self.round.apply(x.wrapping_mul(self.unit).wrapping_sub(self.mean).wrapping_mul(self.reciprocal))
    }
}

impl Check<'_> {
    /// The first operand has as many bits as N-28 and N-40 take.
    fn normalisable(&self) -> Result<(), OpError> {
        self.require(A, self.ty(A).bits() <= NORM_INPUT_BITS, "of at most 24 bits")
    }

    /// Attributes `center` and `epsilon` of N-28 and N-40.
    fn spread(&self, depth: u64) -> Result<Spread, OpError> {
        let (center, epsilon) = (self.attribute(0, 0, 1)? == 1, self.attribute(1, 1, EPSILON_BOUND.saturating_sub(1))?);
        Ok(Spread { depth, places: norm_places(self.ty(A).bits()), center, epsilon })
    }
}
