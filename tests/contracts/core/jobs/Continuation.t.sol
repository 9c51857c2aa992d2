// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {JobTerms} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev P-38: a training job that goes on with an earlier one.
contract ContinuationTest is ProtocolTest {
    function test_takesOverTheKeyAndCountsOn(uint32 firstStep) public {
        uint64 former = _run(2, 1, 3);
        JobTerms memory terms = _continuing(former);
        terms.firstStep = uint32(bound(firstStep, 0, type(uint32).max - uint256(terms.intervals) * STEPS));
        vm.prevrandao(keccak256("another beacon"));
        vm.prank(user);
        jobs.cancel(former);
        jobs.settle(former);
        uint64 job = _run(terms);

        IJobs.Job memory record = jobs.jobOf(job);
        assertEq(record.jobKey, jobs.jobOf(former).jobKey);
        assertNotEq(record.jobKey, keccak256(abi.encode(keccak256("another beacon"), uint256(job))));
        assertEq(record.firstStep, terms.firstStep);

        // And so on, whether or not the one before is over.
        assertEq(jobs.jobOf(_post(_continuing(job))).jobKey, record.jobKey);
    }

    function test_isTheUsersAlone() public {
        uint64 former = _run(1, 1, 1);
        JobTerms memory terms = _continuing(former);
        deal(address(sno), stranger, 100 ether);
        vm.startPrank(stranger);
        sno.approve(address(jobs), 100 ether);
        vm.expectRevert(abi.encodeWithSelector(IJobs.InvalidTerms.selector, "continues"));
        jobs.post(terms, 100 ether);
    }

    function test_refusesWhatNeverBeganAndIsNoTraining() public {
        uint64 posted = _post(_terms(address(sno), 1, 1, 1));
        _refused("continues", _continuing(posted));
        _refused("continues", _continuing(99));
        uint64 serving = _run(_servingTerms(address(sno), 1, 1, 10));
        _refused("continues", _continuing(serving));
        JobTerms memory terms = _servingTerms(address(sno), 1, 1, 10);
        terms.firstStep = 1;
        _refused("firstStep", terms);
        terms.continues = serving;
        _refused("continues", terms);
    }

    function test_refusesStepsThatNoStatementCanName() public {
        JobTerms memory first = _terms(address(sno), 1, 1, 1);
        first.firstStep = 1;
        _refused("firstStep", first);
        JobTerms memory terms = _continuing(_run(1, 1, 1));
        terms.firstStep = type(uint32).max - terms.intervals * STEPS + 1;
        _refused("firstStep", terms);
        --terms.firstStep;
        _post(terms);
    }

    function _continuing(uint64 former) private view returns (JobTerms memory terms) {
        terms = _terms(address(sno), 1, 1, 2);
        (terms.continues, terms.firstStep) = (former, STEPS);
    }

    function _refused(string memory field, JobTerms memory terms) private {
        vm.expectRevert(abi.encodeWithSelector(IJobs.InvalidTerms.selector, field));
        vm.prank(user);
        jobs.post(terms, 1 ether);
    }
}
