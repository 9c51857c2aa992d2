//! Where a slashed stake goes, to the wei, and what convicting oneself loses.

use crate::rules::{Rules, WHOLE_BPS};

/// A slashed stake in three parts that add up to it, wei of SNO (rule P-7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// For whom the statement names, rounded down.
    pub bounty: u128,
    /// For the user, rounded down.
    pub harm: u128,
    /// Gone: what the others leave, so rounded up.
    pub burned: u128,
}

impl Split {
    /// As `Staking.slash` computes it. None for stakes beyond 2^128 / 10,000 wei, or shares of more than the whole.
    pub fn of(stake: u128, rules: &Rules) -> Option<Self> {
        let part = |bps: u32| stake.checked_mul(bps.into())?.checked_div(WHOLE_BPS.into());
        let (bounty, harm) = (part(rules.bounty_bps)?, part(rules.harm_bps)?);
        Some(Self { bounty, harm, burned: stake.checked_sub(bounty)?.checked_sub(harm)? })
    }
}

/// Which of the three parties of a conviction the cheater is, besides the worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disguise {
    /// None: somebody else convicts it.
    Caught,
    /// The auditor too: it has signed to a second key of its own.
    Auditor,
    /// Auditor and user: a job of its own. It cheats nobody then, and its pay was its own money.
    AuditorAndUser,
}

impl Disguise {
    /// All, from the dearest to the cheapest.
    pub const ALL: [Self; 3] = [Self::Caught, Self::Auditor, Self::AuditorAndUser];

    /// Share of the stake that comes back.
    pub fn recaptured(self, rules: &Rules) -> f64 {
        match self {
            Self::Caught => 0.0,
            Self::Auditor => rules.bounty(),
            Self::AuditorAndUser => rules.bounty() + rules.harm(),
        }
    }

    /// What the cheater loses for certain of a stake, wei, gas and void claims not counted. None where [`Split::of`]
    /// has none.
    pub fn loss(self, stake: u128, rules: &Rules) -> Option<u128> {
        let split = Split::of(stake, rules)?;
        match self {
            Self::Caught => Some(stake),
            Self::Auditor => split.burned.checked_add(split.harm),
            Self::AuditorAndUser => Some(split.burned),
        }
    }
}
