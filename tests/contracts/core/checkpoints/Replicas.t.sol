// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {Claim, ClaimLink} from "../../../../contracts/types/Types.sol";
import {ReplicaTest} from "../../protocol/ReplicaTest.sol";
import {Signatures} from "../../protocol/Signatures.sol";

/// @dev Claims of jobs with several replicas: the table of `ICheckpoints`, row by row (P-24, P-25). Claims that differ:
/// `ReplicasDiffer.t.sol`.
contract ReplicasTest is ReplicaTest {
    ClaimLink private none;

    function _refuseSeal(Claim memory claim, bytes memory reason) private {
        bytes32 sealedClaim = _sealedClaim(claim);
        address worker = jobs.workerOf(job, 0, claim.replica);
        vm.expectRevert(reason);
        vm.prank(worker);
        checkpoints.seal(claim.job, claim.stage, claim.replica, claim.interval, sealedClaim);
    }

    function _refuseReveal(Claim memory claim, bytes32 salt, bytes memory reason) private {
        ClaimLink memory link = _linkOf(claim.replica, claim.interval);
        address worker = jobs.workerOf(job, 0, claim.replica);
        vm.expectRevert(reason);
        vm.prank(worker);
        checkpoints.reveal(claim, link, salt);
    }

    function _refuseReveal(uint16 replica, uint32 interval, bytes memory reason) private {
        Claim memory claim = _own(replica, interval);
        _refuseReveal(claim, _salt(claim), reason);
    }

    function _with(bytes4 selector, uint256 value) private pure returns (bytes memory) {
        return abi.encodeWithSelector(selector, value);
    }

    // Sealing

    function test_seal_isRemembered() public {
        Claim memory claim = _own(1, 0);
        vm.expectEmit(address(checkpoints));
        emit ICheckpoints.ClaimSealed(job, 0, 1, 0, _sealedClaim(claim));
        _seal(claim);
        assertEq(checkpoints.sealOf(job, 0, 1, 0), _sealedClaim(claim));
        ICheckpoints.Round memory round = checkpoints.roundOf(job, 0, 0);
        assertEq(round.sealedAt, block.timestamp);
        assertEq(round.seals, 1);
        assertEq(round.revealedAt, 0);
        assertTrue(checkpoints.hasPending(job, 0, 1), "it can still become a claim");
        assertEq(checkpoints.recordOf(job, 0, 1, 0), 0);
    }

    function test_seal_isTheWorkers() public {
        address other = workers[1].addr;
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.NotWorker.selector, other));
        vm.prank(other);
        checkpoints.seal(job, 0, 0, 0, keccak256("a claim"));
    }

    function test_seal_whileTheJobRuns() public {
        vm.expectRevert(_with(ICheckpoints.JobNotOpen.selector, 9));
        checkpoints.seal(9, 0, 0, 0, keccak256("a claim"));
        uint40 deadline = jobs.jobOf(job).deadline;
        vm.warp(deadline + 1);
        _refuseSeal(_own(0, 0), _with(ICheckpoints.DeadlinePassed.selector, deadline));
        vm.warp(deadline);
        _seal(_own(0, 0));
        vm.prank(user);
        jobs.cancel(job);
        _refuseSeal(_own(1, 0), _with(ICheckpoints.JobNotOpen.selector, job));
    }

    function test_seal_onceInOrderAndNotEmpty() public {
        _refuseSeal(_own(0, 1), _with(ICheckpoints.NotTheNextClaim.selector, 1));
        _refuseSeal(_own(0, INTERVALS), _with(ICheckpoints.IntervalOutOfRange.selector, INTERVALS));
        _seal(_own(0, 0));
        _refuseSeal(_own(0, 0), _with(ICheckpoints.AlreadySealed.selector, 0));
        vm.expectRevert(_with(ICheckpoints.WrongSeal.selector, 1));
        vm.prank(workers[0].addr);
        checkpoints.seal(job, 0, 0, 1, 0);
        assertEq(checkpoints.roundOf(job, 0, 0).seals, 1);
    }

    /// @dev Each kind of job has its own way of making claims.
    function test_oneStepOrTwo() public {
        vm.expectRevert(_with(ICheckpoints.JobIsReplicated.selector, job));
        vm.prank(workers[0].addr);
        checkpoints.commit(_own(0, 0), none);

        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        uint64 single = _run(1, 1, 1);
        vm.startPrank(workers[0].addr);
        vm.expectRevert(_with(ICheckpoints.JobIsNotReplicated.selector, single));
        checkpoints.seal(single, 0, 0, 0, keccak256("a claim"));
        vm.expectRevert(_with(ICheckpoints.WrongSeal.selector, 0));
        checkpoints.reveal(_claim(single, 0, 0, 0), none, 0);
        checkpoints.commit(_claim(single, 0, 0, 0), none);
        vm.stopPrank();
    }

    // When one and when the other

    function test_reveal_whenAllHaveSealed() public {
        _seal(_own(0, 0));
        _seal(_own(1, 0));
        _refuseReveal(0, 0, _with(ICheckpoints.SealingOpen.selector, 0));
        _seal(_own(2, 0));
        Claim memory claim = _own(1, 0);
        bytes32 id = checkpoints.claimId(claim);
        vm.expectEmit(address(checkpoints));
        emit ICheckpoints.ClaimCommitted(id, job, claim);
        _open(1, 0);
        assertEq(checkpoints.recordOf(job, 0, 1, 0), Signatures.record(claim, block.timestamp));
        assertEq(checkpoints.roundOf(job, 0, 0).revealedAt, block.timestamp);
        _open(0, 0);
        _open(2, 0);
        assertFalse(checkpoints.roundOf(job, 0, 0).differ);
    }

    /// @dev From a seal window after the first seal on, a round takes reveals and no seals.
    function test_tooLate() public {
        _seal(_own(0, 0));
        uint256 end = block.timestamp + SEALING;
        vm.warp(end - 1);
        _refuseReveal(0, 0, _with(ICheckpoints.SealingOpen.selector, 0));
        _seal(_own(1, 0));
        vm.warp(end);
        _refuseSeal(_own(2, 0), _with(ICheckpoints.SealingOver.selector, 0));
        assertTrue(checkpoints.isTooLate(job, 0, 2));
        _open(0, 0);
        _refuseSeal(_own(2, 0), _with(ICheckpoints.SealingOver.selector, 0));
        // It is not waited for any more.
        _seal(_own(0, 1));
        _seal(_own(1, 1));
        _open(0, 1);
        _refuseSeal(_own(2, 1), _with(ICheckpoints.NotTheNextClaim.selector, 1));
        _refuseReveal(2, 0, _with(ICheckpoints.WrongSeal.selector, 0));
        assertFalse(checkpoints.isTooLate(job, 0, 0));
    }

    /// @dev Who seals ahead cannot hurry the others: they have a whole window from the first reveal of the
    /// interval before.
    function test_sealingAheadHurriesNobody() public {
        for (uint32 interval = 0; interval < INTERVALS; ++interval) {
            _seal(_own(0, interval));
        }
        skip(SEALING - 1);
        _seal(_own(1, 0));
        _seal(_own(2, 0));
        skip(20 hours);
        _seal(_own(1, 1));
        _open(0, 0);
        skip(SEALING - 1);
        _refuseReveal(0, 1, _with(ICheckpoints.SealingOpen.selector, 1));
        _seal(_own(2, 1));
        _open(0, 1);
        _refuseReveal(0, 2, _with(ICheckpoints.SealingOpen.selector, 2));
        _refuseReveal(1, 1, _with(ICheckpoints.NotTheNextClaim.selector, 1));
    }

    /// @dev Nobody can seal any more, so whoever has sealed need not wait for the others.
    function test_reveal_pastTheDeadline() public {
        vm.warp(jobs.jobOf(job).deadline);
        _seal(_own(0, 0));
        _refuseReveal(0, 0, _with(ICheckpoints.SealingOpen.selector, 0));
        skip(1);
        _open(0, 0);
    }

    function test_reveal_afterTheEndOfTheJob() public {
        _sealAll(0);
        _seal(_own(0, 1));
        vm.prank(user);
        jobs.cancel(job);
        uint256 end = block.timestamp + SEALING;
        assertTrue(checkpoints.hasPending(job, 0, 1));
        vm.expectRevert(abi.encodeWithSelector(IJobs.ClaimsPending.selector, 0, 0));
        jobs.settle(job);
        _open(0, 0);
        _open(0, 1);
        vm.warp(end);
        _open(1, 0);
        vm.warp(end + 1);
        _refuseReveal(2, 0, _with(ICheckpoints.DeadlinePassed.selector, end));
        assertFalse(checkpoints.hasPending(job, 0, 2), "it had its time");
        skip(WINDOW);
        _finalizeOf(0, 0, 2);
        _finalizeOf(1, 0, 1);
        jobs.settle(job);
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), 2 * PRICE);
        assertEq(jobs.creditOf(workers[1].addr, address(sno)), PRICE);
        for (uint256 i = 0; i < REPLICAS; ++i) {
            assertEq(_staked(workers[i].addr).locked, 0, "nobody did wrong");
        }
    }

    /// @dev Funds and stakes have an exit, though the user is gone and a lane never says a word.
    function test_aJobWithALateLaneSettles() public {
        for (uint32 interval = 0; interval < INTERVALS; ++interval) {
            _seal(_own(0, interval));
            _seal(_own(1, interval));
        }
        skip(SEALING);
        for (uint32 interval = 0; interval < INTERVALS; ++interval) {
            _open(0, interval);
            _open(1, interval);
        }
        vm.expectRevert(abi.encodeWithSelector(IJobs.ClaimsPending.selector, 0, 0));
        jobs.settle(job);
        skip(WINDOW);
        _finalizeOf(0, 0, INTERVALS);
        _finalizeOf(1, 0, INTERVALS);
        vm.prank(stranger);
        jobs.settle(job);
        assertEq(jobs.creditOf(workers[1].addr, address(sno)), INTERVALS * PRICE);
        assertEq(jobs.creditOf(user, address(sno)), INTERVALS * PRICE, "for what the late lane did not do");
        assertEq(_staked(workers[2].addr).locked, 0, "lateness is no fault");
        assertEq(_staked(workers[2].addr).bonded, STAKE);
    }

    // What is revealed

    function test_reveal_whatWasSealed() public {
        _sealAll(0);
        bytes memory wrong = _with(ICheckpoints.WrongSeal.selector, 0);
        Claim memory claim = _own(0, 0);
        _refuseReveal(claim, keccak256("another salt"), wrong);
        bytes32 salt = _salt(claim);
        claim.io = keccak256("another");
        _refuseReveal(claim, salt, wrong);

        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.NotWorker.selector, workers[1].addr));
        vm.prank(workers[1].addr);
        checkpoints.reveal(_own(0, 0), none, salt);
        _open(0, 0);
        _refuseReveal(0, 0, _with(ICheckpoints.AlreadyCommitted.selector, 0));
    }

    /// @dev A seal that is copied opens to the other's claim only, and that is not the copier's.
    function test_copyingASealIsUseless() public {
        Claim memory claim = _own(0, 0);
        _seal(claim);
        _seal(_own(2, 0));
        bytes32 sealedClaim = _sealedClaim(claim);
        vm.prank(workers[1].addr);
        checkpoints.seal(job, 0, 1, 0, sealedClaim);
        _open(0, 0);
        _refuseReveal(_own(1, 0), _salt(claim), _with(ICheckpoints.WrongSeal.selector, 0));
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.NotWorker.selector, workers[1].addr));
        vm.prank(workers[1].addr);
        checkpoints.reveal(claim, none, _salt(claim));
    }

    function test_reveal_continues() public {
        _sealAll(0);
        Claim memory wrong = _own(1, 1);
        wrong.parentState = _stateAt(0, 0);
        _seal(_own(0, 1));
        _seal(wrong);
        _seal(_own(2, 1));
        for (uint16 replica = 0; replica < REPLICAS; ++replica) {
            _open(replica, 0);
        }
        _refuseReveal(wrong, _salt(wrong), abi.encodePacked(ICheckpoints.WrongParentState.selector));
    }

    /// @dev A conviction ends the job and the lane; what the others have sealed by then is still theirs.
    function test_aConvictedLaneIsOutAndTheOthersAreNot() public {
        _sealAll(0);
        _sealAll(1);
        _open(1, 0);
        vm.prank(address(disputes));
        checkpoints.voidFrom(job, 0, 1, 0);
        vm.prank(address(disputes));
        jobs.convict(job, 0, 1);
        _refuseReveal(1, 1, abi.encodePacked(ICheckpoints.ClaimIsVoid.selector));
        assertFalse(checkpoints.hasPending(job, 0, 1));
        _open(0, 0);
        _open(0, 1);
        _open(2, 0);
        skip(WINDOW);
        _finalizeOf(0, 0, 2);
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), 2 * PRICE);
    }

    // Any order

    /// @dev Whatever the lanes do when: no seal after a reveal of the same round, and who has sealed in time can always
    /// reveal in the end.
    function testFuzz_sealsComeBeforeReveals(uint256 seed) public {
        uint32[REPLICAS] memory seals;
        uint32[REPLICAS] memory reveals;
        for (uint256 i = 0; i < 40; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint16 replica = uint16(seed % REPLICAS);
            if (seed >> 8 & 1 == 0) {
                seals[replica] += _trySeal(replica, seals[replica]);
            } else if (reveals[replica] < seals[replica]) {
                reveals[replica] += _tryReveal(replica, reveals[replica]);
            }
            if (seed >> 9 & 7 == 0) skip((seed >> 12) % SEALING);
        }
        vm.warp(jobs.jobOf(job).deadline + 1);
        for (uint16 replica = 0; replica < REPLICAS; ++replica) {
            for (; reveals[replica] < seals[replica]; ++reveals[replica]) {
                _open(replica, reveals[replica]);
            }
        }
    }

    function _trySeal(uint16 replica, uint32 interval) private returns (uint32) {
        if (interval == INTERVALS) return 0;
        bool revealed = checkpoints.roundOf(job, 0, interval).revealedAt != 0;
        try this.sealOwn(replica, interval) {
            assertFalse(revealed, "it could have been copied");
            return 1;
        } catch {
            return 0;
        }
    }

    function _tryReveal(uint16 replica, uint32 interval) private returns (uint32) {
        try this.openOwn(replica, interval) {
            return 1;
        } catch {
            return 0;
        }
    }

    function sealOwn(uint16 replica, uint32 interval) external {
        _seal(_own(replica, interval));
    }

    function openOwn(uint16 replica, uint32 interval) external {
        _open(replica, interval);
    }
}
