//! Quantiles.

/// The value that a share of all is not above; NaN of none.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// Median, 5th percentile and least, as a cell of a table.
pub(crate) fn low(values: &[f64]) -> String {
    let [median, fifth, least] = [0.5, 0.05, 0.0].map(|share| quantile(values, share));
    format!("{median:.2} ({fifth:.2}, {least:.2})")
}

/// Median, 95th percentile and most, as a cell of a table.
pub(crate) fn high(values: &[f64]) -> String {
    let [median, most_of, most] = [0.5, 0.95, 1.0].map(|share| quantile(values, share));
    format!("{median:.3} ({most_of:.3}, {most:.3})")
}
