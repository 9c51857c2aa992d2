//! An audit done against an audit feigned. All money here is in SNO, per audit.
//!
//! Who is lazy signs "right" and spends nothing. It loses the penalty if the claim is convicted later: a planted claim always
//! is, for whoever planted it knows the wrong element; any other only if an honest validator was drawn too. Who does not
//! answer earns 0. Looking at a part of the audits is a mixture of the two, and so never better than the better one.

use crate::lottery::Crowd;
use crate::market::Market;
use crate::rules::Rules;

/// What an audit can bring and cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Audit {
    /// Paid for the audit, whatever it says, SNO.
    pub fee: f64,
    /// Cost of doing it, SNO.
    pub cost: f64,
    /// Lost for a false "right", SNO.
    pub penalty: f64,
    /// What the first that proves a planted claim gets, SNO.
    pub jackpot: f64,
    /// The same of a claim that a cheater made; 0 if the cheater is quicker and convicts itself.
    pub bounty: f64,
    /// Planted claims, share of all.
    pub probe_rate: f64,
    /// Claims of cheaters, share of all.
    pub wrong_rate: f64,
    /// Chance to be first among the honest, see [`Crowd::first`].
    pub first: f64,
    /// Chance that an honest validator is drawn, see [`Crowd::caught`].
    pub caught: f64,
}

impl Audit {
    /// By the rules, where nobody cheats, which is when watching is hardest to keep up. `jackpots`: whether those who plant
    /// leave the bounty to whoever finds it.
    pub fn by(rules: &Rules, market: &Market, crowd: &Crowd, jackpots: bool) -> Self {
        let audits = rules.audits_per_claim();
        let bounty = rules.bounty() * rules.min_stake() * market.price;
        Self {
            fee: rules.audit_fee() * market.price,
            cost: market.audit_cost(),
            penalty: rules.audit_penalty(),
            jackpot: if jackpots { bounty } else { 0.0 },
            bounty: 0.0,
            probe_rate: rules.probe_rate(),
            wrong_rate: 0.0,
            first: crowd.first(audits),
            caught: crowd.caught(audits),
        }
    }

    /// Expected income of who looks, SNO an audit.
    pub fn honest(&self) -> f64 {
        self.fee - self.cost + self.prizes()
    }

    /// Expected income of who does not look, SNO an audit.
    pub fn lazy(&self) -> f64 {
        self.fee - (self.probe_rate + self.wrong_rate * self.caught) * self.penalty
    }

    /// Least penalty, SNO, with which not looking gains nothing; infinite if nothing wrong is ever convicted.
    pub fn least_penalty(&self) -> f64 {
        let spared = (self.cost - self.prizes()).max(0.0);
        if spared > 0.0 { spared / (self.probe_rate + self.wrong_rate * self.caught) } else { 0.0 }
    }

    /// Least rate of planted claims, share of all, with which not looking gains nothing.
    pub fn least_probe_rate(&self) -> f64 {
        let spared = self.cost - self.wrong_rate * (self.first * self.bounty + self.caught * self.penalty);
        spared.max(0.0) / (self.penalty + self.first * self.jackpot)
    }

    /// Rate of cheaters' claims, share of all, from which on it pays to audit undrawn, for the bounty alone.
    pub fn rate_for_volunteers(cost: f64, bounty: f64) -> f64 {
        cost / bounty
    }

    /// Expected bounties and jackpots, SNO an audit.
    fn prizes(&self) -> f64 {
        self.first * (self.probe_rate * self.jackpot + self.wrong_rate * self.bounty)
    }
}

/// Highest price of an interval, SNO, up to which not looking loses, without jackpots: the penalty does not grow with the price,
/// what is spared does. 0 if there is none.
pub fn highest_price(rules: &Rules, market: &Market) -> f64 {
    let risk = rules.probe_rate() * rules.audit_penalty() - market.gas(crate::market::AUDIT_GAS);
    (risk / (market.audit_factor * market.cost_share)).max(0.0)
}
