//! What whoever finds a wrong claim gets, though its worker convicts itself first.
//!
//! Once it is found, a cheater loses less if a friend of its own convicts it: the finder's half of the bounty stays in
//! the family. The other half is for all auditors that had sealed answers about the lane (P-45), and nobody chooses who
//! is drawn. Shares are of the stake. With `N` validators, each drawn with the chance `p = 1 − q`, of whom `H` look and
//! `C` are the cheater's:
//!
//! ```text
//! of the other half the cheater has    (C/N·(1 − q^N) − q^H·C/(N−H)·(1 − q^(N−H))) / (1 − q^H)
//! a finder has of it                   (1 − q^N) / (N·p)
//! ```
//!
//! The first is the mean of its part of all who are drawn, given that one of them looks: what it has on the mean of all
//! draws, less what it has where nobody looks. The second is the mean of one over the number of those drawn, given that
//! the finder is one of them.

use crate::lottery::Crowd;
use crate::rules::Rules;

/// A wrong claim that drawn validators look at.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Find {
    /// The validators. Whoever is drawn seals an answer; the honest find that the claim is wrong.
    pub crowd: Crowd,
    /// Audits per claim, the mean.
    pub audits: f64,
}

impl Find {
    /// Share of the stake that comes back to a cheater that is found and convicts itself.
    pub fn recaptured(&self, rules: &Rules) -> f64 {
        rules.finders() + rules.auditors() * self.family()
    }

    /// Share of the stake that an honest auditor gets which is drawn and has found it, whoever convicts.
    pub fn found(&self, rules: &Rules) -> f64 {
        let (size, chance) = (f64::from(self.crowd.size()), self.crowd.chance(self.audits));
        if size * chance <= 0.0 {
            return rules.auditors();
        }
        rules.auditors() * drawn(self.crowd.size(), chance) / (size * chance)
    }

    /// Part of those who had sealed that are the cheater's, the mean where it is found.
    fn family(&self) -> f64 {
        let Crowd { honest, lazy, colluding } = self.crowd;
        let (chance, others) = (self.crowd.chance(self.audits), lazy.saturating_add(colluding));
        let found = drawn(honest, chance);
        if colluding == 0 || found <= 0.0 {
            return 0.0;
        }
        let ours = f64::from(colluding);
        let of_all = ours / f64::from(self.crowd.size()) * drawn(self.crowd.size(), chance);
        let unfound = (1.0 - found) * ours / f64::from(others) * drawn(others, chance);
        (of_all - unfound) / found
    }
}

/// Chance that one of `count` is drawn.
fn drawn(count: u32, chance: f64) -> f64 {
    1.0 - (1.0 - chance).powf(f64::from(count))
}
