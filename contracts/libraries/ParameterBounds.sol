// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Parameters} from "../types/Parameters.sol";

/// @title Bounds of the deployment's parameters
library ParameterBounds {
    /// @dev All of something, in 1/10,000.
    uint256 internal constant WHOLE_BPS = 10_000;
    /// @dev No deposit is held longer than this by a delay, whatever a deployer asks for.
    uint256 internal constant MAX_DELAY = 90 days;

    error ParameterOutOfBounds(string parameter);

    /// @notice Reverts unless every parameter is within its bound.
    function check(Parameters memory p) internal pure {
        // INVARIANT: a job can be posted, and its claims can be challenged.
        if (p.minChallengeWindow == 0) revert ParameterOutOfBounds("minChallengeWindow");
        if (p.maxChallengeWindow < p.minChallengeWindow || p.maxChallengeWindow > MAX_DELAY) {
            revert ParameterOutOfBounds("maxChallengeWindow");
        }
        if (p.disputePeriod == 0 || p.disputePeriod > MAX_DELAY) revert ParameterOutOfBounds("disputePeriod");
        // INVARIANT: stake outlasts every claim it stands for (P-9).
        if (p.unbondingDelay < uint256(p.maxChallengeWindow) + p.disputePeriod || p.unbondingDelay > 2 * MAX_DELAY) {
            revert ParameterOutOfBounds("unbondingDelay");
        }
        // INVARIANT: holding back a claim and voting as a validator both cost something.
        if (p.disputeBond == 0) revert ParameterOutOfBounds("disputeBond");
        if (p.validatorCollateral == 0) revert ParameterOutOfBounds("validatorCollateral");
        // INVARIANT: some of every slash is burned (P-7).
        if (uint256(p.bountyBps) + p.harmBps >= WHOLE_BPS) revert ParameterOutOfBounds("bountyBps");
    }
}
