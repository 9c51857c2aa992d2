//! Where a slashed stake goes, to the wei, and what convicting oneself loses.

use crate::rules::{Rules, WHOLE_BPS};

/// A slashed stake in four parts that add up to it, wei of SNO (rules P-7 and P-45).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Split {
    /// For whom the statement names: half of the bounty, which is rounded down.
    pub bounty: u128,
    /// For the lane's auditors: the other half, rounded down. 0 if none had sealed.
    pub shared: u128,
    /// For the user, rounded down.
    pub harm: u128,
    /// Gone: what the others leave, so rounded up.
    pub burned: u128,
}

impl Split {
    /// As `Staking.slash` computes it. None for stakes beyond 2^128 / 10,000 wei, or shares of more than the whole.
    pub fn of(stake: u128, rules: &Rules, has_auditors: bool) -> Option<Self> {
        let part = |bps: u32| stake.checked_mul(bps.into())?.checked_div(WHOLE_BPS.into());
        let (whole, harm) = (part(rules.bounty_bps)?, part(rules.harm_bps)?);
        let half = whole / 2;
        let (bounty, shared) = (whole.checked_sub(half)?, if has_auditors { half } else { 0 });
        let burned = stake.checked_sub(bounty)?.checked_sub(shared)?.checked_sub(harm)?;
        Some(Self { bounty, shared, harm, burned })
    }
}

/// Which of the parties of a conviction the cheater is, besides the worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disguise {
    /// None: somebody else convicts it.
    Caught,
    /// The finder too: it has signed to a second key of its own.
    Finder,
    /// The finder, and whoever was drawn and had sealed: at the worst.
    FinderAndAuditors,
    /// Finder and user: a job of its own. It cheats nobody then, and its pay was its own money.
    FinderAndUser,
    /// All of them.
    Everybody,
}

impl Disguise {
    /// All, from the dearest to the cheapest.
    pub const ALL: [Self; 5] =
        [Self::Caught, Self::Finder, Self::FinderAndAuditors, Self::FinderAndUser, Self::Everybody];

    /// Share of the stake that comes back.
    pub fn recaptured(self, rules: &Rules) -> f64 {
        match self {
            Self::Caught => 0.0,
            Self::Finder => rules.finders(),
            Self::FinderAndAuditors => rules.bounty(),
            Self::FinderAndUser => rules.finders() + rules.harm(),
            Self::Everybody => rules.bounty() + rules.harm(),
        }
    }

    /// What the cheater loses for certain of a stake, wei, gas and void claims not counted. None where [`Split::of`]
    /// has none.
    pub fn loss(self, stake: u128, rules: &Rules) -> Option<u128> {
        let split = Split::of(stake, rules, true)?;
        let back = match self {
            Self::Caught => 0,
            Self::Finder => split.bounty,
            Self::FinderAndAuditors => split.bounty.checked_add(split.shared)?,
            Self::FinderAndUser => split.bounty.checked_add(split.harm)?,
            Self::Everybody => return Some(split.burned),
        };
        stake.checked_sub(back)
    }
}
