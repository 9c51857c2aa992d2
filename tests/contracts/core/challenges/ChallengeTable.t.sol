// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {IChallengeAnswers} from "../../../../contracts/interfaces/challenges/IChallengeAnswers.sol";
import {IChallengeQuestions} from "../../../../contracts/interfaces/challenges/IChallengeQuestions.sol";
import {Merkle} from "../../../../contracts/libraries/proofs/Merkle.sol";
import {ParameterBounds} from "../../../../contracts/libraries/terms/ParameterBounds.sol";
import {Facts, LogsAnswer, Pick, Position, StepAnswer, Subject} from "../../../../contracts/types/Challenge.sol";
import {Operator} from "../../../../contracts/types/Types.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";

/// @dev The table of `IChallenges`, every row and everything that no row has: from anywhere that a game can stand,
/// every move by everybody.
contract ChallengeTableTest is ChallengeTest {
    uint256 private constant ID = 1;

    enum Move {
        AnswerSteps,
        AnswerStatement,
        AnswerOutput,
        AnswerLogs,
        Answer,
        Ask,
        AskSteps,
        AskTrace,
        AskState,
        AskStatement,
        AskOutput,
        AskLogs,
        AskLog,
        Timeout
    }

    bool private isVoid;
    bool private isOver;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    /// forge-config: default.fuzz.runs = 160
    function testFuzz_everyMoveFromEverywhere(uint256 seed) public {
        // Fuzzers like small numbers, which leave high bits zero.
        _goSomewhere(uint256(keccak256(abi.encode(seed))));
        address[3] memory anybody = [workers[STAGE].addr, auditor, stranger];
        for (uint8 move = 0; move <= uint8(Move.Timeout); ++move) {
            for (uint256 i = 0; i < anybody.length; ++i) {
                uint256 snapshot = vm.snapshotState();
                if (Move(move) == Move.Timeout) _timeout(anybody[i]);
                else _move(Move(move), anybody[i]);
                vm.revertToState(snapshot);
            }
        }
    }

    // Where a game can stand

    function _goSomewhere(uint256 seed) private {
        levels = uint8(seed % 3) + 1;
        uint256 kind = (seed >> 8) % 12;
        // Nobody has challenged anything.
        if (kind == 0) return;
        _challenge();
        uint256 moves = (seed >> 16) % 14;
        for (uint256 i = 0; i < moves; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            if (i % 2 == 1 && challenges.challengeOf(ID).restarts == ParameterBounds.MAX_RESTARTS) break;
            if (i % 2 == 0) _answer(ID);
            else _askAnything(ID, seed);
        }
        if (kind == 1 || kind == 2) {
            _lie(claim, 0);
            isVoid = true;
        }
        if (kind == 4 && challenges.challengeOf(ID).state == IChallenges.State.Answering) {
            vm.fee(1 gwei);
            _answer(ID);
            assertEq(uint8(challenges.challengeOf(ID).state), uint8(IChallenges.State.Spent));
        }
        uint256 time = (seed >> 24) % 3;
        // Its seconds have passed, but not the blocks that a move is given.
        if (time == 1) vm.warp(challenges.challengeOf(ID).deadline);
        if (time == 2 || kind == 3) {
            _expire(ID);
            isOver = true;
        }
        if (kind == 2 || kind == 3) challenges.timeout(ID);
    }

    // Moves

    function _move(Move move, address who) private {
        IChallenges.Challenge memory c = challenges.challengeOf(ID);
        bytes4 refusal = _refusal(c, move, who);
        if (refusal == 0 && _fits(move) && (!_restarts(move) || c.restarts < ParameterBounds.MAX_RESTARTS)) {
            _play(move);
            bool answered = move <= Move.Answer;
            IChallenges.State next = answered ? IChallenges.State.Asking : IChallenges.State.Answering;
            IChallenges.Challenge memory now_ = challenges.challengeOf(ID);
            assertEq(uint8(now_.state), uint8(next));
            assertEq(now_.asks, answered ? c.asks : c.asks + 1);
            assertGe(now_.bytesAsked, c.bytesAsked);
            assertEq(now_.position, keccak256(abi.encode(positions[ID])), "what the events tell");
            return;
        }
        bytes memory call = _callOf(move);
        vm.prank(who);
        (bool done, bytes memory reason) = address(challenges).call(call);
        assertFalse(done);
        if (refusal != 0) assertEq(bytes4(reason), refusal);
        else assertTrue(_isOfForm(bytes4(reason)));
        assertEq(keccak256(abi.encode(challenges.challengeOf(ID))), keccak256(abi.encode(c)));
    }

    /// @dev Why the table does not have this move; zero if it has.
    function _refusal(IChallenges.Challenge memory c, Move move, address who) private view returns (bytes4) {
        bool answers = move <= Move.Answer;
        if (c.state == IChallenges.State.None) return IChallenges.UnknownChallenge.selector;
        if (c.state != (answers ? IChallenges.State.Answering : IChallenges.State.Asking)) {
            return IChallenges.NotYourTurn.selector;
        }
        if (answers && who != c.worker) return IChallengeAnswers.NotWorker.selector;
        if (!answers && who != c.challenger) return IChallengeQuestions.NotChallenger.selector;
        return isOver ? IChallenges.DeadlinePassed.selector : bytes4(0);
    }

    /// @dev Whether the move is one about what the game has come to.
    function _fits(Move move) private view returns (bool) {
        (Position memory p, Facts memory f) = (positions[ID], factsOf[ID]);
        bool list = p.subject == Subject.Steps || p.subject == Subject.Trace || p.subject == Subject.State
            || p.subject == Subject.Log;
        bool outputRoot = p.subject == Subject.Output && p.height == Merkle.depth(p.count) && p.index == 0;
        bool bottom = p.levels == p.height;
        if (move == Move.AnswerSteps) return p.subject == Subject.Steps && p.node == 0;
        if (move == Move.AnswerStatement) return p.subject == Subject.Statement;
        if (move == Move.AnswerOutput) return outputRoot;
        if (move == Move.AnswerLogs) return p.subject == Subject.Logs;
        if (move == Move.Answer) return p.node != 0 && (list || (p.subject == Subject.Output && !outputRoot));
        if (move == Move.Ask) return p.subject != Subject.Logs && !bottom;
        if (move == Move.AskSteps || move == Move.AskLogs) return true;
        if (move == Move.AskTrace) return f.trace != 0;
        if (move == Move.AskState) return f.stateCount > 0 && f.postState != 0;
        if (move == Move.AskStatement) return p.subject == Subject.Steps && bottom;
        if (move == Move.AskOutput) return p.subject == Subject.Trace && bottom;
        return f.microBatches > 0;
    }

    /// @dev Whether it is a question that does not go on from the last answer.
    function _restarts(Move move) private pure returns (bool) {
        return move == Move.AskSteps || move == Move.AskTrace || move == Move.AskState || move == Move.AskLogs
            || move == Move.AskLog;
    }

    /// @dev As it is right, by who may.
    function _play(Move move) private {
        if (move <= Move.Answer) return _answer(ID);
        if (move == Move.Ask) return _ask(ID, 0);
        if (move == Move.AskStatement) return _askStatement(ID, 0);
        if (move == Move.AskOutput) return _askOutput(ID, 0);
        bytes memory call = _callOf(move);
        vm.prank(auditor);
        (bool done,) = address(challenges).call(call);
        assertTrue(done);
        _follow();
    }

    /// @dev From where the game stands; right only in what needs nothing picked.
    function _callOf(Move move) private view returns (bytes memory) {
        (Position memory p, Facts memory f) = (positions[ID], factsOf[ID]);
        bytes32[] memory none = new bytes32[](0);
        Pick memory pick;
        if (move == Move.AnswerSteps) {
            return abi.encodeCall(IChallengeAnswers.answerSteps, (ID, p, claim, 0, none, _noWay(), ""));
        }
        if (move == Move.AnswerStatement) {
            StepAnswer memory said;
            return abi.encodeCall(IChallengeAnswers.answerStatement, (ID, p, f, said, _noWay(), ""));
        }
        if (move == Move.AnswerOutput) {
            return abi.encodeCall(IChallengeAnswers.answerOutput, (ID, p, f, 0, _noWay(), ""));
        }
        if (move == Move.AnswerLogs) {
            LogsAnswer memory said;
            return abi.encodeCall(IChallengeAnswers.answerLogs, (ID, p, f, claim, said));
        }
        if (move == Move.Answer) return abi.encodeCall(IChallengeAnswers.answer, (ID, p, _noWay(), ""));
        if (move == Move.Ask) return abi.encodeCall(IChallengeQuestions.ask, (ID, p, pick, _plain(1)));
        if (move == Move.AskSteps) return _askTree(p, f, Subject.Steps, 2);
        if (move == Move.AskTrace) return _askTree(p, f, Subject.Trace, 3);
        if (move == Move.AskState) return _askTree(p, f, Subject.State, 0);
        if (move == Move.AskStatement) {
            return abi.encodeCall(IChallengeQuestions.askStatement, (ID, p, f, claim, pick, 0, none, _plain(1)));
        }
        if (move == Move.AskOutput) {
            Operator memory operator;
            return abi.encodeCall(IChallengeQuestions.askOutput, (ID, p, f, pick, operator, none, _plain(1)));
        }
        if (move == Move.AskLogs) return abi.encodeCall(IChallengeQuestions.askLogs, (ID, p));
        return abi.encodeCall(IChallengeQuestions.askLog, (ID, p, f, claim, _logsOf(0), 3, _plain(_levelsOf(3))));
    }

    function _askTree(Position memory p, Facts memory f, Subject subject, uint256 height)
        private
        view
        returns (bytes memory)
    {
        return abi.encodeCall(IChallengeQuestions.askTree, (ID, p, f, subject, _plain(_levelsOf(height))));
    }

    /// @dev It is somebody's turn, but not for this.
    function _isOfForm(bytes4 reason) private pure returns (bool) {
        return reason == IChallenges.WrongSubject.selector || reason == IChallengeQuestions.WrongPick.selector
            || reason == IChallengeQuestions.WrongLevels.selector || reason == IChallengeAnswers.WrongAnswer.selector
            || reason == IChallengeQuestions.TooManyRestarts.selector;
    }

    function _timeout(address who) private {
        IChallenges.Challenge memory c = challenges.challengeOf(ID);
        bytes4 refusal;
        if (c.state == IChallenges.State.None) {
            refusal = IChallenges.UnknownChallenge.selector;
        } else if (c.state >= IChallenges.State.Won) {
            refusal = IChallenges.NotYourTurn.selector;
        } else if (!isVoid && !isOver && c.state != IChallenges.State.Spent) {
            refusal = IChallenges.DeadlineNotReached.selector;
        }

        vm.prank(who);
        (bool done, bytes memory reason) = address(challenges).call(abi.encodeCall(IChallenges.timeout, (ID)));
        if (refusal != 0) {
            assertEq(bytes4(reason), refusal);
            assertFalse(done);
            return;
        }
        assertTrue(done);
        bool silence = !isVoid && c.state == IChallenges.State.Answering;
        IChallenges.State next = isVoid || silence ? IChallenges.State.Won : IChallenges.State.Lost;
        assertEq(uint8(challenges.challengeOf(ID).state), uint8(next));
        assertEq(sno.balanceOf(address(challenges)), 0, "the bond is paid out");
        // Of a lie that was proven the auditor has its share already.
        uint256 bounty = isVoid || silence ? STAKE / 4 : 0;
        uint256 bond = next == IChallenges.State.Won ? 0 : c.bond;
        assertEq(sno.balanceOf(auditor), 1000 ether + bounty - bond);
        assertEq(sno.balanceOf(workers[STAGE].addr), bond);
        assertEq(_staked(workers[STAGE].addr).bonded, isVoid || silence ? 0 : STAKE);
    }
}
