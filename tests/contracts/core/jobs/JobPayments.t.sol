// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {IStaking} from "../../../../contracts/interfaces/IStaking.sol";
import {IJobPayments} from "../../../../contracts/interfaces/jobs/IJobPayments.sol";
import {JobTerms} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev Refuses ETH until told otherwise.
contract Picky {
    bool private _accepting;

    function accept() external {
        _accepting = true;
    }

    function post(IJobs jobs, JobTerms calldata terms) external payable returns (uint64) {
        return jobs.post{value: msg.value}(terms, msg.value);
    }

    function cancel(IJobs jobs, uint64 job) external {
        jobs.cancel(job);
    }

    function collect(IJobs jobs) external {
        jobs.collect(address(0));
    }

    receive() external payable {
        require(_accepting, "no");
    }
}

/// @dev Calls back into `collect` while being paid.
contract Greedy {
    IJobs private immutable _JOBS;
    bytes public refusal;

    constructor(IJobs jobs) {
        _JOBS = jobs;
    }

    function post(JobTerms calldata terms) external payable returns (uint64) {
        return _JOBS.post{value: msg.value}(terms, msg.value);
    }

    function cancelAndCollect(uint64 job) external {
        _JOBS.cancel(job);
        _JOBS.collect(address(0));
    }

    receive() external payable {
        try _JOBS.collect(address(0)) {}
        catch (bytes memory reason) {
            refusal = reason;
        }
    }
}

/// @dev On whose word lanes are paid, and how what was earned is collected.
contract JobPaymentsTest is ProtocolTest {
    /// @dev Jobs pays tokens on nobody's word but the channels', and claims on nobody's but the checkpoints'.
    function test_pay_isTheContracts() public {
        uint64 serving = _run(_servingTerms(address(sno), 2, 2, 100));
        _stake(workers[0].addr, IStaking.Role.Worker, STAKE);
        uint64 training = _run(1, 1, 5);
        address[4] memory callers = [address(checkpoints), address(channels), workers[0].addr, user];
        for (uint256 i = 0; i < 4; ++i) {
            for (uint256 k = 0; k < 2; ++k) {
                if (i == k) continue;
                vm.expectRevert(abi.encodeWithSelector(IJobs.Unauthorized.selector, callers[i]));
                vm.prank(callers[i]);
                jobs.pay(k == 0 ? training : serving, 0, 0, 1);
            }
        }
    }

    /// @dev Release and mint of the same sum: what is collected is gone.
    function test_collect_once() public {
        vm.startPrank(user);
        vm.expectRevert(IJobPayments.NothingToCollect.selector);
        jobs.collect(ETH);
        vm.stopPrank();
        uint64 job = _post(_terms(ETH, 1, 1, 1));
        vm.startPrank(user);
        jobs.cancel(job);
        vm.expectRevert(IJobPayments.NothingToCollect.selector);
        jobs.collect(address(sno));
        vm.expectEmit(address(jobs));
        emit IJobPayments.Collected(user, ETH, PRICE);
        assertEq(jobs.collect(ETH), PRICE);
        vm.expectRevert(IJobPayments.NothingToCollect.selector);
        jobs.collect(ETH);
    }

    function test_collect_byAReceiverThatReverts() public {
        Picky picky = new Picky();
        JobTerms memory terms = _terms(ETH, 1, 1, 1);
        vm.deal(address(this), 1 ether);
        uint64 job = picky.post{value: 1 ether}(jobs, terms);
        picky.cancel(jobs, job);
        vm.expectRevert(IJobPayments.TransferFailed.selector);
        picky.collect(jobs);
        assertEq(jobs.creditOf(address(picky), ETH), 1 ether, "still owed");
        picky.accept();
        picky.collect(jobs);
        assertEq(address(picky).balance, 1 ether);
    }

    function test_collect_isNotReentered() public {
        Greedy greedy = new Greedy(jobs);
        _post(_terms(ETH, 1, 1, 5));
        vm.deal(address(this), 1 ether);
        uint64 job = greedy.post{value: 1 ether}(_terms(ETH, 1, 1, 1));
        greedy.cancelAndCollect(job);
        assertEq(address(greedy).balance, 1 ether);
        assertEq(bytes4(greedy.refusal()), bytes4(keccak256("ReentrancyGuardReentrantCall()")));
        assertEq(address(jobs).balance, 5 * PRICE, "others' escrow is untouched");
    }
}
