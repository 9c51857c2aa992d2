//! A job whose audits are drawn claim by claim.

use tensorlink_draws::Draws;

use super::Estimate;
use crate::budget::Size;

/// Share of jobs, of `trials`, in which audits worth more than `paid` fees for whole intervals are drawn of
/// `validators` validators, `audits` a claim on the mean.
pub fn runs_out(size: Size, audits: f64, validators: u32, paid: f64, seed: u64, trials: u32) -> Estimate {
    let chance = audits / f64::from(validators.max(1));
    let samples: Vec<f64> = (0..trials)
        .map(|trial| {
            let mut draws = Draws::of(seed, trial.into());
            let mut left = paid * f64::from(size.parts);
            for _ in 0..size.lanes {
                for _ in 0..size.intervals.saturating_mul(size.parts) {
                    left -= f64::from(draws.how_many(validators, chance));
                }
            }
            f64::from(u8::from(left < 0.0))
        })
        .collect();
    Estimate::of(&samples)
}
