// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @dev Parameters of a deployment, fixed for good. `ParameterBounds` checks the bounds; defaults are in
/// `deploy/parameters.toml`, reasons in "Economics" of `contracts/SPEC.md`. The table "Parameters" there, which
/// `script/bindings` writes, has these comments.
struct Parameters {
    /// Seconds that unbonding takes (P-9).
    /// Bound: ≥ 2 · maxChallengeWindow + dispute period (P-10), ≤ 180 days.
    uint40 unbondingDelay;
    /// What a validator bonds, in wei of SNO. With 10,000 SNO, a hundred validators take a third of the supply.
    /// Bound: > 0.
    uint128 validatorCollateral;
    /// Clock of each side of a challenge, in seconds; also the time to meet a demand.
    /// Bound: ≥ moveGrace; dispute period (P-10) ≤ 90 days.
    uint32 disputeClock;
    /// Least seconds that a move of a challenge has.
    /// Bound: > 0.
    uint32 moveGrace;
    /// Least blocks that a move of a challenge, or a demand, has.
    /// Bound: > 0, ≤ 7,200.
    uint32 moveBlocks;
    /// Bond of a claim's first challenge (P-44) and of a demand, in wei of SNO; also the least stake of a lane (P-30).
    /// Bound: > 0.
    uint128 disputeBond;
    /// Shortest challenge window that a job may have, in seconds.
    /// Bound: > 0.
    uint32 minChallengeWindow;
    /// Longest challenge window that a job may have, in seconds.
    /// Bound: ≥ minChallengeWindow, ≤ 90 days.
    uint32 maxChallengeWindow;
    /// Time that a replica has to seal its claim, in seconds (P-25).
    /// Bound: > 0, ≤ 7 days.
    uint32 sealWindow;
    /// Auditor's share of a slash or a penalty, in 1/10,000 (P-7).
    /// Bound: bountyBps + harmBps < 10,000.
    uint16 bountyBps;
    /// User's share of a slash, in 1/10,000 (P-7).
    /// Bound: bountyBps + harmBps < 10,000.
    uint16 harmBps;
    /// Least stake of a lane, in prices of an interval (P-30).
    uint32 minStakeIntervals;
    /// Validators that are drawn for a claim on the mean, in 1/10,000 (P-31); with 0, none are.
    /// Bound: ≤ 100,000.
    uint32 auditsPerClaimBps;
    /// Fee of an audit, in 1/10,000 of the price of what is audited (P-29).
    uint16 auditFeeBps;
    /// Penalty for a wrong answer, in 1/10,000 of `validatorCollateral` (P-32).
    /// Bound: ≤ 10,000.
    uint16 auditPenaltyBps;
    /// Length of the beacon's period, in seconds (P-31).
    /// Bound: > 0, ≤ maxChallengeWindow / 8.
    uint32 beaconPeriod;
}
