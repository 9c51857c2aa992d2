//! Parameters of a deployment.
//! Written by script/bindings from `contracts/types/Parameters.sol`.

use serde::{Deserialize, Serialize};

/// Parameters fixed at deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    /// Seconds that unbonding takes (P-9).
    /// Bound: ≥ 2 · maxChallengeWindow + dispute period (P-10), ≤ 180 days.
    pub unbonding_delay: u64,
    /// What a validator bonds, in wei of SNO. With 10,000 SNO, a hundred validators take a third of the supply.
    /// Bound: > 0.
    pub validator_collateral: u128,
    /// Clock of each side of a challenge, in seconds; also the time to meet a demand.
    /// Bound: ≥ moveGrace; dispute period (P-10) ≤ 90 days.
    pub dispute_clock: u64,
    /// Least seconds that a move of a challenge has.
    /// Bound: > 0.
    pub move_grace: u64,
    /// Least blocks that a move of a challenge, or a demand, has.
    /// Bound: > 0, ≤ 7,200.
    pub move_blocks: u64,
    /// Bond of a claim's first challenge (P-44) and of a demand, in wei of SNO; also the least stake of a lane (P-30).
    /// Bound: > 0.
    pub dispute_bond: u128,
    /// Shortest challenge window that a job may have, in seconds.
    /// Bound: > 0.
    pub min_challenge_window: u64,
    /// Longest challenge window that a job may have, in seconds.
    /// Bound: ≥ minChallengeWindow, ≤ 90 days.
    pub max_challenge_window: u64,
    /// Time that a replica has to seal its claim, in seconds (P-25).
    /// Bound: > 0, ≤ 7 days.
    pub seal_window: u64,
    /// Auditor's share of a slash or a penalty, in 1/10,000 (P-7).
    /// Bound: bountyBps + harmBps < 10,000.
    pub bounty_bps: u16,
    /// User's share of a slash, in 1/10,000 (P-7).
    /// Bound: bountyBps + harmBps < 10,000.
    pub harm_bps: u16,
    /// Least stake of a lane, in prices of an interval (P-30).
    pub min_stake_intervals: u32,
    /// Validators that are drawn for a claim on the mean, in 1/10,000 (P-31); with 0, none are.
    /// Bound: ≤ 100,000.
    pub audits_per_claim_bps: u32,
    /// Fee of an audit, in 1/10,000 of the price of what is audited (P-29).
    pub audit_fee_bps: u16,
    /// Penalty for a wrong answer, in 1/10,000 of `validatorCollateral` (P-32).
    /// Bound: ≤ 10,000.
    pub audit_penalty_bps: u16,
    /// Length of the beacon's period, in seconds (P-31).
    /// Bound: > 0, ≤ maxChallengeWindow / 8.
    pub beacon_period: u64,
}
