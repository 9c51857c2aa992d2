// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @dev Parameters of a deployment, fixed for good. Times in seconds, amounts in wei of SNO, shares in 1/10,000. Bounds:
/// `ParameterBounds`; defaults: `deploy/parameters.toml`; meaning: table at the end of `contracts/SPEC.md`.
struct Parameters {
    uint40 unbondingDelay;
    uint128 validatorCollateral;
    uint32 disputeClock;
    uint32 moveGrace;
    uint32 moveBlocks;
    uint128 disputeBond;
    uint32 minChallengeWindow;
    uint32 maxChallengeWindow;
    uint32 sealWindow;
    uint16 bountyBps;
    uint16 harmBps;
    uint32 minStakeIntervals;
    uint32 auditsPerClaimBps;
    uint16 auditFeeBps;
    uint16 auditPenaltyBps;
    uint32 beaconPeriod;
}
