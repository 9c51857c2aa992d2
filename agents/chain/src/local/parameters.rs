//! The parameters of `deploy/local-parameters.toml`, which is part of the program: a local chain needs no checkout.

use alloy::primitives::U256;
use alloy::primitives::utils::parse_ether;
use serde::Deserialize;
use tensorlink_bindings::creation::Parameters;

use super::LocalError;

const FILE: &str = include_str!("../../../../deploy/local-parameters.toml");

/// The file, but for who gets the first SNO: that is the caller's choice.
#[derive(Deserialize)]
struct File {
    unbonding_delay_seconds: u64,
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

/// As the contracts take them.
pub(super) fn parameters() -> Result<Parameters, LocalError> {
    let bad = |reason: String| LocalError::Parameters(reason);
    let file: File = toml::from_str(FILE).map_err(|error| bad(error.to_string()))?;
    let sno = |amount: u64| -> Result<U256, LocalError> {
        parse_ether(&amount.to_string()).map_err(|error| bad(error.to_string()))
    };
    Ok(Parameters {
        unbondingDelay: file.unbonding_delay_seconds.try_into().map_err(|_| bad("the unbonding delay".into()))?,
        validatorCollateral: sno(file.validator_collateral_sno)?.to(),
        disputeClock: file.dispute_clock_seconds,
        moveGrace: file.move_grace_seconds,
        moveBlocks: file.move_blocks,
        disputeBond: sno(file.dispute_bond_sno)?.to(),
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_in_the_program_is_read() {
        let parameters = parameters().unwrap();
        assert_eq!(parameters.validatorCollateral.to_string(), "10000000000000000000000");
        assert!(parameters.minChallengeWindow <= parameters.maxChallengeWindow);
    }
}
