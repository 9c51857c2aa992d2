//! Audits of receipts: paid only with the worker's word, and without penalty. All money here is in SNO, per audit.
//!
//! A receipt's worker cannot be made to speak on chain, so nobody is accused over one. Instead the auditor reveals its
//! sealed answer together with a statement of the worker that says the same. Who is lazy has nothing to reveal, unless
//! the worker told it before: such a worker leaks. Who looks gets nothing from a worker that refuses; it should answer
//! no more draws for that one.
//!
//! A receipt is drawn for once its epoch is redeemed, and what is paid stays paid. So a worker that redeems late is
//! wrong about many texts for one stake ([`most_deferred`]).

use crate::market::{AUDIT_GAS, Market};
use crate::rules::Rules;

/// Most texts of the greatest length that can be drawn for together: whoever is wrong about all of so many, or of
/// fewer, loses. `stake` in prices of such a text, of which each saves `saving`; `recaptured` of the stake comes back,
/// and `caught` is the chance for each text.
///
/// About `n` texts the gain is `n · saving − (1 − (1 − caught)^n) · stake · (1 − recaptured)`, which begins at 0 and is
/// convex: it loses up to some `n` and gains beyond.
pub fn most_deferred(stake: f64, saving: f64, recaptured: f64, caught: f64) -> u32 {
    (1..u32::MAX).take_while(|texts| gain_deferred(*texts, stake, saving, recaptured, caught) < 0.0).last().unwrap_or(0)
}

/// What being wrong about `texts` that are drawn for together gains, prices.
fn gain_deferred(texts: u32, stake: f64, saving: f64, recaptured: f64, caught: f64) -> f64 {
    let found = -(f64::from(texts) * (-caught).ln_1p()).exp_m1();
    f64::from(texts) * saving - found * stake * (1.0 - recaptured)
}

/// What an audit of a receipt can bring and cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Confirmed {
    /// Paid for an answer that the worker confirms, SNO.
    pub fee: f64,
    /// Cost of computing the text again, SNO.
    pub work: f64,
    /// Cost of answering on chain, SNO, spent at the worst whether it is confirmed or not.
    pub gas: f64,
    /// Receipts whose worker signs nothing for those that look, share of all.
    pub refusing: f64,
    /// Receipts whose worker tells those that do not look the answer in time, and confirms it, share of all.
    pub leaking: f64,
}

impl Confirmed {
    /// By the rules, of a text that is `length` of the greatest; no worker refuses or leaks.
    pub fn by(rules: &Rules, market: &Market, length: f64) -> Self {
        Self {
            fee: length * rules.audit_fee() * market.price,
            work: length * market.audit_work(),
            gas: market.gas(AUDIT_GAS),
            refusing: 0.0,
            leaking: 0.0,
        }
    }

    /// Expected income of who looks, SNO an audit.
    pub fn honest(&self) -> f64 {
        (1.0 - self.refusing) * self.fee - self.work - self.gas
    }

    /// Expected income of who does not look, SNO an audit.
    pub fn lazy(&self) -> f64 {
        self.leaking * self.fee - self.gas
    }

    /// Share of receipts whose worker may refuse before looking loses.
    pub fn highest_refusing(&self) -> f64 {
        1.0 - (self.work + self.gas) / self.fee
    }

    /// Share of receipts whose worker must leak for not looking to gain at all.
    pub fn least_leaking(&self) -> f64 {
        self.gas / self.fee
    }

    /// Share of receipts whose worker must leak for not looking to bring as much as looking.
    pub fn leaking_as_looking(&self) -> f64 {
        1.0 - self.refusing - self.work / self.fee
    }
}
