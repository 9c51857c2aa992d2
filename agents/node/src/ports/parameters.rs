//! Parameters of a deployment.
//! Written by script/bindings from `contracts/types/Parameters.sol`.

use serde::{Deserialize, Serialize};

/// Parameters fixed at deployment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Parameters {
    /// Seconds that unbonding takes (P-9).
    pub unbonding_delay: u64,
    /// What a validator bonds, in wei of SNO.
    pub validator_collateral: u128,
    /// Clock of each side of a challenge, in seconds; also the time to meet a demand.
    pub dispute_clock: u64,
    /// Least seconds that a move of a challenge has.
    pub move_grace: u64,
    /// Least blocks that a move of a challenge, or a demand, has.
    pub move_blocks: u64,
    /// Bond of a challenge or a demand, in wei of SNO.
    pub dispute_bond: u128,
    /// Shortest challenge window that a job may have, in seconds.
    pub min_challenge_window: u64,
    /// Longest challenge window that a job may have, in seconds.
    pub max_challenge_window: u64,
    /// Time that a replica has to seal its claim, in seconds (P-25).
    pub seal_window: u64,
    /// Auditor's share of a slash or a penalty, in 1/10,000 (P-7).
    pub bounty_bps: u16,
    /// User's share of a slash, in 1/10,000 (P-7).
    pub harm_bps: u16,
    /// Least stake of a lane, in prices of an interval (P-30).
    pub min_stake_intervals: u32,
    /// Validators that are drawn for a claim on the mean, in 1/10,000 (P-31).
    pub audits_per_claim_bps: u32,
    /// Fee of an audit, in 1/10,000 of the price of what is audited (P-29).
    pub audit_fee_bps: u16,
    /// Penalty for a wrong answer, in 1/10,000 of `validatorCollateral` (P-32).
    pub audit_penalty_bps: u16,
    /// Length of the beacon's period, in seconds (P-31).
    pub beacon_period: u64,
}
