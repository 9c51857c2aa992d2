// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @dev One seat in a job: a pipeline stage of one replica. Job (64 bits), stage (16), replica (16).
type LaneId is uint96;

/// @title Keys of lanes
library Lanes {
    /// @notice The lane's key; different lanes have different keys.
    function id(uint64 job, uint16 stage, uint16 replica) internal pure returns (LaneId) {
        return LaneId.wrap(uint96(job) << 32 | uint96(stage) << 16 | replica);
    }
}
