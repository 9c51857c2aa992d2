// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {IChallengeAnswers} from "../../../../contracts/interfaces/challenges/IChallengeAnswers.sol";
import {Facts, LogsAnswer, Position, StepAnswer, Subject} from "../../../../contracts/types/Challenge.sol";
import {Claim, EdgeLog} from "../../../../contracts/types/Types.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @dev What counts for an answer, move by move.
contract ChallengeAnswersTest is ChallengeTest {
    using SlowTree for bytes32[][];

    uint256 private constant ID = 1;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    function test_answerSteps_mustLeadToTheClaim() public {
        _challenge();
        Position memory p = positions[ID];
        bytes32[][] memory tree = _stepsTree();
        bytes memory data = _below(tree, p);
        vm.startPrank(workers[STAGE].addr);
        // Another list, of which the last entry is another state.
        wrongStep = 1;
        bytes32[][] memory other = _stepsTree();
        wrongStep = NOTHING;
        vm.expectRevert(IChallenges.WrongState.selector);
        challenges.answerSteps(ID, p, claim, other.rootOf(), other.path(3), _noWay(), data);
        vm.expectRevert(IChallenges.WrongState.selector);
        challenges.answerSteps(ID, p, claim, tree.rootOf(), tree.path(2), _noWay(), data);
        bytes32[] memory short = new bytes32[](1);
        vm.expectRevert(IChallenges.WrongState.selector);
        challenges.answerSteps(ID, p, claim, tree.rootOf(), short, _noWay(), data);
        Claim memory changed = claim;
        changed.io = 0;
        vm.expectRevert(IChallenges.WrongPosition.selector);
        challenges.answerSteps(ID, p, changed, tree.rootOf(), tree.path(3), _noWay(), data);
        challenges.answerSteps(ID, p, claim, tree.rootOf(), tree.path(3), _noWay(), data);
        vm.stopPrank();
    }

    /// forge-config: default.fuzz.runs = 64
    /// @dev Any changed byte, missing or further byte of the nodes is no answer.
    function testFuzz_answers_mustHashUp(uint256 seed) public {
        levels = uint8(seed % 2) + 1;
        _challenge();
        _answer(ID);
        if (levels == 1) {
            _ask(ID, uint32(seed / 2 % 2));
        } else {
            vm.prank(auditor);
            challenges.askTree(ID, positions[ID], factsOf[ID], Subject.Steps, _plain(1));
            _follow();
        }
        Position memory p = positions[ID];
        bytes memory right = _dataOf(ID, p);
        bytes memory wrong = bytes.concat(right);
        wrong[seed / 4 % wrong.length] ^= bytes1(uint8(1 << (seed / 1024 % 8)));
        bytes memory noAnswer = abi.encodeWithSelector(IChallengeAnswers.WrongAnswer.selector);
        vm.startPrank(workers[STAGE].addr);
        vm.expectRevert(noAnswer);
        challenges.answer(ID, p, _noWay(), wrong);
        vm.expectRevert(noAnswer);
        challenges.answer(ID, p, _noWay(), bytes.concat(right, new bytes(32)));
        vm.expectRevert(noAnswer);
        challenges.answer(ID, p, _noWay(), "");
        vm.expectRevert(IChallenges.WrongPosition.selector);
        challenges.answer(ID, _elsewhere(p), _noWay(), right);
        challenges.answer(ID, p, _noWay(), right);
        vm.stopPrank();
    }

    function _elsewhere(Position memory p) private pure returns (Position memory other) {
        other = abi.decode(abi.encode(p), (Position));
        other.index ^= 1;
    }

    function test_answerStatement_ofThisStepAndProgram() public {
        _toStatement(ID, 2);
        Position memory p = positions[ID];
        (StepAnswer memory said, bytes memory data) = _stepAnswer(ID, p);
        vm.startPrank(workers[STAGE].addr);
        _refusesStatement(p, said, data, 1);
        _refusesStatement(p, said, data, 2);
        _refusesStatement(p, said, data, 3);
        Facts memory f = factsOf[ID];
        f.preState = 0;
        vm.expectRevert(IChallenges.WrongPosition.selector);
        challenges.answerStatement(ID, p, f, said, _noWay(), data);
        challenges.answerStatement(ID, p, factsOf[ID], said, _noWay(), data);
        vm.stopPrank();
        _follow();
        assertEq(factsOf[ID].trace, _traceTree(2).rootOf());
        assertEq(factsOf[ID].operatorCount, OPERATORS);
    }

    function _refusesStatement(Position memory p, StepAnswer memory good, bytes memory data, uint256 flaw) private {
        StepAnswer memory said = abi.decode(abi.encode(good), (StepAnswer));
        if (flaw == 1) said.program.operatorCount = 1;
        if (flaw == 2) said.trace = keccak256("another");
        if (flaw == 3) said.signature = _sign(workers[0].key, keccak256("anything"));
        vm.expectRevert(flaw < 2 ? IChallengeAnswers.WrongProgram.selector : IChallengeAnswers.BadSignature.selector);
        challenges.answerStatement(ID, p, factsOf[ID], said, _noWay(), data);
    }

    /// @dev A trace may hold anything; what is no tensor of the program's type cannot be opened.
    function test_answerOutput_ofItsType() public {
        _toStatement(ID, 0);
        _answer(ID);
        _walkTo(ID, 3);
        _askOutput(ID, _childFor(ID, 3));
        Position memory p = positions[ID];
        bytes memory data = _output(3, 0);
        bytes32 root = SlowTree.ofLeaves(_leavesOf(data)).rootOf();
        vm.startPrank(workers[STAGE].addr);
        vm.expectRevert(IChallengeAnswers.WrongAnswer.selector);
        challenges.answerOutput(ID, p, factsOf[ID], keccak256("another"), _noWay(), data);
        data[0] ^= 0x01;
        vm.expectRevert(IChallengeAnswers.WrongAnswer.selector);
        challenges.answerOutput(ID, p, factsOf[ID], root, _noWay(), data);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.WrongSubject.selector, Subject.Output));
        challenges.answerLogs(ID, p, factsOf[ID], claim, _logsAnswer());
        // Nodes alone would pass for a tree under what is no tensor's root.
        vm.expectRevert(abi.encodeWithSelector(IChallenges.WrongSubject.selector, Subject.Output));
        challenges.answer(ID, p, _noWay(), data);
        vm.stopPrank();
        _answer(ID);
        assertEq(positions[ID].node, root);
    }

    function test_answerLogs_ofTheClaim() public {
        _toStatement(ID, 0);
        _answer(ID);
        vm.prank(auditor);
        challenges.askLogs(ID, positions[ID]);
        _follow();
        LogsAnswer memory said = _logsAnswer();
        said.logs.toNext = 0;
        _refusedLogs(said, IChallengeAnswers.WrongLogs.selector);
        said = _logsAnswer();
        said.program.stateCount += 1;
        _refusedLogs(said, IChallengeAnswers.WrongProgram.selector);
        Facts memory f = factsOf[ID];
        f.trace = keccak256("another");
        vm.prank(workers[STAGE].addr);
        vm.expectRevert(IChallenges.WrongPosition.selector);
        challenges.answerLogs(ID, positions[ID], f, claim, _logsAnswer());
        _answer(ID);
        assertEq(logsGiven.toNext, _logsOf(0).toNext);
    }

    /// @dev What was received has its sender's attestation, for this interval, replica and direction.
    function test_answerLogs_withTheNeighboursAttestation() public {
        _challenge();
        _answer(ID);
        vm.prank(auditor);
        challenges.askLogs(ID, positions[ID]);
        _follow();
        LogsAnswer memory said = _logsAnswer();
        bytes memory right = said.previousSignature;
        said.previousSignature = "";
        _refusedLogs(said, IChallengeAnswers.BadSignature.selector);
        said.previousSignature = said.nextSignature;
        _refusedLogs(said, IChallengeAnswers.BadSignature.selector);
        said.previousSignature = _signedLog(0, 1, said.logs.fromPrevious);
        _refusedLogs(said, IChallengeAnswers.BadSignature.selector);
        said.previousSignature = _signedLog(0, 0, said.logs.toNext);
        _refusedLogs(said, IChallengeAnswers.BadSignature.selector);
        EdgeLog memory own = EdgeLog(job, 0, 0, STAGE, 0, said.logs.fromPrevious);
        said.previousSignature = _sign(workers[STAGE].key, _edgeLogDigest(own));
        _refusedLogs(said, IChallengeAnswers.BadSignature.selector);
        (said.previousSignature, said.nextSignature) = (right, right);
        _refusedLogs(said, IChallengeAnswers.BadSignature.selector);
        _answer(ID);
        // The program is known from it, and so the length of a log.
        assertEq(factsOf[ID].microBatches, MICRO_BATCHES);
        vm.prank(auditor);
        challenges.askLog(ID, positions[ID], factsOf[ID], claim, _logsOf(0), 0, _plain(3));
        _follow();
        _answer(ID);
        assertEq(positions[ID].count, STEPS * MICRO_BATCHES);
    }

    function _refusedLogs(LogsAnswer memory said, bytes4 reason) private {
        vm.prank(workers[STAGE].addr);
        vm.expectRevert(reason);
        challenges.answerLogs(ID, positions[ID], factsOf[ID], claim, said);
    }
}
