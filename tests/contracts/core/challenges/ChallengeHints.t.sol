// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IChallenges} from "../../../../contracts/interfaces/IChallenges.sol";
import {IChallengeAnswers} from "../../../../contracts/interfaces/challenges/IChallengeAnswers.sol";
import {IChallengeQuestions} from "../../../../contracts/interfaces/challenges/IChallengeQuestions.sol";
import {Pick, Position, Question, StepAnswer, Way} from "../../../../contracts/types/Challenge.sol";
import {ChallengeTest} from "../../protocol/ChallengeTest.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @dev Questions with hints and what answers them. Which way hints lead is in `Dissection.t.sol`, what they save
/// in `ChallengeGas.t.sol`.
contract ChallengeHintsTest is ChallengeTest {
    using SlowTree for bytes32[][];

    uint256 private constant ID = 1;

    function setUp() public override {
        super.setUp();
        claim = _commitTraining(0);
    }

    function test_hints_areSoLong() public {
        vm.startPrank(auditor);
        for (uint256 length = 1; length <= 16; ++length) {
            Question memory question = Question({levels: 1, hints: new bytes(length)});
            if (length != 10 && length != 14 && length != 16) vm.expectRevert(IChallengeQuestions.WrongHints.selector);
            // Of a list of four states there are two levels, and one is asked for besides.
            else if (length == 14) vm.expectRevert(abi.encodeWithSelector(IChallengeQuestions.WrongLevels.selector, 1));
            challenges.open(claim, committedAt, question);
        }
        vm.stopPrank();
    }

    /// forge-config: default.fuzz.runs = 64
    /// @dev Whatever the hints are, the worker can answer, in one way; the trace is not so high as they go.
    function testFuzz_hints_canBeFollowed(uint64 salt) public {
        vm.prank(auditor);
        challenges.open(claim, committedAt, Question({levels: 0, hints: _hints(_stepsTree(), salt, 2)}));
        _follow();
        bytes32[][] memory tree = _stepsTree();
        Position memory p = positions[ID];
        bytes32[] memory states = _states();
        uint256 taken = NOTHING;
        for (uint32 child = 0; child < STEPS; ++child) {
            Way memory way = _wayTo(tree, 2, child);
            bytes memory data = bytes.concat(states[child]);
            vm.prank(workers[STAGE].addr);
            try challenges.answerSteps(ID, p, claim, tree.rootOf(), tree.path(STEPS - 1), way, data) {
                taken = child;
            } catch (bytes memory reason) {
                // Once it is answered it is the other's turn.
                bytes4 expected =
                    taken == NOTHING ? IChallengeAnswers.WrongAnswer.selector : IChallenges.NotYourTurn.selector;
                assertEq(bytes4(reason), expected);
            }
        }
        _follow();
        p = positions[ID];
        assertEq(p.index, taken);
        assertEq(uint256(p.height) + p.guided + p.levels, 0);
        assertEq(keccak256(abi.encode(led)), keccak256(abi.encode(tree.path(taken))));
        _statementByHints(uint32(taken), salt);
    }

    function _statementByHints(uint32 step, uint64 salt) private {
        Pick memory pick = _pick(ID, 0);
        bytes32 before = step == 0 ? claim.parentState : _states()[step - 1];
        bytes32[] memory path = step == 0 ? new bytes32[](0) : _stepsTree().path(step - 1);
        // Deeper than the trace.
        bytes32[][] memory tree = _traceTree(step);
        Question memory question = Question({levels: 1, hints: _hints(tree, salt, 5)});
        vm.prank(auditor);
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, before, path, question);
        _follow();
        Position memory p = positions[ID];
        (StepAnswer memory said,) = _stepAnswer(ID, p);
        assertEq(_answers(tree, p, said, step), 1);
        _follow();
        assertEq(uint256(positions[ID].height) + positions[ID].guided, 0);
    }

    /// @dev How many of a trace's outputs answer.
    function _answers(bytes32[][] memory tree, Position memory p, StepAnswer memory said, uint32 step)
        private
        returns (uint256 answers)
    {
        for (uint32 child = 0; child < OPERATORS; ++child) {
            Way memory way = _wayTo(tree, 3, child);
            bytes memory data = bytes.concat(_root(program[child].output, _output(child, step)));
            vm.prank(workers[STAGE].addr);
            try challenges.answerStatement(ID, p, factsOf[ID], said, way, data) {
                ++answers;
            } catch {}
        }
    }

    /// @dev Without hints there is no way, and with them none is left out.
    function test_hints_areNotLeftOut() public {
        _challenge();
        bytes32[][] memory tree = _stepsTree();
        Position memory p = positions[ID];
        bytes memory data = _below(tree, p);
        Way memory way;
        way.hints = hex"00";
        vm.startPrank(workers[STAGE].addr);
        vm.expectRevert(IChallengeAnswers.WrongAnswer.selector);
        challenges.answerSteps(ID, p, claim, tree.rootOf(), tree.path(3), way, data);
        (way.hints, way.siblings) = ("", new bytes32[](1));
        vm.expectRevert(IChallengeAnswers.WrongAnswer.selector);
        challenges.answerSteps(ID, p, claim, tree.rootOf(), tree.path(3), way, data);
        vm.stopPrank();
        vm.prank(auditor);
        uint256 other = challenges.open(claim, committedAt, Question({levels: 1, hints: _hints(tree, 1, 1)}));
        _follow();
        p = positions[other];
        vm.prank(workers[STAGE].addr);
        vm.expectRevert(IChallengeAnswers.WrongAnswer.selector);
        challenges.answerSteps(other, p, claim, tree.rootOf(), tree.path(3), _noWay(), data);
    }

    /// @dev Some are of the tree's left nodes, others of nothing, as those below its leaves.
    function _hints(bytes32[][] memory tree, uint64 salt, uint256 guided) private pure returns (bytes memory hints) {
        hints = bytes.concat(bytes8(salt));
        for (uint256 row = 0; row < guided; ++row) {
            for (uint256 pair = 0; pair < 1 << row; ++pair) {
                bytes32 node = keccak256(abi.encode(salt, row, pair));
                bool right = uint256(node) % 2 == 0 && row + 1 < tree.length;
                if (right) node = tree[tree.length - 2 - row][2 * pair];
                hints = bytes.concat(hints, bytes2(keccak256(bytes.concat(bytes8(salt), node))));
            }
        }
    }

    /// @dev To a leaf of a tree, from its root.
    function _wayTo(bytes32[][] memory tree, uint256 height, uint32 leaf) private view returns (Way memory way) {
        assertEq(tree.length, height + 1);
        (way.child, way.node, way.siblings, way.hints) = (leaf, tree[0][leaf], tree.path(leaf), hinted);
    }
}
