// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IJobPayments} from "../../../../contracts/interfaces/jobs/IJobPayments.sol";
import {Claim, ClaimLink} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";
import {Signatures} from "../../protocol/Signatures.sol";

contract CheckpointsTest is ProtocolTest {
    uint64 private job;
    ClaimLink private none;

    function setUp() public override {
        super.setUp();
        job = _run(2, 1, 4);
    }

    function test_commit_recordsOneHash() public {
        Claim memory claim = _claim(job, 0, 0, 0);
        bytes32 id = Signatures.digest(block.chainid, address(checkpoints), Signatures.hash(claim));
        assertFalse(checkpoints.hasPending(job, 0, 0));
        vm.expectEmit(address(checkpoints));
        emit ICheckpoints.ClaimCommitted(id, job, claim);
        (, uint64 when) = _commit(job, 0, 0, 0, 0);

        assertEq(checkpoints.claimId(claim), id);
        assertEq(checkpoints.recordOf(job, 0, 0, 0), Signatures.record(claim, when));
        assertTrue(checkpoints.hasPending(job, 0, 0));
        assertFalse(checkpoints.hasPending(job, 1, 0));
        assertEq(checkpoints.requireLive(claim, when), id);
    }

    function test_commit_continues() public {
        uint64 when = 0;
        for (uint32 interval = 0; interval < 4; ++interval) {
            (, when) = _commit(job, 1, 0, interval, when);
            skip(7);
        }
        assertTrue(checkpoints.recordOf(job, 1, 0, 3) != 0);
    }

    function test_commit_isTheWorkers() public {
        address other = workers[1].addr;
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.NotWorker.selector, other));
        vm.prank(other);
        checkpoints.commit(_claim(job, 0, 0, 0), none);

        Claim memory noLane = _claim(job, 0, 0, 0);
        noLane.replica = 1;
        _refuseCommit(noLane, none, abi.encodeWithSelector(ICheckpoints.NotWorker.selector, workers[0].addr));
    }

    function test_commit_whileTheJobRuns() public {
        _refuseCommit(_claim(9, 0, 0, 0), none, abi.encodeWithSelector(ICheckpoints.JobNotOpen.selector, 9));

        uint40 deadline = jobs.jobOf(job).deadline;
        vm.warp(deadline + 1);
        _refuseCommit(
            _claim(job, 0, 0, 0), none, abi.encodeWithSelector(ICheckpoints.DeadlinePassed.selector, deadline)
        );
        vm.warp(deadline);
        _commit(job, 0, 0, 0, 0);

        vm.prank(user);
        jobs.cancel(job);
        _refuseCommit(_claim(job, 1, 0, 0), none, abi.encodeWithSelector(ICheckpoints.JobNotOpen.selector, job));
    }

    function test_commit_oncePerInterval() public {
        _commit(job, 0, 0, 0, 0);
        _refuseCommit(_claim(job, 0, 0, 0), none, abi.encodeWithSelector(ICheckpoints.AlreadyCommitted.selector, 0));
        Claim memory beyond = _claim(job, 0, 0, 4);
        _refuseCommit(beyond, none, abi.encodeWithSelector(ICheckpoints.IntervalOutOfRange.selector, 4));
    }

    function test_commit_leavesNothingOut() public {
        _refuseCommit(_claim(job, 0, 0, 1), none, abi.encodeWithSelector(ICheckpoints.NotTheNextClaim.selector, 1));
    }

    function test_commit_startsFromTheRegisteredState() public {
        Claim memory claim = _claim(job, 0, 0, 0);
        claim.parentState = _stateAt(1, 0);
        _refuseCommit(claim, none, abi.encodeWithSelector(ICheckpoints.WrongParentState.selector));
    }

    function test_commit_startsFromThePreviousState() public {
        (Claim memory parent, uint64 when) = _commit(job, 0, 0, 0, 0);
        bytes memory wrong = abi.encodeWithSelector(ICheckpoints.WrongParentState.selector);
        Claim memory claim = _claim(job, 0, 0, 1);
        _refuseCommit(claim, _link(parent, when + 1), wrong);
        ClaimLink memory link = _link(parent, when);
        link.io = 0;
        _refuseCommit(claim, link, wrong);
        link = _link(parent, when);
        link.parentState = 0;
        _refuseCommit(claim, link, wrong);
        claim.parentState = _stateAt(0, 0);
        _refuseCommit(claim, _link(parent, when), wrong);
    }

    function _refuseCommit(Claim memory claim, ClaimLink memory link, bytes memory reason) private {
        vm.expectRevert(reason);
        vm.prank(workers[claim.stage].addr);
        checkpoints.commit(claim, link);
    }

    function test_finalize_paysAfterTheWindow() public {
        uint64 when = uint64(block.timestamp);
        _commitAll(job, 0, 0);
        vm.warp(when + WINDOW - 1);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.WindowOpen.selector, when + WINDOW));
        _finalize(job, 0, 0, 0, 1, when);

        vm.warp(when + WINDOW);
        vm.expectEmit(address(checkpoints));
        emit ICheckpoints.ClaimsFinalized(job, 0, 0, 0, 3);
        vm.expectEmit(address(jobs));
        emit IJobPayments.Paid(job, workers[0].addr, 0, 0, 3, 3 * PRICE);
        vm.prank(stranger);
        _finalize(job, 0, 0, 0, 3, when);
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), 3 * PRICE);
        assertEq(checkpoints.laneOf(job, 0, 0).finalized, 3);
        assertTrue(checkpoints.hasPending(job, 0, 0));
        _finalize(job, 0, 0, 3, 4, when);
        assertFalse(checkpoints.hasPending(job, 0, 0));
    }

    function test_finalize_inOrderAndOnce() public {
        uint64 when = uint64(block.timestamp);
        _commitAll(job, 0, 0);
        skip(WINDOW);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.NotTheNextClaim.selector, 1));
        _finalize(job, 0, 0, 1, 2, when);
        _finalize(job, 0, 0, 0, 2, when);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.NotTheNextClaim.selector, 0));
        _finalize(job, 0, 0, 0, 1, when);
    }

    function test_finalize_knownClaimsOnly() public {
        uint64 when = uint64(block.timestamp);
        _commit(job, 0, 0, 0, 0);
        _commit(job, 1, 0, 0, 0);
        skip(WINDOW);
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        _finalize(job, 0, 0, 0, 1, when - 1);
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        _finalize(job, 0, 0, 0, 2, when);
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        _finalize(job, 0, 0, 0, 0, when);

        Claim[] memory claims = new Claim[](2);
        (claims[0], claims[1]) = (_claim(job, 0, 0, 0), _claim(job, 1, 0, 0));
        uint64[] memory times = new uint64[](2);
        (times[0], times[1]) = (when, when);
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        checkpoints.finalize(claims, times, _heldByUser(claims));
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        checkpoints.finalize(claims, new uint64[](1), _heldByUser(claims));

        claims[0].newState = 0;
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        checkpoints.finalize(claims, times, _heldByUser(claims));
    }

    function test_finalize_waitsForChallenges() public {
        (Claim memory claim, uint64 when) = _commit(job, 0, 0, 0, 0);
        vm.startPrank(address(challenges));
        bytes32 id = checkpoints.claimId(claim);
        checkpoints.hold(id);
        checkpoints.hold(id);
        checkpoints.release(id);
        vm.stopPrank();
        skip(WINDOW);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.Challenged.selector, id));
        _finalize(job, 0, 0, 0, 1, when);
        vm.prank(address(challenges));
        checkpoints.release(id);
        _finalize(job, 0, 0, 0, 1, when);
    }

    function test_voidFrom_endsTheLane() public {
        uint64 when = uint64(block.timestamp);
        _commit(job, 0, 0, 0, 0);
        _commit(job, 0, 0, 1, when);
        vm.expectEmit(address(checkpoints));
        emit ICheckpoints.ClaimsVoided(job, 0, 0, 1);
        _void(1);

        checkpoints.requireLive(_claim(job, 0, 0, 0), when);
        vm.expectRevert(ICheckpoints.ClaimIsVoid.selector);
        checkpoints.requireLive(_claim(job, 0, 0, 1), when);
        _refuseCommit(
            _claim(job, 0, 0, 2), _link(_claim(job, 0, 0, 1), when), abi.encodePacked(ICheckpoints.ClaimIsVoid.selector)
        );
        skip(WINDOW);
        vm.expectRevert(ICheckpoints.ClaimIsVoid.selector);
        _finalize(job, 0, 0, 0, 2, when);
        _finalize(job, 0, 0, 0, 1, when);
        assertFalse(checkpoints.hasPending(job, 0, 0));
        vm.expectRevert(ICheckpoints.ClaimIsFinal.selector);
        checkpoints.requireLive(_claim(job, 0, 0, 0), when);
        vm.expectRevert(ICheckpoints.ClaimIsFinal.selector);
        _void(0);
    }

    function test_voidFrom_goesBackOnly() public {
        _commitAll(job, 0, 0);
        _void(2);
        vm.expectRevert(ICheckpoints.ClaimIsVoid.selector);
        _void(3);
        _void(0);
        assertFalse(checkpoints.hasPending(job, 0, 0));
    }

    function _void(uint32 interval) private {
        vm.prank(address(disputes));
        checkpoints.voidFrom(job, 0, 0, interval);
    }

    function test_requireLive_knowsRecordsOnly() public {
        (Claim memory claim, uint64 when) = _commit(job, 0, 0, 0, 0);
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        checkpoints.requireLive(claim, when + 1);
        claim.newState = 0;
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        checkpoints.requireLive(claim, when);
    }

    /// @dev Setters open to anyone: none.
    function test_onlyTheContracts(address caller) public {
        vm.assume(caller != address(jobs) && caller != address(disputes));
        vm.assume(caller != address(challenges) && caller != address(custody));
        bytes memory refused = abi.encodeWithSelector(ICheckpoints.Unauthorized.selector, caller);
        vm.startPrank(caller);
        vm.expectRevert(refused);
        checkpoints.open(job, 1, WINDOW, 0, new address[](0), new bytes32[](0));
        vm.expectRevert(refused);
        checkpoints.close(job);
        vm.expectRevert(refused);
        checkpoints.hold(0);
        vm.expectRevert(refused);
        checkpoints.release(0);
        vm.expectRevert(refused);
        checkpoints.voidFrom(job, 0, 0, 0);
        vm.stopPrank();
    }
}
