//! Parameters as the contracts return them, and as the files in `deploy` give them.
//! Written by script/bindings from `contracts/types/Parameters.sol`.

use alloy::primitives::aliases::U40;
use serde::Deserialize;
use tensorlink_bindings::staking::Staking;
use tensorlink_node::ports::chain::Parameters;

/// Wei of one SNO.
const SNO: u128 = 10u128.pow(18);

/// A file of parameters.
#[derive(Deserialize)]
pub(crate) struct File {
    unbonding_delay_seconds: u32,
    validator_collateral_sno: u64,
    dispute_clock_seconds: u32,
    move_grace_seconds: u32,
    move_blocks: u32,
    dispute_bond_sno: u64,
    min_challenge_window_seconds: u32,
    max_challenge_window_seconds: u32,
    seal_window_seconds: u32,
    bounty_bps: u16,
    harm_bps: u16,
    min_stake_intervals: u32,
    audits_per_claim_bps: u32,
    audit_fee_bps: u16,
    audit_penalty_bps: u16,
    beacon_period_seconds: u32,
}

/// As the agents know them.
pub(crate) fn seen(p: &Staking::Parameters) -> Parameters {
    Parameters {
        unbonding_delay: p.unbondingDelay.to(),
        validator_collateral: p.validatorCollateral,
        dispute_clock: p.disputeClock.into(),
        move_grace: p.moveGrace.into(),
        move_blocks: p.moveBlocks.into(),
        dispute_bond: p.disputeBond,
        min_challenge_window: p.minChallengeWindow.into(),
        max_challenge_window: p.maxChallengeWindow.into(),
        seal_window: p.sealWindow.into(),
        bounty_bps: p.bountyBps,
        harm_bps: p.harmBps,
        min_stake_intervals: p.minStakeIntervals,
        audits_per_claim_bps: p.auditsPerClaimBps,
        audit_fee_bps: p.auditFeeBps,
        audit_penalty_bps: p.auditPenaltyBps,
        beacon_period: p.beaconPeriod.into(),
    }
}

/// As the contracts take them.
pub(crate) fn on_chain(file: &File) -> Staking::Parameters {
    Staking::Parameters {
        unbondingDelay: U40::from(file.unbonding_delay_seconds),
        validatorCollateral: u128::from(file.validator_collateral_sno) * SNO,
        disputeClock: file.dispute_clock_seconds,
        moveGrace: file.move_grace_seconds,
        moveBlocks: file.move_blocks,
        disputeBond: u128::from(file.dispute_bond_sno) * SNO,
        minChallengeWindow: file.min_challenge_window_seconds,
        maxChallengeWindow: file.max_challenge_window_seconds,
        sealWindow: file.seal_window_seconds,
        bountyBps: file.bounty_bps,
        harmBps: file.harm_bps,
        minStakeIntervals: file.min_stake_intervals,
        auditsPerClaimBps: file.audits_per_claim_bps,
        auditFeeBps: file.audit_fee_bps,
        auditPenaltyBps: file.audit_penalty_bps,
        beaconPeriod: file.beacon_period_seconds,
    }
}
