// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {LaneId, Lanes} from "../../../contracts/libraries/claims/Lanes.sol";
import {Test} from "forge-std/Test.sol";

/// @notice A lane's key names that lane alone.
contract LanesSymbolic is Test {
    function check_differentLanesHaveDifferentKeys(
        uint64 job,
        uint16 stage,
        uint16 replica,
        uint64 otherJob,
        uint16 otherStage,
        uint16 otherReplica
    ) public pure {
        bool sameKey = LaneId.unwrap(Lanes.id(job, stage, replica))
            == LaneId.unwrap(Lanes.id(otherJob, otherStage, otherReplica));
        assert(sameKey == (job == otherJob && stage == otherStage && replica == otherReplica));
    }

    function testFuzz_differentLanesHaveDifferentKeys(uint64 job, uint16 stage, uint16 replica, uint64 other)
        public
        pure
    {
        check_differentLanesHaveDifferentKeys(job, stage, replica, other, stage, replica);
        check_differentLanesHaveDifferentKeys(job, stage, replica, job, uint16(other), replica);
        check_differentLanesHaveDifferentKeys(job, stage, replica, job, stage, uint16(other));
    }
}
