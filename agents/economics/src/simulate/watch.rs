//! A stream of claims, some of them wrong, and all validators that audit it.

use super::Estimate;
use crate::draw::Draws;
use crate::lottery::Crowd;
use crate::validating::Audit;

/// What is simulated. [`Audit::first`] and [`Audit::caught`] are not looked at; the draws decide.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Watch {
    /// What an audit brings and costs.
    pub audit: Audit,
    /// The validators.
    pub crowd: Crowd,
    /// Audits per claim, the mean.
    pub audits: f64,
}

/// Income of all validators of a kind, SNO, and their audits.
#[derive(Clone, Copy, Default, Debug)]
struct Till {
    income: f64,
    audits: f64,
}

impl Watch {
    /// Mean income per audit, SNO, of honest and of lazy validators, from `batches` independent streams of `claims` claims.
    pub fn estimate(&self, seed: u64, batches: u32, claims: u32) -> (Estimate, Estimate) {
        let per_audit = |till: Till| if till.audits > 0.0 { till.income / till.audits } else { 0.0 };
        let (honest, lazy): (Vec<f64>, Vec<f64>) = (0..batches)
            .map(|batch| {
                let (honest, lazy) = self.stream(&mut Draws::of(seed, batch.into()), claims);
                (per_audit(honest), per_audit(lazy))
            })
            .unzip();
        (Estimate::of(&honest), Estimate::of(&lazy))
    }

    fn stream(&self, draws: &mut Draws, claims: u32) -> (Till, Till) {
        let audit = &self.audit;
        let chance = self.crowd.chance(self.audits);
        let (mut honest, mut lazy) = (Till::default(), Till::default());
        for _ in 0..claims {
            let kind = draws.unit();
            let planted = kind < audit.probe_rate;
            let cheated = !planted && kind < audit.probe_rate + audit.wrong_rate;

            let looked = draws.how_many(self.crowd.honest, chance);
            let signed = draws.how_many(self.crowd.lazy, chance);
            let found = looked > 0 && (planted || cheated);

            honest.audits += f64::from(looked);
            honest.income += f64::from(looked) * (audit.fee - audit.cost);
            if found {
                // One of them is first; which one does not matter to their sum.
                honest.income += if planted { audit.jackpot } else { audit.bounty };
            }
            lazy.audits += f64::from(signed);
            lazy.income += f64::from(signed) * audit.fee;
            // Who planted a claim convicts it itself if nobody else does.
            if planted || found {
                lazy.income -= f64::from(signed) * audit.penalty;
            }
        }
        (honest, lazy)
    }
}
