// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @dev Parameters of a deployment, fixed for good. Bounds: `ParameterBounds`; defaults: `deploy/parameters.toml`;
/// table and reasons: "Parameters" and "Economics" in `contracts/SPEC.md`.
struct Parameters {
    /// Seconds that unbonding takes (P-9).
    uint40 unbondingDelay;
    /// What a validator bonds, in wei of SNO.
    uint128 validatorCollateral;
    /// Clock of each side of a challenge, in seconds; also the time to meet a demand.
    uint32 disputeClock;
    /// Least seconds that a move of a challenge has.
    uint32 moveGrace;
    /// Least blocks that a move of a challenge, or a demand, has.
    uint32 moveBlocks;
    /// Bond of a challenge or a demand, in wei of SNO.
    uint128 disputeBond;
    /// Shortest challenge window that a job may have, in seconds.
    uint32 minChallengeWindow;
    /// Longest challenge window that a job may have, in seconds.
    uint32 maxChallengeWindow;
    /// Time that a replica has to seal its claim, in seconds (P-25).
    uint32 sealWindow;
    /// Auditor's share of a slash or a penalty, in 1/10,000 (P-7).
    uint16 bountyBps;
    /// User's share of a slash, in 1/10,000 (P-7).
    uint16 harmBps;
    /// Least stake of a lane, in prices of an interval (P-30).
    uint32 minStakeIntervals;
    /// Validators that are drawn for a claim on the mean, in 1/10,000 (P-31).
    uint32 auditsPerClaimBps;
    /// Fee of an audit, in 1/10,000 of the price of what is audited (P-29).
    uint16 auditFeeBps;
    /// Penalty for a wrong answer, in 1/10,000 of `validatorCollateral` (P-32).
    uint16 auditPenaltyBps;
    /// Length of the beacon's period, in seconds (P-31).
    uint32 beaconPeriod;
}
