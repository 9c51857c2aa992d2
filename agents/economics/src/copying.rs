//! Answers that are sold, and what the seller gains by a wrong one. All money is in SNO.
//!
//! A worker knows the answer before the validators that are drawn for its claim, and can sell it to those that would
//! rather not compute. It can as well sell a wrong one and accuse who reveals it: the claim is right, and the seller
//! loses nothing. A buyer that computes the last step itself notices, for a hundredth of the work. Against who compares
//! less there is the *planted* claim as well: wrong in its last step, as its answer is, so that both agree. Who plants
//! it convicts itself when copies have been revealed, and gets a bounty for each of them. Over receipts nobody is
//! accused, so there planting is all that a seller can do to a buyer; but nobody can convict the planter sooner, for it
//! signs to none but the buyer. What can be won grows with the lane's stake, up to where the penalty does not.

use crate::lottery::Crowd;
use crate::market::{ACCUSATION_GAS, CLAIM_GAS, CONVICTION_GAS, Market};
use crate::rules::Rules;

/// Right claims that hide a planted one, if there is no reason for another number.
pub const COVER: u32 = 10;

/// Most that a validator pays for an answer: the work that it spares.
pub fn highest_bid(market: &Market) -> f64 {
    market.audit_work()
}

/// What a seller gains by one wrong answer that is revealed about a right claim of a lane with `stake` SNO.
pub fn betrayal(rules: &Rules, market: &Market, stake: f64) -> f64 {
    rules.jackpot(stake) - market.gas(ACCUSATION_GAS)
}

/// Right answers, at the highest bid, that bring as much as one wrong answer. Who expects to sell less should not
/// be trusted.
pub fn sales_in_a_betrayal(rules: &Rules, market: &Market, stake: f64) -> f64 {
    betrayal(rules, market, stake) / highest_bid(market)
}

/// Whose job a planted claim is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Soil {
    /// The planter's: it pays itself for everything, audits excepted, and computes so many right claims as cover.
    Own {
        /// Right claims.
        cover: u32,
    },
    /// The planter's, and a receipt: without the planter's word nobody can convict it, or is paid.
    Receipt,
    /// A stranger's, who pays for the cover. If nobody is drawn that copies or looks, the wrong claim becomes final.
    Strangers,
}

/// A planted claim: what it can bring and cost, SNO.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Planted {
    /// Whose job it is in.
    pub soil: Soil,
    /// Spent in any case, on cover and on the claim itself.
    pub expense: f64,
    /// Stake of the lane.
    pub stake: f64,
    /// Of it, for whom the convicting statement names.
    pub bounty: f64,
    /// Of it, for the user.
    pub harm: f64,
    /// Pay lost with the claim.
    pub void: f64,
    /// Gas of convicting oneself.
    pub conviction: f64,
    /// For each copy revealed, less its gas.
    pub jackpot: f64,
}

impl Planted {
    /// By the rules, in a lane with `stake` SNO.
    pub fn by(rules: &Rules, market: &Market, soil: Soil, stake: f64) -> Self {
        let fees = rules.audits_per_claim() * rules.audit_fee() * market.price;
        let interval = market.cost() + market.gas(CLAIM_GAS) + fees;
        let (expense, void) = match soil {
            Soil::Own { cover } => (f64::from(cover.saturating_add(1)) * interval, 0.0),
            Soil::Receipt => (interval, 0.0),
            Soil::Strangers => (0.0, market.price),
        };
        Self {
            soil,
            expense,
            stake,
            bounty: rules.bounty() * stake,
            harm: rules.harm() * stake,
            void,
            conviction: market.gas(CONVICTION_GAS),
            jackpot: betrayal(rules, market, stake),
        }
    }

    /// Expected gain over none. The lazy of the crowd copy; if one of the honest is drawn it convicts the claim before
    /// copies are revealed, at the worst.
    pub fn gain(&self, crowd: &Crowd, audits: f64) -> f64 {
        let copies = f64::from(crowd.lazy) * crowd.chance(audits);
        let copied = crowd.copied(audits);
        let found = if self.soil == Soil::Receipt { 0.0 } else { crowd.caught(audits) };
        let harm = match self.soil {
            Soil::Own { .. } | Soil::Receipt => self.harm,
            Soil::Strangers => 0.0,
        };
        let convicted = self.stake + self.void - harm;
        let convicts_itself = convicted + self.conviction - self.bounty;
        (1.0 - found) * (copies * self.jackpot - copied * convicts_itself) - found * convicted - self.expense
    }
}

/// Lowest price of an interval, SNO, from which on a challenge that forces the worker's answer out is cheaper than the
/// work, gas not counted: the bond is lost. A worker need not answer before the time to commit ends; this is against
/// those that do.
pub fn lowest_price_to_force(rules: &Rules, market: &Market) -> f64 {
    rules.bond() / (market.audit_factor * market.cost_share)
}
