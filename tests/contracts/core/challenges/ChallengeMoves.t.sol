// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {IChallengeAnswers} from "../../../../contracts/interfaces/challenges/IChallengeAnswers.sol";
import {IChallengeQuestions} from "../../../../contracts/interfaces/challenges/IChallengeQuestions.sol";
import {ParameterBounds} from "../../../../contracts/libraries/terms/ParameterBounds.sol";
import {Facts, LogsAnswer, Pick, Position, StepAnswer, Subject} from "../../../../contracts/types/Challenge.sol";
import {BoundaryLogs, Claim, EdgeLog, Operator, TensorType} from "../../../../contracts/types/Types.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @dev What can be asked and what counts for an answer, move by move.
contract ChallengeMovesTest is ChallengeTest {
    using SlowTree for bytes32[][];

    uint256 private constant ID = 1;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    // Whole games

    /// forge-config: default.fuzz.runs = 24
    /// @dev A liar that answers everything is led to its wrong output, however many levels are asked for at a time.
    function testFuzz_liarsAreConvicted(uint8 seed, uint32 step, uint32 operator) public {
        levels = seed % 3 + 1;
        wrongOperator = operator % OPERATORS;
        _challenge();
        _playToTheEnd(ID, step % STEPS, uint32(wrongOperator), 0);
        assertEq(_staked(workers[STAGE].addr).bonded, 0);
        challenges.timeout(ID);
        assertEq(sno.balanceOf(auditor), 1000 ether + STAKE / 4);
    }

    /// forge-config: default.fuzz.runs = 24
    /// @dev A state that is wrong from some step on: the list of states shows which step, and its statement starts from
    /// a right one.
    function testFuzz_firstWrongState(uint8 seed, uint32 step) public {
        // In the second interval, which the worker has not committed yet.
        uint32 wrong = step % STEPS;
        (levels, wrongStep) = (seed % 2 + 1, STEPS + wrong);
        claim = _commitTraining(1);
        _challenge();
        _answer(ID);
        _walkTo(ID, wrong);
        bytes32 preState = wrong == 0 ? claim.parentState : _states()[wrong - 1];
        (bytes32 said, uint256 lie) = (_states()[wrong], wrongStep);
        wrongStep = NOTHING;
        assertEq(preState, _stateTree(STEPS + wrong).rootOf(), "right before");
        assertTrue(said != _stateTree(STEPS + wrong + 1).rootOf(), "wrong after");
        wrongStep = lie;
        vm.expectRevert();
        this.proveFrom((wrong + 1) % STEPS);
        this.proveFrom(wrong);
        assertEq(_staked(workers[STAGE].addr).bonded, 0);
    }

    /// @dev From the steps' last row on.
    function proveFrom(uint32 step) external {
        _askStatement(ID, _childFor(ID, step));
        _answer(ID);
        _walkTo(ID, 2);
        _askOutput(ID, _childFor(ID, 2));
        _answer(ID);
        _walkTo(ID, 1);
        _prove(STEPS + step, 2, 300);
    }

    /// forge-config: default.fuzz.runs = 24
    /// @dev P-22: whatever an honest worker is asked, it has an answer that counts.
    function testFuzz_honestWorkersCanAnswer(uint256 seed) public {
        levels = uint8(seed % 8) + 1;
        if (levels > 2) levels = 2;
        _challenge();
        _answer(ID);
        for (uint256 i = 0; i < 12 && challenges.challengeOf(ID).restarts < ParameterBounds.MAX_RESTARTS; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            levels = uint8(seed % 8) + 1;
            _askAnything(ID, seed >> 8);
            _answer(ID);
            assertEq(uint8(challenges.challengeOf(ID).state), uint8(IChallenges.State.Asking));
        }
        vm.roll(block.number + 10);
        skip(1 days);
        challenges.timeout(ID);
        assertEq(sno.balanceOf(workers[STAGE].addr), 100 ether);
    }

    // Answers

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
        _toStatement(2);
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
        _toStatement(0);
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
        _toStatement(0);
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

    // Questions

    function test_ask_onlyWhatWasAnswered() public {
        _toStatement(0);
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
        _toStatement(0);
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
        _toStatement(0);
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

    /// @dev To the question for the statement on a step.
    function _toStatement(uint32 step) private {
        _challenge();
        _answer(ID);
        _walkTo(ID, step);
        _askStatement(ID, _childFor(ID, step));
    }
}
