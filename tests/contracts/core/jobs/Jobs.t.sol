// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";

import {IJobs} from "../../../../contracts/interfaces/IJobs.sol";
import {JobKind, JobTerms} from "../../../../contracts/types/Types.sol";
import {ProtocolTest} from "../../protocol/ProtocolTest.sol";

/// @dev `post` and `start`. What lies between: `JobOffers.t.sol`; the end of jobs: `Settlement.t.sol`.
contract JobsTest is ProtocolTest {
    function test_post_takesSNO(uint96 deposit) public {
        deposit = uint96(bound(deposit, 1, 10_000 ether));
        JobTerms memory terms = _terms(address(sno), 3, 2, 5);
        vm.expectEmit(address(jobs));
        emit IJobs.JobPosted(1, user, deposit, terms);
        vm.prank(user);
        uint64 job = jobs.post(terms, deposit);

        assertEq(job, 1);
        assertEq(jobs.jobCount(), 1);
        assertEq(sno.balanceOf(address(jobs)), deposit);
        IJobs.Job memory record = jobs.jobOf(job);
        assertEq(record.user, user);
        assertEq(uint8(record.state), uint8(IJobs.State.Posted));
        assertEq(uint8(record.kind), uint8(JobKind.Training));
        assertEq(record.escrow, deposit);
        assertEq(jobs.programOf(job, 2), terms.programs[2]);
        assertEq(jobs.initialStateOf(job, 2), terms.initialStates[2]);
        assertEq(jobs.programOf(job, 3), 0);
        assertEq(jobs.initialStateOf(job, 3), 0);
    }

    function test_post_takesETH(uint96 deposit) public {
        deposit = uint96(bound(deposit, 1, 1000 ether));
        vm.prank(user);
        uint64 job = jobs.post{value: deposit}(_terms(ETH, 1, 1, 1), deposit);
        assertEq(address(jobs).balance, deposit);
        assertEq(jobs.jobOf(job).escrow, deposit);
    }

    function test_post_refusesOtherSums() public {
        JobTerms memory inEth = _terms(ETH, 1, 1, 1);
        JobTerms memory inSno = _terms(address(sno), 1, 1, 1);
        vm.startPrank(user);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongDeposit.selector, 4, 5));
        jobs.post{value: 4}(inEth, 5);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongDeposit.selector, 5, 0));
        jobs.post{value: 5}(inSno, 5);
        vm.expectRevert(
            abi.encodeWithSelector(
                IERC20Errors.ERC20InsufficientBalance.selector, user, sno.balanceOf(user), 1_000_000 ether
            )
        );
        jobs.post(inSno, 1_000_000 ether);
    }

    /// @dev Payments truncated to a smaller integer: nothing is.
    function test_post_refusesWhatDoesNotFit() public {
        _refused("deposit", _terms(ETH, 1, 1, 1), uint256(type(uint128).max) + 1);
        _refused("deposit", _terms(ETH, 1, 1, 1), 0);
    }

    function test_post_refusesTermsOutOfBounds() public {
        _refused("token", _terms(makeAddr("another token"), 1, 1, 1), 1);
        _refused("stages", _terms(ETH, 0, 1, 1), 1);
        _refused("stages", _terms(ETH, 65, 1, 1), 1);
        _refused("replicas", _terms(ETH, 1, 0, 1), 1);
        _refused("replicas", _terms(ETH, 1, 17, 1), 1);
        _refused("replicas", _terms(ETH, 43, 3, 1), 1);
        _refused("intervals", _terms(ETH, 1, 1, 0), 1);
        _refused("intervals", _terms(ETH, 1, 1, 1_000_001), 1);
    }

    function test_post_refusesStepsThatNoStatementCanName() public {
        JobTerms memory t = _terms(ETH, 1, 1, 1);
        t.stepsPerInterval = 0;
        _refused("stepsPerInterval", t, 1);
        (t.intervals, t.stepsPerInterval) = (65_536, 65_536);
        _refused("stepsPerInterval", t, 1);
        t.intervals = 65_535;
        _accepted(t);
    }

    function test_post_refusesTimesOutOfBounds() public {
        JobTerms memory t = _terms(ETH, 1, 1, 1);
        t.acceptBy = uint40(block.timestamp - 1);
        _refused("acceptBy", t, 1);
        t.acceptBy = uint40(block.timestamp + 30 days + 1);
        _refused("acceptBy", t, 1);
        t.acceptBy = uint40(block.timestamp + 30 days);
        _accepted(t);
        t.duration = 0;
        _refused("duration", t, 1);
        t.duration = 365 days + 1;
        _refused("duration", t, 1);
        t.duration = 365 days;
        _accepted(t);
        t.challengeWindow = 1 hours - 1;
        _refused("challengeWindow", t, 1);
        t.challengeWindow = 7 days + 1;
        _refused("challengeWindow", t, 1);
        t.challengeWindow = 7 days;
        _accepted(t);
    }

    function test_post_refusesMissingRoots() public {
        JobTerms memory t = _terms(ETH, 2, 1, 1);
        t.workerStake = 0;
        _refused("workerStake", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.programs = new bytes32[](1);
        _refused("programs", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.programs[1] = 0;
        _refused("programs", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.initialStates = new bytes32[](3);
        _refused("initialStates", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.initialStates[0] = 0;
        _refused("initialStates", t, 1);
        t = _terms(ETH, 2, 1, 1);
        t.manifest = new bytes(129);
        _refused("manifest", t, 1);
    }

    /// @dev Tokens are counted in 32 bits, texts in 2^20 tokens; there is no state to start from.
    function test_post_servingHasBoundsOfItsOwn() public {
        JobTerms memory t = _servingTerms(ETH, 2, 1, type(uint32).max);
        t.stepsPerInterval = 1 << 20;
        _accepted(t);
        IJobs.Job memory record = jobs.jobOf(1);
        assertEq(uint8(record.kind), uint8(JobKind.Serving));
        assertEq(record.intervals, type(uint32).max);
        assertEq(record.stepsPerInterval, 1 << 20);
        assertEq(jobs.programOf(1, 1), t.programs[1]);
        assertEq(jobs.initialStateOf(1, 0), 0);

        t.stepsPerInterval += 1;
        _refused("stepsPerInterval", t, 1);
        t.stepsPerInterval = 0;
        _refused("stepsPerInterval", t, 1);
        _refused("intervals", _servingTerms(ETH, 2, 1, 0), 1);
        t = _servingTerms(ETH, 2, 1, 10);
        t.initialStates = new bytes32[](2);
        _refused("initialStates", t, 1);
        (t.initialStates[0], t.initialStates[1]) = (bytes32(uint256(1)), bytes32(uint256(1)));
        _refused("initialStates", t, 1);
        t = _servingTerms(ETH, 2, 1, 10);
        t.programs[1] = 0;
        _refused("programs", t, 1);
        t = _servingTerms(ETH, 2, 1, 10);
        t.workerStake = 0;
        _refused("workerStake", t, 1);
        t = _servingTerms(ETH, 2, 1, 10);
        t.challengeWindow = 1 hours - 1;
        _refused("challengeWindow", t, 1);
        // A training job keeps its own.
        t.kind = JobKind.Training;
        t.challengeWindow = WINDOW;
        _refused("initialStates", t, 1);
    }

    /// @dev A kind that is none is no call at all.
    function test_post_refusesOtherKinds() public {
        bytes memory call = abi.encodeCall(IJobs.post, (_servingTerms(ETH, 1, 1, 1), 1));
        // Selector, the words of the arguments, and there the terms, whose first word is the kind.
        assertEq(call[4 + 3 * 32 - 1], bytes1(uint8(JobKind.Serving)));
        vm.prank(user);
        (bool done,) = address(jobs).call{value: 1}(call);
        assertTrue(done);
        call[4 + 3 * 32 - 1] = 0x02;
        vm.prank(user);
        (done,) = address(jobs).call{value: 1}(call);
        assertFalse(done);
    }

    function _refused(string memory field, JobTerms memory terms, uint256 deposit) private {
        uint256 value = deposit > 1 ether ? 0 : deposit;
        vm.expectRevert(abi.encodeWithSelector(IJobs.InvalidTerms.selector, field));
        vm.prank(user);
        jobs.post{value: value}(terms, deposit);
    }

    function _accepted(JobTerms memory terms) private {
        vm.prank(user);
        jobs.post{value: 1}(terms, 1);
    }

    function test_start_fixesKeyAndDeadline() public {
        uint64 job = _post(_terms(address(sno), 2, 1, 1));
        _accept(job);
        vm.prevrandao(keccak256("beacon"));
        bytes32 jobKey = keccak256(abi.encode(keccak256("beacon"), uint256(job)));
        uint40 deadline = uint40(block.timestamp + 2 days);
        vm.expectEmit(address(jobs));
        emit IJobs.JobStarted(job, jobKey, deadline);
        _start(job);

        IJobs.Job memory record = jobs.jobOf(job);
        assertEq(record.jobKey, jobKey);
        assertEq(record.deadline, deadline);
        assertEq(record.startedAt, block.timestamp);
        for (uint16 stage = 0; stage < 2; ++stage) {
            assertEq(checkpoints.laneOf(job, stage, 0).worker, workers[stage].addr);
            assertEq(checkpoints.laneOf(job, stage, 0).voidFrom, type(uint32).max);
        }
    }

    /// @dev P-20: a serving job has no claims on record, so it opens no lane for them.
    function test_start_servingOpensNoLane() public {
        uint64 job = _post(_servingTerms(address(sno), 2, 1, 10));
        _accept(job);
        vm.prevrandao(keccak256("beacon"));
        _start(job);
        IJobs.Job memory record = jobs.jobOf(job);
        assertEq(uint8(record.state), uint8(IJobs.State.Running));
        assertEq(record.jobKey, keccak256(abi.encode(keccak256("beacon"), uint256(job))));
        assertEq(record.deadline, block.timestamp + 2 days);
        for (uint16 stage = 0; stage < 2; ++stage) {
            assertEq(jobs.workerOf(job, stage, 0), workers[stage].addr);
            assertEq(checkpoints.laneOf(job, stage, 0).worker, address(0));
        }
    }

    function test_start_refuses() public {
        uint64 job = _post(_terms(address(sno), 1, 1, 1));
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Posted));
        _start(job);
        _accept(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.NotUser.selector, stranger));
        vm.prank(stranger);
        jobs.start(job);
        uint40 acceptBy = jobs.jobOf(job).acceptBy;
        vm.warp(acceptBy + 1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.AcceptPeriodOver.selector, acceptBy));
        _start(job);
        vm.warp(acceptBy);
        _start(job);
        vm.expectRevert(abi.encodeWithSelector(IJobs.WrongState.selector, job, IJobs.State.Running));
        _start(job);
    }

    /// @dev Setters open to anyone: none.
    function test_onlyTheContracts(address caller) public {
        vm.assume(caller != address(checkpoints) && caller != address(channels) && caller != address(disputes));
        uint64 job = _run(1, 1, 1);
        vm.startPrank(caller);
        vm.expectRevert(abi.encodeWithSelector(IJobs.Unauthorized.selector, caller));
        jobs.pay(job, 0, 0, 1);
        vm.expectRevert(abi.encodeWithSelector(IJobs.Unauthorized.selector, caller));
        jobs.convict(job, 0, 0);
        vm.stopPrank();
    }
}
