// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {stdToml} from "forge-std/StdToml.sol";

import {Parameters} from "../contracts/types/Parameters.sol";

/// @title A file of parameters: `deploy/parameters.toml`
/// @dev Written by script/bindings from `contracts/types/Parameters.sol`.
library ParametersFile {
    using stdToml for string;

    error ParameterTooLarge(string key, uint256 value);

    /// @notice Parameters as a TOML file gives them.
    function parse(string memory toml) internal pure returns (Parameters memory p) {
        p.unbondingDelay = uint40(_bounded(toml, ".unbonding_delay_seconds", type(uint40).max));
        p.validatorCollateral = uint128(_sno(toml, ".validator_collateral_sno", type(uint128).max));
        p.disputeClock = uint32(_bounded(toml, ".dispute_clock_seconds", type(uint32).max));
        p.moveGrace = uint32(_bounded(toml, ".move_grace_seconds", type(uint32).max));
        p.moveBlocks = uint32(_bounded(toml, ".move_blocks", type(uint32).max));
        p.disputeBond = uint128(_sno(toml, ".dispute_bond_sno", type(uint128).max));
        p.minChallengeWindow = uint32(_bounded(toml, ".min_challenge_window_seconds", type(uint32).max));
        p.maxChallengeWindow = uint32(_bounded(toml, ".max_challenge_window_seconds", type(uint32).max));
        p.sealWindow = uint32(_bounded(toml, ".seal_window_seconds", type(uint32).max));
        p.bountyBps = uint16(_bounded(toml, ".bounty_bps", type(uint16).max));
        p.harmBps = uint16(_bounded(toml, ".harm_bps", type(uint16).max));
        p.minStakeIntervals = uint32(_bounded(toml, ".min_stake_intervals", type(uint32).max));
        p.auditsPerClaimBps = uint32(_bounded(toml, ".audits_per_claim_bps", type(uint32).max));
        p.auditFeeBps = uint16(_bounded(toml, ".audit_fee_bps", type(uint16).max));
        p.auditPenaltyBps = uint16(_bounded(toml, ".audit_penalty_bps", type(uint16).max));
        p.beaconPeriod = uint32(_bounded(toml, ".beacon_period_seconds", type(uint32).max));
    }

    /// @dev Wei, of whole SNO.
    function _sno(string memory toml, string memory key, uint256 limit) private pure returns (uint256) {
        return _bounded(toml, key, limit / 1 ether) * 1 ether;
    }

    function _bounded(string memory toml, string memory key, uint256 limit) private pure returns (uint256 value) {
        value = toml.readUint(key);
        // INVARIANT: a slip in the file is not cut to size in silence.
        if (value > limit) revert ParameterTooLarge(key, value);
    }
}
