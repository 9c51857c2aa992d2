//! A cheater that proposes the last blocks before the beacon's.

use tensorlink_draws::Draws;

use super::Estimate;
use crate::beacon::Bias;
use crate::lottery::Crowd;

/// What is simulated. [`Bias::caught`] is not looked at; the draws decide.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Proposer {
    /// The cheater.
    pub bias: Bias,
    /// The validators.
    pub crowd: Crowd,
    /// Audits per claim, the mean.
    pub audits: f64,
}

impl Proposer {
    /// Gain of one claim over honest work, prices.
    pub fn play(&self, draws: &mut Draws) -> f64 {
        let chance = self.crowd.chance(self.audits);
        // Of each choice of blocks withheld, one bit a block: what it costs if nobody honest is drawn,
        // otherwise nothing.
        let cheapest = (0..1_u32.checked_shl(self.bias.slots).unwrap_or(0))
            .filter_map(|withheld| {
                let cost = f64::from(withheld.count_ones()) * self.bias.reward;
                (draws.how_many(self.crowd.honest, chance) == 0).then_some(cost)
            })
            .fold(f64::INFINITY, f64::min);
        let caught = 1.0 + self.bias.stake - self.bias.stake * self.bias.recaptured;
        self.bias.saving - cheapest.min(caught)
    }

    /// Mean gain, prices, of `trials` claims.
    pub fn estimate(&self, seed: u64, trials: u32) -> Estimate {
        let gains: Vec<f64> = (0..trials).map(|trial| self.play(&mut Draws::of(seed, trial.into()))).collect();
        Estimate::of(&gains)
    }
}
