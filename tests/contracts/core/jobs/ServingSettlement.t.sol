// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChannels} from "../../../../contracts/interfaces/IChannels.sol";
import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {JobTerms, Voucher} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev How serving jobs end: closed, they are open for one window to vouchers; they are settled when what was redeemed
/// last was open to audits and proofs for one, too.
contract ServingSettlementTest is ProtocolTest {
    function test_cancel_serving_opensAWindow() public {
        uint64 job = _run(_servingTerms(address(sno), 2, 1, 10));
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotUser.selector, stranger));
        vm.prank(stranger);
        jobs.cancel(job);
        skip(1 hours);
        vm.expectEmit(address(jobs));
        emit IJobs.JobClosing(job, false);
        vm.startPrank(user);
        jobs.cancel(job);
        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Closing));
        assertEq(jobs.jobOf(job).deadline, block.timestamp + WINDOW);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Closing));
        jobs.cancel(job);
    }

    /// @dev P-10: a user that is gone holds up no worker's stake.
    function test_cancel_serving_byAnyoneAfterTheDeadline() public {
        uint64 job = _run(_servingTerms(address(sno), 1, 1, 10));
        vm.startPrank(stranger);
        vm.warp(jobs.jobOf(job).deadline);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotUser.selector, stranger));
        jobs.cancel(job);
        skip(1);
        jobs.cancel(job);
        assertEq(jobs.jobOf(job).deadline, block.timestamp + WINDOW);
        skip(WINDOW);
        jobs.settle(job);
        assertEq(jobs.creditOf(user, address(sno)), 10 * PRICE);
        assertEq(_staked(workers[0].addr).locked, 0);
    }

    function test_cancel_serving_beforeTheStart() public {
        for (uint256 i = 0; i < 2; ++i) {
            uint64 job = _post(_servingTerms(address(sno), 1, 1, 10));
            if (i == 1) _accept(job);
            vm.prank(user);
            jobs.cancel(job);
            assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Settled));
            assertEq(_staked(workers[0].addr).locked, 0);
            _collects(user, address(sno), 10 * PRICE);
        }
    }

    function test_settle_serving_onlyOnceItIsOver() public {
        uint64 job = _run(_servingTerms(address(sno), 1, 1, 10));
        // However long it runs, and though all its tokens are paid: somebody has to close it.
        _redeem(_voucher(job, 0, 0, 1, 10));
        skip(365 days);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Running));
        jobs.settle(job);
        jobs.cancel(job);
        uint40 deadline = uint40(block.timestamp + WINDOW);
        for (uint256 i = 0; i < 2; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IJobs.WindowOpen.selector, deadline));
            jobs.settle(job);
            vm.warp(deadline - 1);
        }
        assertEq(_staked(workers[0].addr).locked, STAKE);
        vm.warp(deadline);
        jobs.settle(job);
        assertEq(_staked(workers[0].addr).locked, 0);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Settled));
        jobs.settle(job);
    }

    /// @dev P-20: what any lane redeems just before nothing can be redeemed any more is audited for a whole window,
    /// against its stake. Then, two windows after the job was closed, it is over for good (P-10).
    function test_settle_serving_waitsForTheLastRedemption() public {
        uint64 job = _run(_servingTerms(address(sno), 2, 2, 10));
        skip(3 days);
        _redeem(_voucher(job, 0, 0, 1, 1));
        vm.prank(user);
        jobs.cancel(job);
        uint40 deadline = jobs.jobOf(job).deadline;
        // Each later than the one before; the lanes in an order of their own.
        uint16[4] memory lanes = [uint16(2), 0, 3, 1];
        uint40[4] memory ahead = [uint40(WINDOW), WINDOW / 2, 2, 1];
        for (uint256 i = 0; i < 4; ++i) {
            vm.warp(deadline - ahead[i]);
            (uint16 stage, uint16 replica) = (lanes[i] % 2, lanes[i] / 2);
            uint32 epoch = channels.redeemedOf(job, stage, replica).epoch + 1;
            _redeem(_voucher(job, stage, replica, epoch, 10));
            uint40 from = deadline - ahead[i] + WINDOW;
            assertEq(channels.redeemedOf(job, stage, replica).redeemedAt, block.timestamp);
            vm.expectRevert(abi.encodeWithSelector(IJobs.WindowOpen.selector, from));
            jobs.settle(job);
        }
        vm.warp(deadline + WINDOW - 2);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WindowOpen.selector, deadline + WINDOW - 1));
        jobs.settle(job);
        for (uint256 lane = 0; lane < 4; ++lane) {
            assertEq(_staked(workers[lane].addr).locked, STAKE);
        }
        // Still convictable.
        vm.prank(address(disputes));
        jobs.convict(job, 1, 0);
        skip(1);
        vm.prank(stranger);
        jobs.settle(job);
        assertEq(_staked(workers[0].addr).locked, 0);
    }

    /// @dev However the redemptions fall, settlement comes one window after the last and one after the closing, and at
    /// most two after that.
    function testFuzz_settle_serving_isBounded(uint256 seed) public {
        uint64 job = _run(_servingTerms(address(sno), 2, 2, 10));
        uint256 from = 0;
        for (uint256 i = 0; i < 6; ++i) {
            uint256 noise = uint256(keccak256(abi.encode(seed, i)));
            if (i == 3) {
                vm.prank(user);
                jobs.cancel(job);
                from = from > jobs.jobOf(job).deadline ? from : jobs.jobOf(job).deadline;
            }
            (uint16 stage, uint16 replica) = (uint16(noise % 2), uint16(noise / 2 % 2));
            IChannels.Redeemed memory before = channels.redeemedOf(job, stage, replica);
            Voucher memory voucher = _voucher(job, stage, replica, before.epoch + 1, before.tokens + 1);
            if (i >= 3 && block.timestamp >= jobs.jobOf(job).deadline) {
                bytes memory signature = _sign(userKey, _voucherDigest(voucher));
                address worker = jobs.workerOf(job, stage, replica);
                vm.expectRevert(abi.encodeWithSelector(IChannels.RedemptionOver.selector, jobs.jobOf(job).deadline));
                vm.prank(worker);
                channels.redeem(voucher, signature);
            } else {
                _redeem(voucher);
                from = from > block.timestamp + WINDOW ? from : block.timestamp + WINDOW;
            }
            skip(noise >> 8 & 1 == 0 ? noise >> 16 & 0xff : (noise >> 16) % WINDOW);
        }
        assertLt(from, uint256(jobs.jobOf(job).deadline) + WINDOW);
        if (block.timestamp < from) {
            vm.expectRevert(abi.encodeWithSelector(IJobs.WindowOpen.selector, from));
            jobs.settle(job);
            vm.warp(from);
        }
        vm.prank(stranger);
        jobs.settle(job);
        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Settled));
    }

    /// @dev Every wei of the escrow is paid for a token or goes back (P-1, P-4).
    function test_settle_serving_paysTokensAndReturnsTheRest() public {
        JobTerms memory terms = _servingTerms(ETH, 2, 2, 10);
        uint256 deposit = _cover(terms) + 1 ether;
        vm.prank(user);
        uint64 job = jobs.post{value: deposit}(terms, deposit);
        _accept(job);
        _start(job);
        _redeem(_voucher(job, 0, 0, 1, 10));
        _redeem(_voucher(job, 1, 0, 1, 4));
        vm.prank(user);
        jobs.cancel(job);
        _redeem(_voucher(job, 1, 0, 2, 7));
        _redeem(_voucher(job, 0, 1, 1, 1));
        assertEq(jobs.jobOf(job).deadline, block.timestamp + WINDOW);
        skip(WINDOW);
        vm.expectEmit(address(jobs));
        emit IJobs.JobSettled(job, deposit - 18 * PRICE);
        vm.prank(stranger);
        jobs.settle(job);
        _collects(workers[0].addr, ETH, 10 * PRICE);
        _collects(workers[1].addr, ETH, 7 * PRICE);
        _collects(workers[2].addr, ETH, PRICE);
        _collects(user, ETH, deposit - 18 * PRICE);
        assertEq(address(jobs).balance, 0);
        for (uint256 lane = 0; lane < 4; ++lane) {
            assertEq(_staked(workers[lane].addr).locked, 0);
        }
    }

    /// @dev P-21: a conviction closes the job, and the window of the others starts with it.
    function test_convict_serving_closes() public {
        uint64 job = _run(_servingTerms(address(sno), 2, 1, 10));
        skip(3 hours);
        vm.expectEmit(address(jobs));
        emit IJobs.JobClosing(job, true);
        vm.prank(address(disputes));
        jobs.convict(job, 1, 0);
        uint40 deadline = uint40(block.timestamp + WINDOW);
        assertEq(jobs.jobOf(job).deadline, deadline);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WindowOpen.selector, deadline));
        jobs.settle(job);
        // Another lane is convicted later: the window stays.
        skip(WINDOW - 1);
        vm.prank(address(disputes));
        jobs.convict(job, 0, 0);
        skip(1);
        jobs.settle(job);
        assertEq(jobs.creditOf(user, address(sno)), 20 * PRICE);
    }
}
