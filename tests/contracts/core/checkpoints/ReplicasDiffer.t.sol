// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {Claim, ClaimLink} from "../../../../contracts/types/Types.sol";
import {ReplicaTest} from "../../protocol/ReplicaTest.sol";

/// @dev Replicas whose claims are not equal: that the chain says so, and what follows (P-26).
contract ReplicasDifferTest is ReplicaTest {
    ClaimLink private none;

    /// @dev Replica 1 claims another state for interval 0 than replica 0.
    function _differ() private returns (Claim memory other) {
        other = _own(1, 0);
        other.newState = keccak256("another state");
        _seal(_own(0, 0));
        _seal(other);
        _seal(_own(2, 0));
        _open(0, 0);
        skip(WINDOW - 1);
    }

    function test_unequalClaimsAreToldOf() public {
        Claim memory other = _differ();
        bytes32 id = checkpoints.claimId(other);
        vm.expectEmit(address(checkpoints));
        emit ICheckpoints.ReplicasDiffer(id, job, 0, 0);
        _reveal(other, none);
        assertTrue(checkpoints.roundOf(job, 0, 0).differ);
        assertEq(checkpoints.roundOf(job, 0, 0).outcome, _outcomeOf(_own(0, 0)));
        // Who agrees with the first is not told of.
        vm.recordLogs();
        _open(2, 0);
        assertEq(vm.getRecordedLogs().length, 1);
    }

    /// @dev Each part of the outcome counts.
    function testFuzz_equalIsWhollyEqual(uint256 part, bytes32 value) public {
        Claim memory other = _own(1, 0);
        if (part % 3 == 0) other.newState = value;
        if (part % 3 == 1) other.io = value;
        bool same = _outcomeOf(other) == _outcomeOf(_own(0, 0));
        _seal(_own(0, 0));
        _seal(other);
        _seal(_own(2, 0));
        _open(0, 0);
        _reveal(other, none);
        assertEq(checkpoints.roundOf(job, 0, 0).differ, !same);
        assertEq(checkpoints.windowOf(job, 0, 0), same ? WINDOW : 2 * WINDOW);
    }

    /// @dev P-8, P-26: finality and challenges know the same window.
    function test_theWindowOfUnequalClaimsIsTwiceAsLong() public {
        uint64 when = uint64(block.timestamp);
        Claim memory other = _differ();
        _sealAll(1);
        _open(0, 1);
        _reveal(other, none);
        assertEq(checkpoints.windowOf(job, 0, 0), 2 * WINDOW);
        assertEq(checkpoints.windowOf(job, 0, 1), WINDOW, "of another interval");
        vm.warp(when + 2 * WINDOW - 1);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.WindowOpen.selector, when + 2 * WINDOW));
        _finalizeOf(0, 0, 1);
        vm.prank(auditor);
        challenges.open(_own(0, 0), when, _plain(2));
        skip(1);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.DeadlinePassed.selector, when + 2 * WINDOW));
        vm.prank(auditor);
        challenges.open(_own(0, 0), when, _plain(2));
        // The other was made later, so it is open for longer.
        vm.prank(auditor);
        challenges.open(other, when + WINDOW - 1, _plain(2));
    }

    function test_whatIsFinalStaysFinal() public {
        Claim memory other = _differ();
        skip(1);
        _finalizeOf(0, 0, 1);
        _reveal(other, none);
        assertEq(checkpoints.laneOf(job, 0, 0).finalized, 1);
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), PRICE);
        skip(WINDOW);
        vm.prank(auditor);
        challenges.open(other, uint64(block.timestamp - WINDOW), _plain(2));
    }
}
