//! What operators on rows need to know of them: in how many parts they are reduced, and what keeps a root from zero.

use tensorlink_num::bounds::{EPSILON_BOUND, norm_places};
use tensorlink_types::TensorType;
use tensorlink_types::operator::MAX_REDUCTION;

/// Least number of equal parts of a row that can be reduced one by one, at most [`MAX_REDUCTION`] parts.
pub fn equal_parts(row: u64) -> Option<u32> {
    let fits = |parts: &u64| row.checked_rem(*parts) == Some(0) && row.checked_div(*parts) <= Some(MAX_REDUCTION);
    (1..=MAX_REDUCTION.min(row)).find(fits).and_then(|parts| parts.try_into().ok())
}

/// The attribute `epsilon` of rules N-28 and N-40: `ε·K` in the exponent of the squares that are summed.
pub fn epsilon(epsilon: f64, length: u64, x: &TensorType) -> i64 {
    let squares = 2.0 * (f64::from(x.exponent()) + f64::from(norm_places(x.bits())));
    // SAFETY of the cast: clamped to what the rules take.
    libm::rint(epsilon * length as f64 * libm::exp2(squares)).clamp(1.0, (EPSILON_BOUND / 2) as f64) as i64
}
