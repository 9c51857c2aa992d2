// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {ICheckpoints} from "../../../../contracts/interfaces/ICheckpoints.sol";
import {IDisputes} from "../../../../contracts/interfaces/IDisputes.sol";
import {IChallengeAnswers} from "../../../../contracts/interfaces/challenges/IChallengeAnswers.sol";
import {IChallengeQuestions} from "../../../../contracts/interfaces/challenges/IChallengeQuestions.sol";
import {Dissection} from "../../../../contracts/libraries/challenges/Dissection.sol";
import {Position, Subject} from "../../../../contracts/types/Challenge.sol";
import {Claim} from "../../../../contracts/types/Types.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";

/// @dev Who may open and end a challenge, when, and what happens to the money.
contract ChallengesTest is ChallengeTest {
    using Dissection for Position;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    function test_open_takesTheBondAndAsks() public {
        bytes32 id = checkpoints.claimId(claim);
        vm.expectEmit(address(challenges));
        emit IChallenges.ChallengeOpened(1, id, auditor, workers[STAGE].addr, claim);
        _challenge();

        assertEq(sno.balanceOf(auditor), 900 ether);
        IChallenges.Challenge memory c = challenges.challengeOf(1);
        assertEq(challenges.challengeCount(), 1);
        assertEq(c.challenger, auditor);
        assertEq(uint8(c.state), uint8(IChallenges.State.Answering));
        assertEq(c.deadline, block.timestamp + 12 hours);
        assertEq(c.worker, workers[STAGE].addr);
        assertEq(c.bond, 100 ether);
        assertEq(c.claimId, id);
        assertEq(c.asks, 1);
        assertEq(uint8(positions[1].subject), uint8(Subject.Steps));
        assertEq(positions[1].count, STEPS);
        skip(WINDOW);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.Challenged.selector, id));
        _finalizeClaim();
    }

    function test_open_withinTwoWindows() public {
        vm.warp(committedAt + 2 * WINDOW);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.DeadlinePassed.selector, committedAt + 2 * WINDOW));
        _challenge();
        vm.warp(committedAt + 2 * WINDOW - 1);
        _challenge();
    }

    function test_open_liveClaimsOnly() public {
        Claim memory unknown = claim;
        unknown.interval = 1;
        vm.prank(auditor);
        vm.expectRevert(ICheckpoints.UnknownClaim.selector);
        challenges.open(unknown, committedAt, _plain(1));
        skip(WINDOW);
        _finalizeClaim();
        vm.expectRevert(ICheckpoints.ClaimIsFinal.selector);
        _challenge();
    }

    function test_open_needsTheBond() public {
        vm.expectRevert(
            abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(challenges), 0, 100 ether)
        );
        _challengeBy(stranger);
    }

    function test_open_levelsThatThereAre() public {
        for (uint8 i = 0; i < 4; ++i) {
            levels = i;
            // Four states: a tree of two levels.
            if (i == 0 || i == 3) vm.expectRevert(abi.encodeWithSelector(IChallengeQuestions.WrongLevels.selector, i));
            vm.prank(auditor);
            challenges.open(claim, committedAt, _plain(i));
        }
    }

    /// @dev The worker says nothing: convicted at the end of its clock, to the credit of who asked.
    function test_timeout_silence() public {
        _challenge();
        uint40 deadline = challenges.challengeOf(1).deadline;
        bytes memory early =
            abi.encodeWithSelector(IChallenges.DeadlineNotReached.selector, deadline, block.number + 10);
        vm.roll(block.number + 10);
        vm.warp(deadline - 1);
        vm.expectRevert(early);
        challenges.timeout(1);
        vm.warp(deadline);

        vm.expectEmit(address(disputes));
        emit IDisputes.Convicted(
            job,
            workers[STAGE].addr,
            auditor,
            STAGE,
            0,
            checkpoints.claimId(claim),
            IDisputes.Fault.Silence,
            0,
            0,
            0,
            0,
            0
        );
        challenges.timeout(1);
        assertEq(sno.balanceOf(auditor), 1000 ether + STAKE / 4);
        assertEq(checkpoints.laneOf(job, STAGE, 0).voidFrom, 0);
        assertEq(uint8(challenges.challengeOf(1).state), uint8(IChallenges.State.Won));
        assertEq(sno.balanceOf(address(challenges)), 0);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.NotYourTurn.selector, 1));
        challenges.timeout(1);
    }

    /// @dev P-16: the challenger does not go on, and the bond is the worker's. The claim becomes final.
    function test_timeout_ofTheChallenger() public {
        _challenge();
        _answer(1);
        _expire(1);
        vm.expectEmit(address(challenges));
        emit IChallenges.ChallengeLost(1, checkpoints.claimId(claim));
        challenges.timeout(1);

        assertEq(sno.balanceOf(workers[STAGE].addr), 100 ether);
        assertEq(uint8(challenges.challengeOf(1).state), uint8(IChallenges.State.Lost));
        _finalizeClaim();
        assertEq(jobs.creditOf(workers[STAGE].addr, address(sno)), PRICE);
    }

    function test_timeout_unknown() public {
        vm.expectRevert(abi.encodeWithSelector(IChallenges.UnknownChallenge.selector, 1));
        challenges.timeout(1);
    }

    /// @dev An outage of the chain: its clock jumps over the deadline, but nobody had a block to move in.
    function test_timeout_waitsForBlocks() public {
        _challenge();
        skip(2 days);
        vm.roll(block.number + 9);
        uint40 deadline = challenges.challengeOf(1).deadline;
        vm.expectRevert(abi.encodeWithSelector(IChallenges.DeadlineNotReached.selector, deadline, block.number + 1));
        challenges.timeout(1);
        _answer(1);
        assertEq(uint8(challenges.challengeOf(1).state), uint8(IChallenges.State.Asking));
    }

    function test_lateMovesAreRefused() public {
        _challenge();
        _expire(1);
        uint40 deadline = challenges.challengeOf(1).deadline;
        vm.expectRevert(abi.encodeWithSelector(IChallenges.DeadlinePassed.selector, deadline));
        _answer(1);
    }

    /// @dev A chess clock: what a side has taken it has no more, but for the grace of every move.
    function test_clocks() public {
        _challenge();
        skip(11 hours);
        _answer(1);
        assertEq(challenges.challengeOf(1).workerLeft, 1 hours);
        assertEq(challenges.challengeOf(1).deadline, block.timestamp + 12 hours);
        skip(4 hours);
        _ask(1, 0);
        assertEq(challenges.challengeOf(1).challengerLeft, 8 hours);
        assertEq(challenges.challengeOf(1).deadline, block.timestamp + 1 hours);
        skip(55 minutes);
        _answer(1);
        assertEq(challenges.challengeOf(1).workerLeft, 5 minutes);
        skip(1 hours);
        _askStatement(1, 0);
        // Five minutes are on the clock; the grace is twenty.
        assertEq(challenges.challengeOf(1).deadline, block.timestamp + 20 minutes);
        skip(19 minutes);
        _answer(1);
        assertEq(challenges.challengeOf(1).workerLeft, 0);
        _ask(1, 0);
        assertEq(challenges.challengeOf(1).deadline, block.timestamp + 20 minutes);
        assertEq(challenges.challengeOf(1).challengerLeft, 7 hours);
    }

    /// @dev However slowly it is played, a challenge ends within the dispute period.
    function test_askingEnds() public {
        _challenge();
        uint256 began = block.timestamp;
        _answer(1);
        for (uint256 asks = 1; asks < 32; ++asks) {
            vm.warp(challenges.challengeOf(1).deadline - 1);
            _askSlowly();
            vm.warp(challenges.challengeOf(1).deadline - 1);
            _answer(1);
        }
        vm.prank(auditor);
        vm.expectRevert(IChallengeQuestions.TooManyAsks.selector);
        challenges.askLogs(1, positions[1]);
        vm.warp(challenges.challengeOf(1).deadline);
        assertLe(block.timestamp, began + 2 * 12 hours + 64 * 20 minutes);
        vm.roll(block.number + 10);
        challenges.timeout(1);
        assertEq(sno.balanceOf(workers[STAGE].addr), 100 ether);
    }

    /// @dev One level after another, down the states, the trace and an output, and then anew.
    function _askSlowly() private {
        Position memory p = positions[1];
        if (!p.isBottom()) return _ask(1, 0);
        if (p.subject == Subject.Steps) return _askStatement(1, 0);
        if (p.subject == Subject.Trace) return _askOutput(1, 0);
        vm.prank(auditor);
        challenges.askTree(1, p, factsOf[1], Subject.Steps, _plain(1));
        _follow();
    }

    /// @dev P-43: a search goes down; it begins anew a few times only, whatever it begins with.
    function test_restartsEnd() public {
        levels = 2;
        _challenge();
        _answer(1);
        for (uint256 i = 0; i < 6; ++i) {
            vm.startPrank(auditor);
            if (i % 2 == 0) challenges.askLogs(1, positions[1]);
            else challenges.askTree(1, positions[1], factsOf[1], Subject.Steps, _plain(2));
            vm.stopPrank();
            _follow();
            _answer(1);
        }
        vm.startPrank(auditor);
        vm.expectRevert(IChallengeQuestions.TooManyRestarts.selector);
        challenges.askLogs(1, positions[1]);
        vm.expectRevert(IChallengeQuestions.TooManyRestarts.selector);
        challenges.askTree(1, positions[1], factsOf[1], Subject.Steps, _plain(2));
        vm.expectRevert(IChallengeQuestions.TooManyRestarts.selector);
        challenges.askLog(1, positions[1], factsOf[1], claim, _logsOf(0), 3, _plain(3));
        vm.stopPrank();
        // What was answered last can still be used.
        _askStatement(1, 0);
        _answer(1);
    }

    /// @dev P-16: a friend of the worker that opens first, and lets its time pass, shields nothing.
    function test_friendlyChallengerShieldsNothing() public {
        wrongOperator = 0;
        _fund(stranger, address(challenges), 100 ether);
        _challengeBy(stranger);
        uint256 mine = _challenge();
        _playToTheEnd(mine, 0, 0, 0);
        _bondReturns(mine, auditor);
        // The friend has its bond back, too: it cost nothing but gas, and gained nothing.
        _bondReturns(1, stranger);
    }

    /// @dev One conviction, and every challenger of the claim and of those after it has its bond back, at once.
    function test_convictionReturnsEveryBond() public {
        _fund(stranger, address(challenges), 200 ether);
        Claim memory second = _commitTraining(1);
        _challengeBy(stranger);
        _challenge();
        vm.prank(stranger);
        challenges.open(second, committedAt, _plain(1));
        _lie(claim, 0);

        skip(SEALING + 1);
        jobs.settle(job);
        _bondReturns(1, stranger);
        _bondReturns(2, auditor);
        _bondReturns(3, stranger);
        assertEq(sno.balanceOf(address(challenges)), 0);
    }

    /// @dev A conviction of a later claim says nothing about an earlier one.
    function test_convictionOfALaterClaimDecidesNothing() public {
        Claim memory second = _commitTraining(1);
        _challenge();
        _lie(second, STEPS);
        uint40 deadline = challenges.challengeOf(1).deadline;
        vm.expectRevert(abi.encodeWithSelector(IChallenges.DeadlineNotReached.selector, deadline, block.number + 10));
        challenges.timeout(1);
    }

    /// @dev Two are silent at once: the lane's stake goes once, to who ended its challenge first (P-6).
    function test_silenceIsPunishedOnce() public {
        _fund(stranger, address(challenges), 100 ether);
        _challengeBy(stranger);
        _challenge();
        _expire(2);
        challenges.timeout(1);
        challenges.timeout(2);
        assertEq(sno.balanceOf(stranger), 100 ether + STAKE / 4);
        assertEq(sno.balanceOf(auditor), 1000 ether);
        assertEq(_staked(workers[STAGE].addr).bonded, 0);
    }

    function test_onlyTheTwoMove() public {
        _challenge();
        vm.expectRevert(abi.encodeWithSelector(IChallengeAnswers.NotWorker.selector, address(this)));
        challenges.answer(1, positions[1], _noWay(), "");
        vm.prank(auditor);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.NotYourTurn.selector, 1));
        challenges.askLogs(1, positions[1]);
        _answer(1);
        vm.expectRevert(abi.encodeWithSelector(IChallengeQuestions.NotChallenger.selector, address(this)));
        challenges.askLogs(1, positions[1]);
        vm.prank(workers[STAGE].addr);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.NotYourTurn.selector, 1));
        challenges.answer(1, positions[1], _noWay(), "");
        vm.expectRevert(abi.encodeWithSelector(IChallenges.UnknownChallenge.selector, 2));
        challenges.askLogs(2, positions[1]);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.UnknownChallenge.selector, 2));
        challenges.answer(2, positions[1], _noWay(), "");
    }

    function test_convictSilent_onlyByTheClock() public {
        bytes32 id = checkpoints.claimId(claim);
        vm.expectRevert(abi.encodeWithSelector(IDisputes.Unauthorized.selector, address(this)));
        disputes.convictSilent(job, 0, 0, 0, id, auditor);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.Unauthorized.selector, address(this)));
        checkpoints.hold(id);
        vm.expectRevert(abi.encodeWithSelector(ICheckpoints.Unauthorized.selector, address(this)));
        checkpoints.release(id);
    }

    function _bondReturns(uint256 id, address challenger) private {
        uint256 before = sno.balanceOf(challenger);
        vm.expectEmit(address(challenges));
        emit IChallenges.ChallengeWon(id, challenges.challengeOf(id).claimId, false);
        challenges.timeout(id);
        assertEq(sno.balanceOf(challenger) - before, 100 ether);
        assertEq(uint8(challenges.challengeOf(id).state), uint8(IChallenges.State.Won));
    }

    function _finalizeClaim() private {
        (Claim[] memory claims, uint64[] memory times) = (new Claim[](1), new uint64[](1));
        (claims[0], times[0]) = (claim, committedAt);
        checkpoints.finalize(claims, times, _heldByUser(claims));
    }
}
