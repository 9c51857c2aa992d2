// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";

import {ICheckpoints} from "../../contracts/interfaces/ICheckpoints.sol";
import {IDisputes} from "../../contracts/interfaces/IDisputes.sol";
import {IJobs} from "../../contracts/interfaces/IJobs.sol";
import {Claim, ElementProof, StepStatement} from "../../contracts/types/Types.sol";
import {TrainingTest} from "./protocol/TrainingTest.sol";

/// @dev `open` and `timeout`: bonds and the time they buy.
contract DisputesTest is TrainingTest {
    Claim private claim;
    uint64 private committedAt;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
        committedAt = uint64(block.timestamp);
    }

    function test_open_takesABondAndHoldsTheClaim() public {
        uint256 before = sno.balanceOf(auditor);
        bytes32 id = checkpoints.claimId(claim);
        vm.expectEmit(address(disputes));
        emit IDisputes.DisputeOpened(1, id, auditor, uint40(block.timestamp + 1 days));
        assertEq(_open(auditor), 1);

        assertEq(before - sno.balanceOf(auditor), 100 ether);
        assertEq(disputes.disputeCount(), 1);
        IDisputes.Dispute memory d = disputes.disputeOf(1);
        assertEq(d.challenger, auditor);
        assertEq(uint8(d.state), uint8(IDisputes.State.Open));
        assertEq(d.claimId, id);
        assertEq(d.worker, workers[0].addr);
        assertEq(d.bond, 100 ether);
        skip(WINDOW);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.Disputed.selector, id));
        _finalizeClaim();
    }

    function test_open_withinTheWindow() public {
        vm.warp(committedAt + WINDOW);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.DeadlinePassed.selector, committedAt + WINDOW));
        _open(auditor);
        vm.warp(committedAt + WINDOW - 1);
        _open(auditor);
    }

    function test_open_liveClaimsOnly() public {
        Claim memory unknown = claim;
        unknown.interval = 1;
        vm.startPrank(auditor);
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        disputes.open(unknown, committedAt);
        vm.stopPrank();
        skip(WINDOW);
        _finalizeClaim();
        vm.expectRevert(ICheckpoints.ClaimIsFinal.selector);
        _open(auditor);
    }

    function test_open_needsTheBond() public {
        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(disputes), 0, 100 ether)
        );
        _open(stranger);
    }

    /// @dev P-16: no proof in time, and the bond is the worker's.
    function test_timeout_withoutProof() public {
        _open(auditor);
        uint40 deadline = disputes.disputeOf(1).deadline;
        vm.warp(deadline - 1);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.DeadlineNotReached.selector, deadline));
        disputes.timeout(1);
        vm.warp(deadline);
        vm.expectEmit(address(disputes));
        emit IDisputes.DisputeLost(1, checkpoints.claimId(claim));
        disputes.timeout(1);

        assertEq(sno.balanceOf(workers[0].addr), 100 ether);
        assertEq(uint8(disputes.disputeOf(1).state), uint8(IDisputes.State.Lost));
        vm.expectRevert(abi.encodeWithSelector(IDisputes.DisputeOver.selector, 1));
        disputes.timeout(1);
        _finalizeClaim();
        assertEq(jobs.creditOf(workers[0].addr, address(sno)), PRICE);
    }

    function test_timeout_unknown() public {
        vm.expectRevert(abi.encodeWithSelector(IDisputes.UnknownDispute.selector, 1));
        disputes.timeout(1);
    }

    /// @dev P-16: a friend of the worker that opens first shields nothing.
    function test_friendlyChallengerShieldsNothing() public {
        wrongOperator = 0;
        ElementProof memory proof = _elementProof(claim, 0, 0, 0);
        _fund(stranger, address(disputes), 100 ether);
        _open(stranger);
        _open(auditor);
        skip(1 days);
        disputes.timeout(1);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.Disputed.selector, checkpoints.claimId(claim)));
        _finalizeClaim();

        disputes.proveSigned(proof);
        _bondReturns(2, auditor);
    }

    /// @dev One honest proof, and every challenger of the claim and of those after it has its bond back, at once.
    function test_convictionReturnsEveryBond() public {
        _fund(stranger, address(disputes), 200 ether);
        Claim memory second = _commitTraining(1);
        _open(stranger);
        _open(auditor);
        vm.prank(stranger);
        disputes.open(second, committedAt);

        StepStatement memory lie = _statement(claim, 0);
        lie.preState = 0;
        StepStatement memory none;
        disputes.proveSignedContradiction(_contradictionProof(claim, lie, none));

        jobs.settle(job);
        assertEq(uint8(_stateOfJob(job)), uint8(IJobs.State.Settled));
        _bondReturns(1, stranger);
        _bondReturns(2, auditor);
        _bondReturns(3, stranger);
        assertEq(sno.balanceOf(address(disputes)), 0);
    }

    /// @dev A conviction of a later claim says nothing about an earlier one.
    function test_convictionOfALaterClaimDecidesNothing() public {
        Claim memory second = _commitTraining(1);
        _open(auditor);
        StepStatement memory lie = _statement(second, STEPS);
        lie.preState = 0;
        StepStatement memory none;
        disputes.proveSignedContradiction(_contradictionProof(second, lie, none));
        vm.expectRevert(abi.encodeWithSelector(IDisputes.DeadlineNotReached.selector, disputes.disputeOf(1).deadline));
        disputes.timeout(1);
    }

    /// @dev P-8: disputes without proof hold a claim for its window and one dispute period, however many there are.
    function test_holdIsBounded() public {
        sno.transfer(auditor, 1000 ether);
        for (uint256 i = 0; i < 4; ++i) {
            vm.warp(committedAt + uint256(WINDOW) * i / 4);
            _open(auditor);
        }
        vm.warp(committedAt + WINDOW + parameters.disputePeriod);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.DeadlinePassed.selector, committedAt + WINDOW));
        _open(auditor);
        for (uint256 i = 1; i <= 4; ++i) {
            disputes.timeout(i);
        }
        _finalizeClaim();
    }

    function _bondReturns(uint256 dispute, address challenger) private {
        uint256 before = sno.balanceOf(challenger);
        vm.expectEmit(address(disputes));
        emit IDisputes.DisputeWon(dispute, disputes.disputeOf(dispute).claimId);
        disputes.timeout(dispute);
        assertEq(sno.balanceOf(challenger) - before, 100 ether);
        assertEq(uint8(disputes.disputeOf(dispute).state), uint8(IDisputes.State.Won));
    }

    function _open(address challenger) private returns (uint256) {
        vm.prank(challenger);
        return disputes.open(claim, committedAt);
    }

    function _finalizeClaim() private {
        (Claim[] memory claims, uint64[] memory times) = (new Claim[](1), new uint64[](1));
        (claims[0], times[0]) = (claim, committedAt);
        checkpoints.finalize(claims, times);
    }
}
