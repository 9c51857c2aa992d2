// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {IChallengeAnswers} from "../../../../contracts/interfaces/challenges/IChallengeAnswers.sol";
import {IChallengeQuestions} from "../../../../contracts/interfaces/challenges/IChallengeQuestions.sol";
import {Facts, Pick, Subject} from "../../../../contracts/types/Challenge.sol";
import {BoundaryLogs, Operator, TensorType} from "../../../../contracts/types/Types.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @dev What can be asked, move by move.
contract ChallengeQuestionsTest is ChallengeTest {
    using SlowTree for bytes32[][];

    uint256 private constant ID = 1;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    function test_ask_onlyWhatWasAnswered() public {
        _toStatement(ID, 0);
        _answer(ID);
        Pick memory good = _pick(ID, 1);
        for (uint256 flaw = 0; flaw < 4; ++flaw) {
            Pick memory pick = abi.decode(abi.encode(good), (Pick));
            if (flaw == 0) pick.child = 0;
            if (flaw == 1) pick.child = 2;
            if (flaw == 2) pick.digest = 0;
            if (flaw == 3) pick.siblings = new bytes32[](2);
            vm.prank(auditor);
            vm.expectRevert(IChallengeQuestions.WrongPick.selector);
            challenges.ask(ID, positions[ID], pick, _plain(1));
        }
        vm.startPrank(auditor);
        vm.expectRevert(abi.encodeWithSelector(IChallengeQuestions.WrongLevels.selector, 0));
        challenges.ask(ID, positions[ID], good, _plain(0));
        vm.expectRevert(abi.encodeWithSelector(IChallengeQuestions.WrongLevels.selector, 3));
        challenges.ask(ID, positions[ID], good, _plain(3));
        challenges.ask(ID, positions[ID], good, _plain(1));
        vm.stopPrank();
    }

    function test_ask_notBelowTheLastRow() public {
        levels = 2;
        _challenge();
        _answer(ID);
        Pick memory pick = _pick(ID, 0);
        vm.prank(auditor);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.WrongSubject.selector, Subject.Steps));
        challenges.ask(ID, positions[ID], pick, _plain(1));
    }

    function test_askStatement_fromTheStateBefore() public {
        levels = 2;
        _challenge();
        _answer(ID);
        Pick memory pick = _pick(ID, 2);
        bytes32[] memory path = _stepsTree().path(1);
        bytes32[] memory none;
        bytes32 before = _states()[1];
        vm.startPrank(auditor);
        vm.expectRevert(IChallenges.WrongState.selector);
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, 0, path, _plain(1));
        vm.expectRevert(IChallenges.WrongState.selector);
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, claim.parentState, none, _plain(1));
        pick = _pick(ID, 0);
        vm.expectRevert(IChallenges.WrongState.selector);
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, before, path, _plain(1));
        vm.expectRevert(IChallenges.WrongState.selector);
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, claim.parentState, path, _plain(1));
        vm.expectRevert(abi.encodeWithSelector(IChallengeQuestions.WrongLevels.selector, 9));
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, claim.parentState, none, _plain(9));
        vm.expectRevert(abi.encodeWithSelector(IChallengeQuestions.WrongLevels.selector, 0));
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, claim.parentState, none, _plain(0));
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, claim.parentState, none, _plain(8));
        vm.stopPrank();
        _follow();
        // The trace is not so high: the worker gives its last row.
        _answer(ID);
        assertEq(positions[ID].levels, 3);
    }

    function test_askOutput_ofTheProgram() public {
        _toStatement(ID, 0);
        _answer(ID);
        _walkTo(ID, 3);
        uint32 child = _childFor(ID, 3);
        Pick memory pick = _pick(ID, child);
        bytes32[] memory path = _operatorTree().path(3);
        Operator memory operator = program[3];
        Operator memory other = program[3];
        other.output = TensorType.wrap(0);
        vm.startPrank(auditor);
        vm.expectRevert(IChallengeQuestions.WrongOperator.selector);
        challenges.askOutput(ID, positions[ID], factsOf[ID], pick, other, path, _plain(0));
        vm.expectRevert(IChallengeQuestions.WrongOperator.selector);
        challenges.askOutput(ID, positions[ID], factsOf[ID], _pick(ID, child - 1), operator, path, _plain(0));
        challenges.askOutput(ID, positions[ID], factsOf[ID], pick, operator, path, _plain(0));
        vm.stopPrank();
    }

    function test_askTree_whatIsKnown() public {
        levels = 2;
        _challenge();
        _answer(ID);
        bytes memory unknown = abi.encodeWithSelector(IChallenges.WrongSubject.selector, Subject.State);
        vm.startPrank(auditor);
        vm.expectRevert(unknown);
        challenges.askTree(ID, positions[ID], factsOf[ID], Subject.State, _plain(0));
        unknown = abi.encodeWithSelector(IChallenges.WrongSubject.selector, Subject.Trace);
        vm.expectRevert(unknown);
        challenges.askTree(ID, positions[ID], factsOf[ID], Subject.Trace, _plain(1));
        unknown = abi.encodeWithSelector(IChallenges.WrongSubject.selector, Subject.Output);
        vm.expectRevert(unknown);
        challenges.askTree(ID, positions[ID], factsOf[ID], Subject.Output, _plain(1));
        unknown = abi.encodeWithSelector(IChallenges.WrongSubject.selector, Subject.Log);
        BoundaryLogs memory logs = _logsOf(0);
        vm.expectRevert(unknown);
        challenges.askLog(ID, positions[ID], factsOf[ID], claim, logs, 3, _plain(1));
        Facts memory f = factsOf[ID];
        f.trace = keccak256("another");
        vm.expectRevert(IChallenges.WrongPosition.selector);
        challenges.askTree(ID, positions[ID], f, Subject.Trace, _plain(1));
        vm.stopPrank();
    }

    function test_askLog_ofTheClaim() public {
        _toStatement(ID, 0);
        _answer(ID);
        BoundaryLogs memory logs = _logsOf(0);
        vm.startPrank(auditor);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.WrongSubject.selector, Subject.Log));
        challenges.askLog(ID, positions[ID], factsOf[ID], claim, logs, 4, _plain(1));
        logs.toNext = 0;
        vm.expectRevert(IChallengeAnswers.WrongLogs.selector);
        challenges.askLog(ID, positions[ID], factsOf[ID], claim, logs, 3, _plain(1));
        logs = _logsOf(0);
        challenges.askLog(ID, positions[ID], factsOf[ID], claim, logs, 3, _plain(3));
        vm.stopPrank();
        _follow();
        _answer(ID);
        assertEq(positions[ID].count, STEPS * MICRO_BATCHES);
    }
}
