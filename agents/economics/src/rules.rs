//! What a deployment fixes, and the values that this crate recommends.

/// Ten thousand: the whole, in basis points.
pub const WHOLE_BPS: u32 = 10_000;

/// Most questions of a challenge.
const MAX_ASKS: u32 = 32;

/// Rules of a network. Basis points are 1/10,000.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Share of a slashed stake for finders, basis points: one half for whom the convicting statement names, the other
    /// for auditors that had sealed answers about the lane (P-45).
    pub bounty_bps: u32,
    /// Share of a slashed stake for the user, basis points. What bounty and harm leave is burned.
    pub harm_bps: u32,
    /// Audits that a claim gets on the mean, in 1/10,000 of an audit.
    pub audits_per_claim_bps: u32,
    /// What the escrow pays for an audit whatever its answer, in basis points of the lane's price of an interval.
    pub audit_fee_bps: u32,
    /// The most that a validator loses for an answer that is not the worker's of a claim that became final, in basis
    /// points of its collateral; it is no more than the lane's stake. The accuser gets [`Self::bounty`] of it, the rest
    /// is burned.
    pub audit_penalty_bps: u32,
    /// A beacon is drawn once in this time, seconds. A claim's is that of the second-next multiple.
    pub beacon_period_seconds: u32,
    /// Least stake locked for a lane, in prices of an interval.
    pub min_stake_intervals: u32,
    /// Bond of a dispute, SNO.
    pub dispute_bond_sno: u32,
    /// What a validator stakes, SNO.
    pub validator_collateral_sno: u32,
    /// Time between asking for stake and having it, seconds.
    pub unbonding_delay_seconds: u32,
    /// Time that each side of a challenge has for all its moves, seconds.
    pub dispute_clock_seconds: u32,
    /// Time for a move that is left when the clock is not, seconds.
    pub move_grace_seconds: u32,
    /// Longest time in which a claim can be challenged, seconds; twice as long where replicas differ.
    pub max_challenge_window_seconds: u32,
}

impl Rules {
    /// The values that `contracts/SPEC.md`, "Economics", gives reasons for.
    pub const RECOMMENDED: Self = Self {
        bounty_bps: 5_000,
        harm_bps: 3_000,
        audits_per_claim_bps: 1_000,
        audit_fee_bps: 12_500,
        audit_penalty_bps: 5_000,
        beacon_period_seconds: 300,
        min_stake_intervals: 100,
        dispute_bond_sno: 100,
        validator_collateral_sno: 10_000,
        unbonding_delay_seconds: 1_814_400,
        dispute_clock_seconds: 43_200,
        move_grace_seconds: 1_200,
        max_challenge_window_seconds: 604_800,
    };

    /// Longest time that a challenge takes, seconds: both clocks, and the grace of every move
    /// (`ParameterBounds.disputePeriod`).
    pub const fn dispute_period_seconds(&self) -> u32 {
        let clocks = self.dispute_clock_seconds.saturating_mul(2);
        clocks.saturating_add(self.move_grace_seconds.saturating_mul(2 * MAX_ASKS))
    }

    /// Bounty, share of the stake.
    pub fn bounty(&self) -> f64 {
        share(self.bounty_bps)
    }

    /// Half of the bounty, for whom the convicting statement names, share of the stake.
    pub fn finders(&self) -> f64 {
        self.bounty() / 2.0
    }

    /// The other half, for the auditors that had sealed answers about the lane; burned if there are none. Share of
    /// the stake.
    pub fn auditors(&self) -> f64 {
        self.bounty() / 2.0
    }

    /// Harm, share of the stake.
    pub fn harm(&self) -> f64 {
        share(self.harm_bps)
    }

    /// Burned, share of the stake: what bounty and harm leave. Where nobody shares the auditors' half, that comes
    /// on top.
    pub fn burn(&self) -> f64 {
        share(WHOLE_BPS.saturating_sub(self.bounty_bps).saturating_sub(self.harm_bps))
    }

    /// Audits per claim, the mean.
    pub fn audits_per_claim(&self) -> f64 {
        share(self.audits_per_claim_bps)
    }

    /// Fee of an audit, in prices of an interval.
    pub fn audit_fee(&self) -> f64 {
        share(self.audit_fee_bps)
    }

    /// Highest penalty for a wrong answer, SNO.
    pub fn highest_penalty(&self) -> f64 {
        share(self.audit_penalty_bps) * self.collateral()
    }

    /// Penalty for a wrong answer about a lane with `stake` SNO, SNO.
    pub fn audit_penalty(&self, stake: f64) -> f64 {
        self.highest_penalty().min(stake)
    }

    /// What the accuser of a wrong answer about a lane with `stake` SNO gets, SNO.
    pub fn jackpot(&self, stake: f64) -> f64 {
        self.bounty() * self.audit_penalty(stake)
    }

    /// Least stake of a lane, in prices of an interval.
    pub fn min_stake(&self) -> f64 {
        f64::from(self.min_stake_intervals)
    }

    /// Least stake of a lane whose interval costs `price` SNO, SNO.
    pub fn stake_at(&self, price: f64) -> f64 {
        self.min_stake() * price
    }

    /// Bond of a dispute, SNO.
    pub fn bond(&self) -> f64 {
        f64::from(self.dispute_bond_sno)
    }

    /// Collateral of a validator, SNO.
    pub fn collateral(&self) -> f64 {
        f64::from(self.validator_collateral_sno)
    }
}

/// Basis points as a share of one.
pub fn share(bps: u32) -> f64 {
    f64::from(bps) / f64::from(WHOLE_BPS)
}
