//! What a user sets aside for audits at acceptance, and the chance that more are drawn than it pays for.

use crate::rules::{Rules, WHOLE_BPS};

/// Lanes, all at one price, and the intervals of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Lanes.
    pub lanes: u32,
    /// Intervals of a lane; of a serving job, texts of the greatest length that its tokens would fill.
    pub intervals: u32,
    /// Claims that make up an interval: 1, or of a serving job more, if its texts are shorter.
    pub parts: u32,
}

impl Size {
    /// Claims of the job.
    pub fn claims(&self) -> f64 {
        f64::from(self.lanes) * f64::from(self.intervals) * f64::from(self.parts)
    }

    /// Budget, in fees for whole intervals, as `Jobs` counts it: for each lane twice the mean, rounded up, and one.
    pub fn fees(&self, rules: &Rules) -> f64 {
        let twice = u64::from(self.intervals).saturating_mul(u64::from(rules.audits_per_claim_bps)).saturating_mul(2);
        f64::from(self.lanes) * (twice.div_ceil(u64::from(WHOLE_BPS)) as f64 + 1.0)
    }

    /// Mean of what audits take, in fees for whole intervals.
    pub fn mean(&self, rules: &Rules) -> f64 {
        f64::from(self.lanes) * f64::from(self.intervals) * rules.audits_per_claim()
    }

    /// Chance that audits worth more than `paid` fees for whole intervals are drawn of `validators` validators.
    pub fn runs_out(&self, rules: &Rules, validators: u32, paid: f64) -> f64 {
        let validators = f64::from(validators);
        if validators <= 0.0 {
            return 0.0;
        }
        more_than(
            paid * f64::from(self.parts),
            self.claims() * validators,
            (rules.audits_per_claim() / validators).min(1.0),
        )
    }
}

/// Chance that of `count` independent draws, each true with `chance`, more than `limit` are true: the tail of a
/// binomial distribution. Whole numbers as floats: `count` can exceed 2^32. Terms are added up as logarithms, since the
/// first can be too small for a float.
pub fn more_than(limit: f64, count: f64, chance: f64) -> f64 {
    if chance <= 0.0 || limit >= count {
        return 0.0;
    }
    if chance >= 1.0 {
        return 1.0;
    }
    // The small number undoes rounding of products such as 2 · 30 · 0.1.
    let limit = (limit + 1e-9).floor();
    let odds = (chance / (1.0 - chance)).ln();
    let mean = count * chance;
    let (mut true_draws, mut term, mut sum) = (0.0, count * (-chance).ln_1p(), 0.0);
    while true_draws < count {
        term += odds + ((count - true_draws) / (true_draws + 1.0)).ln();
        true_draws += 1.0;
        if true_draws > limit {
            let part = term.exp();
            sum += part;
            // Beyond the mean terms fall ever faster.
            if true_draws > mean && part <= sum * 1e-15 {
                break;
            }
        }
    }
    sum
}
