//! Validators that answer without looking: at random, or what they bought.

use tensorlink_draws::Draws;

use super::Estimate;
use crate::copying::{Planted, Soil};
use crate::lottery::Crowd;
use crate::receipts::Confirmed;
use crate::rules::Rules;
use crate::validating::Audit;

/// Right claims, and the lazy validators that are drawn for them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Watch {
    /// What an audit brings and costs.
    pub audit: Audit,
    /// The validators.
    pub crowd: Crowd,
    /// Audits per claim, the mean.
    pub audits: f64,
}

impl Watch {
    /// Mean income of the lazy per audit, SNO, from `batches` independent streams of `claims` claims.
    pub fn estimate(&self, seed: u64, batches: u32, claims: u32) -> Estimate {
        let incomes: Vec<f64> =
            (0..batches).map(|batch| self.stream(&mut Draws::of(seed, batch.into()), claims)).collect();
        Estimate::of(&incomes)
    }

    fn stream(&self, draws: &mut Draws, claims: u32) -> f64 {
        let audit = &self.audit;
        let chance = self.crowd.chance(self.audits);
        let (mut income, mut audits) = (0.0, 0.0);
        for _ in 0..claims {
            let made_up = f64::from(draws.how_many(self.crowd.lazy, chance));
            audits += made_up;
            income += made_up * (audit.fee - audit.gas);
            if draws.happens(audit.checking) {
                income -= made_up * audit.penalty;
                // Its friend was quicker than the worker.
                income += made_up * audit.penalty * audit.recaptured;
            }
        }
        if audits > 0.0 { income / audits } else { 0.0 }
    }
}

/// Mean gain, SNO, of who feigns a first audit to learn whether the worker checks, `audits` of them in all.
pub fn trial(audit: &Audit, audits: u32, seed: u64, trials: u32) -> Estimate {
    let gains: Vec<f64> = (0..trials)
        .map(|trial| {
            let checks = Draws::of(seed, trial.into()).happens(audit.checking);
            let mut gain = 0.0;
            for _ in 0..audits {
                gain += audit.work;
                if checks {
                    gain -= audit.penalty - audit.penalty * audit.recaptured;
                    break;
                }
            }
            gain
        })
        .collect();
    Estimate::of(&gains)
}

/// Mean incomes, SNO, of who looks and of who does not, of one audit of a receipt.
pub fn confirmed(audit: &Confirmed, seed: u64, trials: u32) -> (Estimate, Estimate) {
    let (honest, lazy): (Vec<f64>, Vec<f64>) = (0..trials)
        .map(|trial| {
            let mut draws = Draws::of(seed, trial.into());
            let signs = !draws.happens(audit.refusing);
            let told = draws.happens(audit.leaking);
            let paid = |confirmed: bool| if confirmed { audit.fee } else { 0.0 };
            (paid(signs) - audit.work - audit.gas, paid(told) - audit.gas)
        })
        .unzip();
    (Estimate::of(&honest), Estimate::of(&lazy))
}

/// Mean gain, SNO, of who frames the auditors of `claims` claims of one lane, each away on its own with the chance
/// `away`. A conviction voids its claim and all later ones, and takes the stake once.
pub fn framing(rules: &Rules, stake: f64, claims: u32, away: f64, seed: u64, trials: u32) -> Estimate {
    let gains: Vec<f64> = (0..trials)
        .map(|trial| {
            let mut draws = Draws::of(seed, trial.into());
            let mut gain = 0.0;
            for _ in 0..claims {
                if !draws.happens(away) {
                    gain -= stake - (rules.bounty() + rules.harm()) * stake;
                    break;
                }
                gain += rules.bounty() * rules.highest_penalty().min(stake);
            }
            gain
        })
        .collect();
    Estimate::of(&gains)
}

/// Mean gain, SNO, of planting one claim; the lazy copy.
pub fn planting(planted: &Planted, crowd: &Crowd, audits: f64, seed: u64, trials: u32) -> Estimate {
    let chance = crowd.chance(audits);
    let gains: Vec<f64> = (0..trials)
        .map(|trial| {
            let mut draws = Draws::of(seed, trial.into());
            let looked = draws.how_many(crowd.honest, chance) > 0 && planted.soil != Soil::Receipt;
            let copies = draws.how_many(crowd.lazy, chance);
            let mut gain = -planted.expense;
            if looked {
                gain -= planted.stake + planted.void;
            } else if copies > 0 {
                gain += f64::from(copies) * planted.jackpot;
                gain -= planted.stake + planted.void + planted.conviction - planted.bounty;
            }
            // To itself, as the user of its own job.
            if planted.soil != Soil::Strangers && (looked || copies > 0) {
                gain += planted.harm;
            }
            gain
        })
        .collect();
    Estimate::of(&gains)
}
