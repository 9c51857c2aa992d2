//! A lane whose worker cheats now and then.

use tensorlink_draws::Draws;

use super::Estimate;
use crate::cheating::Run;
use crate::dispute::Slot;
use crate::lottery::Crowd;

/// What is simulated: a run, who audits it, and what shields it. [`Run::caught`] is not looked at; the draws decide.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Lane {
    /// The run.
    pub run: Run,
    /// The validators.
    pub crowd: Crowd,
    /// Audits per claim, the mean.
    pub audits: f64,
    /// Whether a friend challenges each wrong claim at once and says nothing, and whether that keeps others away.
    pub friend: Option<Slot>,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ending {
    /// Gain over honest work, prices.
    pub gain: f64,
    /// Whether the worker was convicted.
    pub convicted: bool,
}

impl Lane {
    /// One run. Every interval takes the same draws whatever the friend does, so that both can be compared.
    pub fn play(&self, draws: &mut Draws) -> Ending {
        let run = &self.run;
        let chance = self.crowd.chance(self.audits);
        let mut gain = 0.0;
        let mut void_left = None;
        for _ in 0..run.length {
            let wrong = draws.happens(run.wrong);
            let saved = if wrong { run.saving } else { 0.0 };
            if let Some(left) = void_left {
                if left == 0 {
                    break;
                }
                void_left = Some(u32::saturating_sub(left, 1));
                gain += saved - 1.0;
                continue;
            }
            gain += saved;
            if wrong {
                let shut_out = self.friend == Some(Slot::Exclusive);
                let found = draws.how_many(self.crowd.honest, chance) > 0;
                if found && !shut_out {
                    gain -= 1.0 + run.stake * (1.0 - run.recaptured);
                    void_left = Some(run.lag);
                }
            }
        }
        Ending { gain, convicted: void_left.is_some() }
    }

    /// Mean gain, prices, and share of runs convicted, over `trials` runs.
    pub fn estimate(&self, seed: u64, trials: u32) -> (Estimate, Estimate) {
        let endings: Vec<Ending> = (0..trials).map(|trial| self.play(&mut Draws::of(seed, trial.into()))).collect();
        let gains: Vec<f64> = endings.iter().map(|ending| ending.gain).collect();
        let convictions: Vec<f64> = endings.iter().map(|ending| f64::from(u8::from(ending.convicted))).collect();
        (Estimate::of(&gains), Estimate::of(&convictions))
    }
}
