// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {JobTerms} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev How jobs end: `cancel`, `endIdle`, `settle`. Of serving jobs: `ServingSettlement.t.sol`; `collect`:
/// `JobPayments.t.sol`.
contract SettlementTest is ProtocolTest {
    function test_cancel_posted_returnsTheDeposit() public {
        uint64 job = _post(_terms(ETH, 2, 1, 3));
        uint256 deposit = jobs.jobOf(job).escrow;
        vm.expectEmit(address(jobs));
        emit IJobs.JobSettled(job, deposit);
        vm.prank(user);
        jobs.cancel(job);

        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Settled));
        assertEq(jobs.jobOf(job).escrow, 0);
        _collects(user, ETH, deposit);
    }

    function test_cancel_accepted_returnsLocksToo() public {
        uint64 job = _post(_terms(address(sno), 2, 1, 3));
        _accept(job);
        vm.prank(user);
        jobs.cancel(job);
        assertEq(_staked(workers[0].addr).locked, 0);
        assertEq(_staked(workers[1].addr).locked, 0);
        _collects(user, address(sno), 2 * 3 * PRICE);
    }

    /// @dev No cancel or refund; collateral that can never leave: a user that is gone holds nobody up.
    function test_cancel_byAnyoneOnceItsTimeIsOver() public {
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        _accept(job);
        vm.startPrank(stranger);
        vm.warp(jobs.jobOf(job).acceptBy);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotUser.selector, stranger));
        jobs.cancel(job);
        skip(1);
        jobs.cancel(job);
        assertEq(_staked(workers[0].addr).locked, 0);
        assertEq(jobs.creditOf(user, address(sno)), PRICE, "the user's, whoever cancelled");
    }

    function test_cancel_running_closes() public {
        uint64 job = _run(1, 1, 3);
        vm.startPrank(stranger);
        vm.warp(jobs.jobOf(job).deadline);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotUser.selector, stranger));
        jobs.cancel(job);
        skip(1);
        vm.expectEmit(address(jobs));
        emit IJobs.JobClosing(job, false);
        jobs.cancel(job);
        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Closing));
        jobs.settle(job);
        assertEq(jobs.creditOf(user, address(sno)), 3 * PRICE);
        assertEq(_staked(workers[0].addr).locked, 0);
    }

    /// @dev P-41: a user that gives its workers nothing to do does not hold their stakes until the deadline.
    function testFuzz_endIdle_byAWorkerOfTheJob(uint32 paidAfter, bool serving) public {
        JobTerms memory terms = serving ? _servingTerms(address(sno), 2, 1, 50) : _terms(address(sno), 2, 1, 3);
        terms.duration = 365 days;
        uint64 job = _run(terms);
        skip(bound(paidAfter, 0, 30 days));
        vm.prank(serving ? address(jobs.CHANNELS()) : address(checkpoints));
        jobs.pay(job, 0, 0, 1);
        uint256 from = block.timestamp + 2 * uint256(WINDOW) + parameters.maxChallengeWindow;

        vm.warp(from);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotWorker.selector, workers[1].addr));
        vm.prank(workers[1].addr);
        jobs.endIdle(job, 0, 0);
        vm.warp(from - 1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotIdle.selector, from));
        vm.prank(workers[0].addr);
        jobs.endIdle(job, 0, 0);
        vm.warp(from);
        vm.expectEmit(address(jobs));
        emit IJobs.JobClosing(job, false);
        vm.prank(workers[1].addr);
        jobs.endIdle(job, 1, 0);

        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Closing));
        vm.prank(workers[1].addr);
        jobs.endIdle(job, 1, 0);
        skip(2 * uint256(WINDOW));
        jobs.settle(job);
        assertEq(_staked(workers[0].addr).locked, 0);
        assertEq(_staked(workers[1].addr).locked, 0);
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), PRICE, "what was earned");
    }

    function test_cancel_twiceOrTooLate() public {
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, 5, IJobs.State.None));
        jobs.cancel(5);

        uint64 job = _run(1, 1, 1);
        vm.startPrank(user);
        jobs.cancel(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Closing));
        jobs.cancel(job);
        jobs.settle(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Settled));
        jobs.cancel(job);
    }

    /// @dev A user that closes a job pays for what was committed before.
    function test_cancel_running_leavesCommittedClaimsPayable() public {
        uint64 job = _run(1, 1, 3);
        uint64 when = uint64(block.timestamp);
        _commit(job, 0, 0, 0, 0);
        vm.startPrank(user);
        jobs.cancel(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.ClaimsPending.selector, 0, 0));
        jobs.settle(job);
        vm.stopPrank();
        skip(WINDOW);
        _finalize(job, 0, 0, 0, 1, when);
        jobs.settle(job);
        _collects(workers[0].addr, address(sno), PRICE);
        _collects(user, address(sno), 2 * PRICE);
    }

    function test_settle_paysWorkAndReturnsTheRest() public {
        JobTerms memory terms = _terms(ETH, 2, 2, 2);
        uint256 deposit = _cover(terms) + 1 ether;
        vm.prank(user);
        uint64 job = jobs.post{value: deposit}(terms, deposit);
        _accept(job);
        _start(job);
        uint64 when = uint64(block.timestamp);
        for (uint16 lane = 0; lane < 4; ++lane) {
            _commitAll(job, lane % 2, lane / 2);
        }
        skip(WINDOW);
        for (uint16 lane = 0; lane < 4; ++lane) {
            vm.expectRevert(abi.encodeWithSelector(IJobs.ClaimsPending.selector, lane % 2, lane / 2));
            jobs.settle(job);
            _finalize(job, lane % 2, lane / 2, 0, 2, when);
        }
        vm.expectEmit(address(jobs));
        emit IJobs.JobSettled(job, 1 ether);
        vm.prank(stranger);
        jobs.settle(job);

        for (uint256 lane = 0; lane < 4; ++lane) {
            assertEq(_staked(workers[lane].addr).locked, 0);
            _collects(workers[lane].addr, ETH, 2 * PRICE);
        }
        _collects(user, ETH, 1 ether);
        assertEq(address(jobs).balance, 0);
    }

    /// @dev Payments shared by capacity instead of by work done: who did more gets more, who did nothing gets nothing.
    function test_settle_paysByWork() public {
        uint64 job = _run(3, 1, 3);
        uint64 when = uint64(block.timestamp);
        _commitAll(job, 0, 0);
        _commit(job, 1, 0, 0, 0);
        vm.prank(user);
        jobs.cancel(job);
        skip(WINDOW);
        _finalize(job, 0, 0, 0, 3, when);
        _finalize(job, 1, 0, 0, 1, when);
        jobs.settle(job);
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), 3 * PRICE);
        assertEq(jobs.creditOf(workers[1].addr, address(sno)), PRICE);
        assertEq(jobs.creditOf(workers[2].addr, address(sno)), 0);
        assertEq(jobs.creditOf(user, address(sno)), 5 * PRICE);
    }

    function test_settle_notBeforeItRuns() public {
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Posted));
        jobs.settle(job);
        _accept(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Accepted));
        jobs.settle(job);
        vm.prank(user);
        jobs.cancel(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Settled));
        jobs.settle(job);
    }
}
