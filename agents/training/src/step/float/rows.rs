//! Rows normalised, rotated and gathered, in floats.

use crate::step::Spread;

/// Mean and `√(Σ(x − mean)² + ε·K)`.
fn moments(row: &[f64], spread: &Spread) -> (f64, f64) {
    let length = row.len() as f64;
    let mean = if spread.center { row.iter().sum::<f64>() / length } else { 0.0 };
    let squares: f64 = row.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares + spread.epsilon * length).sqrt())
}

/// Runs of so many elements to mean square 1.
pub(super) fn norm(x: &[f64], run: usize, spread: &Spread) -> Vec<f64> {
    let normed = |row: &[f64]| -> Vec<f64> {
        let (mean, root) = moments(row, spread);
        let scale = (row.len() as f64).sqrt() / root;
        row.iter().map(|x| (x - mean) * scale).collect()
    };
    x.chunks_exact(run).flat_map(normed).collect()
}

/// What runs are multiplied by, but for the root of their length.
pub(super) fn inverse_norm(x: &[f64], run: usize, spread: &Spread) -> Vec<f64> {
    x.chunks_exact(run).map(|run| 1.0 / moments(run, spread).1).collect()
}

/// Heads rotated by a table of cosines and sines; operands with the lengths of their rows.
pub(super) fn rope((x, x_row): (&[f64], usize), (table, turned): (&[f64], usize), heads: usize) -> Vec<f64> {
    let (width, half) = (x_row.checked_div(heads).unwrap_or(1).max(1), turned / 2);
    let head = |head: &[f64], turns: &[f64]| -> Vec<f64> {
        let (cosines, sines) = turns.split_at_checked(half).unwrap_or_default();
        let (low, rest) = head.split_at_checked(half).unwrap_or_default();
        let (high, rest) = rest.split_at_checked(half).unwrap_or_default();
        let pairs = || low.iter().zip(high).zip(cosines.iter().zip(sines));
        let lows = pairs().map(|((l, h), (c, s))| l * c - h * s);
        let highs = pairs().map(|((l, h), (c, s))| h * c + l * s);
        lows.chain(highs).chain(rest.iter().copied()).collect()
    };
    let rows = x.chunks_exact(x_row).zip(table.chunks_exact(turned.max(1)));
    rows.flat_map(|(row, turns)| row.chunks_exact(width).flat_map(|x| head(x, turns)).collect::<Vec<_>>()).collect()
}

/// Sums of columns by their id: `g` is `[K, T]` with its row's length, the result `[V, K]` of so many elements.
pub(super) fn gather_grad((g, tokens): (&[f64], usize), ids: &[f64], elements: usize) -> Vec<f64> {
    let width = g.len().checked_div(tokens).unwrap_or_default();
    let mut sums = vec![0.0; elements];
    for (k, row) in g.chunks_exact(tokens).enumerate() {
        for (g, id) in row.iter().zip(ids) {
            if let Some(sum) = sums.get_mut((*id as usize).saturating_mul(width).saturating_add(k)) {
                *sum += g;
            }
        }
    }
    sums
}
