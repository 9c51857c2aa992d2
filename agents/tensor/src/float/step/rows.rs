//! Rows reduced, normalised and rotated.

use tch::{Kind, TchError, Tensor};
use tensorlink_training::step::Spread;

use super::per;

/// All rows of so many elements, `[rows, length]`.
pub(super) fn of(x: &Tensor, length: i64) -> Result<Tensor, TchError> {
    x.f_reshape([-1, length])
}

/// a in rows as long as all of b, which stands for each of them.
pub(super) fn repeated(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    Ok((of(a, b.numel() as i64)?, b.f_reshape([1, -1])?))
}

/// a in as many runs as b has elements, and b's element for each.
pub(super) fn runs(a: &Tensor, b: &Tensor) -> Result<(Tensor, Tensor), TchError> {
    let run = per(a.numel() as i64, b.numel() as i64).max(1);
    Ok((of(a, run)?, b.f_reshape([-1, 1])?))
}

/// Where x is zero, less, or not a number.
pub(super) fn not_positive(x: &Tensor) -> Result<Tensor, TchError> {
    x.f_gt(0.0)?.f_logical_not()
}

/// Rows with what comes after their token replaced (rule N-8); of so many tokens, over and over.
pub(super) fn hide(x: &Tensor, tokens: i64, by: f64) -> Result<Tensor, TchError> {
    let (_, length) = x.size2()?;
    let number = |count| Tensor::f_arange(count, (Kind::Int64, x.device()));
    let after = number(length)?.f_gt_tensor(&number(tokens)?.f_reshape([-1, 1])?)?;
    x.f_reshape([-1, tokens, length])?.f_masked_fill(&after, by)?.f_reshape([-1, length])
}

/// Runs less their mean, and `√(Σ(x − mean)² + ε·K)` of each.
fn moments(x: &Tensor, run: i64, spread: &Spread) -> Result<(Tensor, Tensor), TchError> {
    let mut runs = of(x, run)?;
    if spread.center {
        runs = runs.f_sub(&runs.f_mean_dim([-1i64].as_slice(), true, None)?)?;
    }
    let squares = runs.f_square()?.f_sum_dim_intlist([-1i64].as_slice(), true, None)?;
    let root = squares.f_add_scalar(spread.epsilon * run as f64)?.f_sqrt()?;
    Ok((runs, root))
}

/// Runs of so many elements to mean square 1.
pub(super) fn norm(x: &Tensor, run: i64, spread: &Spread) -> Result<Tensor, TchError> {
    let (runs, root) = moments(x, run, spread)?;
    runs.f_mul(&root.f_reciprocal()?.f_mul_scalar((run as f64).sqrt())?)
}

/// What runs are multiplied by, but for the root of their length.
pub(super) fn inverse_norm(x: &Tensor, run: i64, spread: &Spread) -> Result<Tensor, TchError> {
    moments(x, run, spread)?.1.f_reciprocal()
}

/// Heads of a width rotated by a table of cosines and sines, with the length of its rows.
pub(super) fn rope((x, width): (&Tensor, i64), (table, turned): (&Tensor, i64)) -> Result<Tensor, TchError> {
    let half = turned / 2;
    let table = table.f_reshape([-1, 1, turned])?;
    let (cosines, sines) = (table.f_narrow(-1, 0, half)?, table.f_narrow(-1, half, half)?);
    let (tokens, _, _) = table.size3()?;
    let x = x.f_reshape([tokens, -1, width])?;
    let (low, high) = (x.f_narrow(-1, 0, half)?, x.f_narrow(-1, half, half)?);
    let lows = low.f_mul(&cosines)?.f_sub(&high.f_mul(&sines)?)?;
    let highs = high.f_mul(&cosines)?.f_add(&low.f_mul(&sines)?)?;
    let rest = x.f_narrow(-1, turned, (width - turned).max(0))?;
    Tensor::f_cat(&[lows, highs, rest], -1)
}
