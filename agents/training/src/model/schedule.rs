//! Learning rates of a training's steps: they rise along a line, and fall along half a cosine.

/// Share of the largest rate that is left at the end.
const LAST: f64 = 0.1;
/// Most steps of a schedule, which is a constant of the program.
pub(super) const MAX_SCHEDULE: u32 = 1_000_000;

/// The rate of each of so many steps, `largest` after `warmup` of them.
pub(super) fn rates(largest: f64, warmup: u32, steps: u32) -> Vec<f64> {
    let all = f64::from(steps.saturating_sub(warmup).max(1));
    let rate = |step: u32| {
        if step < warmup {
            return largest * f64::from(step.saturating_add(1)) / f64::from(warmup);
        }
        let done = f64::from(step.saturating_sub(warmup)) / all;
        largest * (LAST + (1.0 - LAST) * 0.5 * (1.0 + libm::cos(std::f64::consts::PI * done)))
    };
    (0..steps).map(rate).collect()
}
