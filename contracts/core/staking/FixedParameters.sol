// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStaking} from "../../interfaces/IStaking.sol";
import {Parameters} from "../../types/Parameters.sol";

/// @title The deployment's parameters, fixed
/// @dev Written by script/bindings from `contracts/types/Parameters.sol`.
abstract contract FixedParameters is IStaking {
    uint40 internal immutable _UNBONDING_DELAY;
    uint128 internal immutable _VALIDATOR_COLLATERAL;
    uint32 internal immutable _DISPUTE_CLOCK;
    uint32 internal immutable _MOVE_GRACE;
    uint32 internal immutable _MOVE_BLOCKS;
    uint128 internal immutable _DISPUTE_BOND;
    uint32 internal immutable _MIN_CHALLENGE_WINDOW;
    uint32 internal immutable _MAX_CHALLENGE_WINDOW;
    uint32 internal immutable _SEAL_WINDOW;
    uint16 internal immutable _BOUNTY_BPS;
    uint16 internal immutable _HARM_BPS;
    uint32 internal immutable _MIN_STAKE_INTERVALS;
    uint32 internal immutable _AUDITS_PER_CLAIM_BPS;
    uint16 internal immutable _AUDIT_FEE_BPS;
    uint16 internal immutable _AUDIT_PENALTY_BPS;
    uint32 internal immutable _BEACON_PERIOD;

    constructor(Parameters memory p) {
        _UNBONDING_DELAY = p.unbondingDelay;
        _VALIDATOR_COLLATERAL = p.validatorCollateral;
        _DISPUTE_CLOCK = p.disputeClock;
        _MOVE_GRACE = p.moveGrace;
        _MOVE_BLOCKS = p.moveBlocks;
        _DISPUTE_BOND = p.disputeBond;
        _MIN_CHALLENGE_WINDOW = p.minChallengeWindow;
        _MAX_CHALLENGE_WINDOW = p.maxChallengeWindow;
        _SEAL_WINDOW = p.sealWindow;
        _BOUNTY_BPS = p.bountyBps;
        _HARM_BPS = p.harmBps;
        _MIN_STAKE_INTERVALS = p.minStakeIntervals;
        _AUDITS_PER_CLAIM_BPS = p.auditsPerClaimBps;
        _AUDIT_FEE_BPS = p.auditFeeBps;
        _AUDIT_PENALTY_BPS = p.auditPenaltyBps;
        _BEACON_PERIOD = p.beaconPeriod;
    }

    /// @inheritdoc IStaking
    function parameters() external view returns (Parameters memory) {
        return Parameters({
            unbondingDelay: _UNBONDING_DELAY,
            validatorCollateral: _VALIDATOR_COLLATERAL,
            disputeClock: _DISPUTE_CLOCK,
            moveGrace: _MOVE_GRACE,
            moveBlocks: _MOVE_BLOCKS,
            disputeBond: _DISPUTE_BOND,
            minChallengeWindow: _MIN_CHALLENGE_WINDOW,
            maxChallengeWindow: _MAX_CHALLENGE_WINDOW,
            sealWindow: _SEAL_WINDOW,
            bountyBps: _BOUNTY_BPS,
            harmBps: _HARM_BPS,
            minStakeIntervals: _MIN_STAKE_INTERVALS,
            auditsPerClaimBps: _AUDITS_PER_CLAIM_BPS,
            auditFeeBps: _AUDIT_FEE_BPS,
            auditPenaltyBps: _AUDIT_PENALTY_BPS,
            beaconPeriod: _BEACON_PERIOD
        });
    }
}
