// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Parameters} from "../../types/Parameters.sol";

/// @title Bounds of the deployment's parameters
library ParameterBounds {
    /// @dev All of something, in 1/10,000.
    uint256 internal constant WHOLE_BPS = 10_000;
    /// @dev No deposit is held longer than this by a delay, whatever a deployer asks for.
    uint256 internal constant MAX_DELAY = 90 days;

    /// @dev A replica that seals nothing holds back the others no longer than this.
    uint256 internal constant MAX_SEAL_WINDOW = 7 days;
    /// @dev A day of blocks of 12 s.
    uint256 internal constant MAX_MOVE_BLOCKS = 7200;
    /// @dev Audits of a claim, on the mean, in 1/10,000: ten.
    uint256 internal constant MAX_AUDITS_PER_CLAIM_BPS = 100_000;
    /// @dev Least part of the longest challenge window that two periods of the beacon, the longest until a seed, may
    /// take: a quarter, in which audits are committed.
    uint256 internal constant PERIODS_PER_WINDOW = 8;
    /// @dev Most questions of a challenge; a game over the largest interval and tensor takes about ten.
    uint256 internal constant MAX_ASKS = 32;
    /// @dev Most questions of a challenge that do not go on from the last answer. The longest game of an honest
    /// challenger has three, for the logs, a log and the states again; as many are left for hints that missed
    /// by chance.
    uint256 internal constant MAX_RESTARTS = 6;

    error ParameterOutOfBounds(string parameter);

    /// @notice Longest time that a challenge takes, in seconds, on a chain that makes blocks: both clocks, and the
    /// grace of every move.
    function disputePeriod(Parameters memory p) internal pure returns (uint256) {
        return 2 * uint256(p.disputeClock) + 2 * MAX_ASKS * p.moveGrace;
    }

    /// @notice Reverts unless every parameter is within its bound.
    function check(Parameters memory p) internal pure {
        // INVARIANT: a job can be posted, and its claims can be challenged.
        if (p.minChallengeWindow == 0) revert ParameterOutOfBounds("minChallengeWindow");
        if (p.maxChallengeWindow < p.minChallengeWindow || p.maxChallengeWindow > MAX_DELAY) {
            revert ParameterOutOfBounds("maxChallengeWindow");
        }
        // INVARIANT: replicas have time to seal, and wait for each other no longer than that (P-25).
        if (p.sealWindow == 0 || p.sealWindow > MAX_SEAL_WINDOW) revert ParameterOutOfBounds("sealWindow");
        // INVARIANT: nobody loses a challenge for a move that could not be made in time.
        if (p.moveGrace == 0 || p.disputeClock < p.moveGrace) revert ParameterOutOfBounds("moveGrace");
        if (p.moveBlocks == 0 || p.moveBlocks > MAX_MOVE_BLOCKS) revert ParameterOutOfBounds("moveBlocks");
        if (disputePeriod(p) > MAX_DELAY) revert ParameterOutOfBounds("disputeClock");
        // INVARIANT: stake outlasts every claim it stands for (P-9), of replicas that differ, too (P-26).
        if (p.unbondingDelay < 2 * uint256(p.maxChallengeWindow) + disputePeriod(p) || p.unbondingDelay > 2 * MAX_DELAY)
        {
            revert ParameterOutOfBounds("unbondingDelay");
        }
        // INVARIANT: holding back a claim and voting as a validator both cost something.
        if (p.disputeBond == 0) revert ParameterOutOfBounds("disputeBond");
        if (p.validatorCollateral == 0) revert ParameterOutOfBounds("validatorCollateral");
        // INVARIANT: a claim can be audited, and the budget for it fits the escrow (P-29).
        if (p.auditsPerClaimBps > MAX_AUDITS_PER_CLAIM_BPS) revert ParameterOutOfBounds("auditsPerClaimBps");
        if (p.beaconPeriod == 0 || p.beaconPeriod * PERIODS_PER_WINDOW > p.maxChallengeWindow) {
            revert ParameterOutOfBounds("beaconPeriod");
        }
        // INVARIANT: a penalty takes no more than there is.
        if (p.auditPenaltyBps > WHOLE_BPS) revert ParameterOutOfBounds("auditPenaltyBps");
        // INVARIANT: some of every slash is burned (P-7).
        if (uint256(p.bountyBps) + p.harmBps >= WHOLE_BPS) revert ParameterOutOfBounds("bountyBps");
    }
}
