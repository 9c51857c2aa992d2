// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Dissection} from "../../../contracts/libraries/challenges/Dissection.sol";
import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Merkle} from "../../../contracts/libraries/proofs/Merkle.sol";
import {Facts, LogsAnswer, Pick, Position, StepAnswer, Subject} from "../../../contracts/types/Challenge.sol";
import {BoundaryLogs, Claim, ContradictionProof, StepStatement, TensorType} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {ChallengeFeed} from "./ChallengeFeed.sol";
import {ElementProof} from "./ElementProof.sol";
import {TrainingTest} from "./TrainingTest.sol";
import {TrainingWorker} from "./TrainingWorker.sol";

/// @title A worker that answers whatever it is asked, and a challenger that knows what is right
/// @notice Both play from the events alone. What the worker says is wrong from `wrongStep` or at `wrongOperator` on.
abstract contract ChallengeTest is TrainingTest, ChallengeFeed {
    using Dissection for Position;
    using SlowTree for bytes32[][];
    using TensorTypes for TensorType;

    Claim internal claim;
    uint64 internal committedAt;
    /// @dev Levels that the challenger asks for, where there are so many.
    uint8 internal levels = 1;
    /// @dev What the challenger puts up for the worker's gas, which costs nothing unless a test says so.
    uint256 internal deposit;

    function setUp() public virtual override(ChallengeFeed, TrainingWorker) {
        TrainingWorker.setUp();
        vm.recordLogs();
        committedAt = uint64(block.timestamp);
    }

    function _challenge() internal returns (uint256 id) {
        return _challengeBy(auditor);
    }

    function _challengeBy(address challenger) internal returns (uint256 id) {
        vm.prank(challenger);
        id = challenges.open{value: deposit}(claim, committedAt, _plain(_levelsOf(2)));
        _follow();
    }

    // The worker

    /// @dev Answers challenge `id` as the events tell it.
    function _answer(uint256 id) internal {
        Position memory p = positions[id];
        vm.startPrank(workers[STAGE].addr);
        if (p.subject == Subject.Steps && p.node == 0) {
            bytes32[][] memory tree = _stepsTree();
            challenges.answerSteps(id, p, claim, tree.rootOf(), tree.path(STEPS - 1), _noWay(), _below(tree, p));
        } else if (p.subject == Subject.Statement) {
            _answerStatement(id, p);
        } else if (p.subject == Subject.Output && p.height == _depthOf(p) && p.index == 0) {
            uint256 operator = _operatorOf(id, p.node);
            bytes memory data = _output(operator, factsOf[id].step);
            bytes32[][] memory tree = SlowTree.ofLeaves(_leavesOf(data));
            challenges.answerOutput(id, p, factsOf[id], tree.rootOf(), _noWay(), _belowLeaves(data, tree, p));
        } else if (p.subject == Subject.Logs) {
            challenges.answerLogs(id, p, factsOf[id], claim, _logsAnswer());
        } else {
            challenges.answer(id, p, _noWay(), _dataOf(id, p));
        }
        _onAnswer();
        vm.stopPrank();
        _follow();
    }

    /// @dev Right after the call.
    function _onAnswer() internal virtual {}

    function _answerStatement(uint256 id, Position memory p) private {
        (StepAnswer memory said, bytes memory data) = _stepAnswer(id, p);
        challenges.answerStatement(id, p, factsOf[id], said, _noWay(), data);
    }

    function _stepAnswer(uint256 id, Position memory p)
        internal
        view
        returns (StepAnswer memory said, bytes memory data)
    {
        uint32 step = factsOf[id].step;
        bytes32[][] memory tree = _traceTree(step);
        said.trace = tree.rootOf();
        StepStatement memory statement = _statement(claim, step);
        statement.auditor = challenges.challengeOf(id).challenger;
        said.signature = _signed(statement);
        said.program = header;
        uint8 below = p.levels < 3 ? p.levels : 3;
        data = _below(tree, Position(Subject.Trace, below, 0, 3, 0, OPERATORS, said.trace, 0, 0));
    }

    function _logsAnswer() internal view returns (LogsAnswer memory) {
        BoundaryLogs memory logs = _logsOf(claim.interval);
        return LogsAnswer({
            logs: logs,
            previousSignature: _signedLog(STAGE - 1, claim.interval, logs.fromPrevious),
            nextSignature: _signedLog(STAGE + 1, claim.interval, logs.fromNext),
            program: header
        });
    }

    function _dataOf(uint256 id, Position memory p) internal view returns (bytes memory) {
        uint32 step = factsOf[id].step;
        if (p.subject == Subject.Steps) return _below(_stepsTree(), p);
        if (p.subject == Subject.Trace) return _below(_traceTree(step), p);
        if (p.subject == Subject.State) return _below(_stateTree(step + 1), p);
        if (p.subject == Subject.Log) return _below(_logTree(_logOf(p), claim.interval), p);
        for (uint256 i = 0; i < OPERATORS; ++i) {
            bytes memory data = _output(i, step);
            bytes32[][] memory tree = SlowTree.ofLeaves(_leavesOf(data));
            if (data.length / 256 == p.count && _nodeAt(tree, p) == p.node) return _belowLeaves(data, tree, p);
        }
        revert("nothing lies here");
    }

    function _stepsTree() internal view returns (bytes32[][] memory) {
        return SlowTree.ofDigests(_states());
    }

    /// @dev The state after each step of the claim.
    function _states() internal view returns (bytes32[] memory digests) {
        digests = new bytes32[](STEPS);
        for (uint32 i = 0; i < STEPS; ++i) {
            digests[i] = _stateTree(claim.interval * STEPS + i + 1).rootOf();
        }
    }

    function _operatorOf(uint256 id, bytes32 root) private view returns (uint256) {
        for (uint256 i = 0; i < OPERATORS; ++i) {
            if (_root(program[i].output, _output(i, factsOf[id].step)) == root) return i;
        }
        revert("no such output");
    }

    function _depthOf(Position memory p) private pure returns (uint256 depth) {
        while (1 << depth < p.count) ++depth;
    }

    function _nodeAt(bytes32[][] memory tree, Position memory p) private pure returns (bytes32) {
        if (p.height >= tree.length || p.index >= tree[p.height].length) return 0;
        return tree[p.height][p.index];
    }

    /// @dev What lies below a position in a list's tree: nodes, or in the last row the entries, which only
    /// `_items` knows.
    function _below(bytes32[][] memory tree, Position memory p) internal view returns (bytes memory data) {
        (uint256 width, uint256 first) = (1 << p.levels, uint256(p.index) << p.levels);
        bool bottom = p.levels == p.height;
        bytes32[] memory items = bottom ? _items(p) : new bytes32[](0);
        for (uint256 i = first; i < first + width && (!bottom || i < p.count); ++i) {
            data = bytes.concat(data, bottom ? items[i] : tree[p.height - p.levels][i]);
        }
    }

    function _items(Position memory p) private view returns (bytes32[] memory items) {
        uint32 step = factsOf[_current].step;
        items = new bytes32[](p.count);
        for (uint32 i = 0; i < p.count; ++i) {
            if (p.subject == Subject.Steps) items[i] = _states()[i];
            else if (p.subject == Subject.Trace) items[i] = _root(program[i].output, _output(i, step));
            else if (p.subject == Subject.State) items[i] = _root(_matrix(8, 64), _weightsSaid(step + 1));
            else items[i] = _logged(_logOf(p), claim.interval * STEPS + i / 2, i % 2);
        }
    }

    /// @dev Which of the logs is meant.
    function _logOf(Position memory p) private view returns (uint256 which) {
        while (_nodeAt(_logTree(which, claim.interval), p) != p.node) ++which;
    }

    /// @dev The challenge whose step is meant where only a position is given.
    uint256 internal _current = 1;

    function _belowLeaves(bytes memory content, bytes32[][] memory tree, Position memory p)
        private
        pure
        returns (bytes memory data)
    {
        (uint256 width, uint256 first) = (1 << p.levels, uint256(p.index) << p.levels);
        bytes[] memory leaves = _leavesOf(content);
        bool bottom = p.levels == p.height;
        for (uint256 i = first; i < first + width && (!bottom || i < p.count); ++i) {
            data = bottom ? bytes.concat(data, leaves[i]) : bytes.concat(data, tree[p.height - p.levels][i]);
        }
    }

    // The challenger

    /// @dev Walks the whole way to the worker's wrong output, and proves it.
    function _playToTheEnd(uint256 id, uint32 step, uint32 operator, uint64 element) internal {
        _current = id;
        _answer(id);
        _walkTo(id, step % STEPS);
        _askStatement(id, _childFor(id, step % STEPS));
        _answer(id);
        _walkTo(id, operator);
        _askOutput(id, _childFor(id, operator));
        _answer(id);
        _walkTo(id, element / 256);
        _prove(step, operator, element);
    }

    /// @dev What the challenge has brought out, sent as a proof.
    function _prove(uint32 step, uint32 operator, uint64 element) internal {
        ElementProof memory proof = _elementProof(claim, step, operator, element);
        (proof.committedAt, proof.signature) = (committedAt, stated);
        disputes.proveSigned(proof.pack());
    }

    /// @dev Asks on until the row that holds `leaf` is out.
    function _walkTo(uint256 id, uint256 leaf) internal {
        while (!positions[id].isBottom()) {
            _ask(id, _childFor(id, leaf));
            _answer(id);
        }
    }

    /// @dev Which of what was answered last lies above `leaf`.
    function _childFor(uint256 id, uint256 leaf) internal view returns (uint32) {
        Position memory p = positions[id];
        return uint32((leaf >> (p.height - p.levels)) - (uint256(p.index) << p.levels));
    }

    /// @dev As many levels as the challenger likes and there are.
    function _levelsOf(uint256 height) internal view returns (uint8) {
        return uint8(levels < height ? levels : height);
    }

    /// @dev Child `child` of the last answer.
    function _pick(uint256 id, uint32 child) internal view returns (Pick memory pick) {
        Position memory p = positions[id];
        bytes memory data = answered;
        (pick.child, pick.siblings) = (child, new bytes32[](p.levels));
        bytes32[] memory row = new bytes32[](1 << p.levels);
        bool entries = p.isBottom() && p.subject != Subject.Output;
        for (uint256 i = 0; i < data.length / 32; ++i) {
            bytes32 word;
            assembly ("memory-safe") {
                word := mload(add(add(data, 32), mul(i, 32)))
            }
            if (i == child) pick.digest = word;
            row[i] = entries ? keccak256(bytes.concat(hex"03", word)) : word;
        }
        for (uint256 level = 0; level < p.levels; ++level) {
            pick.siblings[level] = row[child ^ 1];
            for (uint256 i = 0; i < row.length >> (level + 1); ++i) {
                row[i] = keccak256(bytes.concat(hex"01", row[2 * i], row[2 * i + 1]));
            }
            child /= 2;
        }
    }

    function _leafOf(uint256 id, Pick memory pick) internal view returns (uint256) {
        Position memory p = positions[id];
        return ((uint256(p.index) << p.levels) + pick.child) << (p.height - p.levels);
    }

    /// @dev Asks on from child `child` of the last answer.
    function _ask(uint256 id, uint32 child) internal {
        Pick memory pick = _pick(id, child);
        Position memory p = positions[id];
        vm.prank(auditor);
        challenges.ask(id, p, pick, _plain(_levelsOf(p.height - p.levels)));
        _follow();
    }

    /// @dev From where the steps' last row is out: the statement that leads to entry `child`.
    function _askStatement(uint256 id, uint32 child) internal {
        Pick memory pick = _pick(id, child);
        uint256 local = _leafOf(id, pick);
        bytes32 preState = local == 0 ? claim.parentState : _states()[local - 1];
        bytes32[] memory siblings = local == 0 ? new bytes32[](0) : _stepsTree().path(local - 1);
        vm.prank(auditor);
        challenges.askStatement(id, positions[id], factsOf[id], claim, pick, preState, siblings, _plain(levels));
        _follow();
    }

    /// @dev To the question for the statement on a step.
    function _toStatement(uint256 id, uint32 step) internal {
        _challenge();
        _answer(id);
        _walkTo(id, step);
        _askStatement(id, _childFor(id, step));
    }

    function _askOutput(uint256 id, uint32 child) internal {
        Pick memory pick = _pick(id, child);
        uint256 operator = _leafOf(id, pick);
        bytes32[] memory membership = _operatorTree().path(operator);
        uint8 below = _levelsOf(Merkle.depth(program[operator].output.leafCount()));
        vm.prank(auditor);
        challenges.askOutput(id, positions[id], factsOf[id], pick, program[operator], membership, _plain(below));
        _follow();
    }

    /// @dev Something that can be asked where the challenge stands.
    function _askAnything(uint256 id, uint256 seed) internal {
        Position memory p = positions[id];
        Facts memory f = factsOf[id];
        if (p.subject != Subject.Logs && !p.isBottom()) return _ask(id, uint32(seed % (1 << p.levels)));
        uint256 width = p.count < 1 << p.levels ? p.count : 1 << p.levels;
        if (p.subject == Subject.Steps) return _askStatement(id, uint32(seed % width));
        if (p.subject == Subject.Trace && seed % 2 == 0) return _askOutput(id, uint32(seed / 2 % width));
        vm.startPrank(auditor);
        if (seed % 3 == 0) challenges.askTree(id, p, f, Subject.State, _plain(0));
        else if (seed % 3 == 1) challenges.askTree(id, p, f, Subject.Steps, _plain(_levelsOf(2)));
        else challenges.askLog(id, p, f, claim, _logsOf(0), 3, _plain(_levelsOf(3)));
        vm.stopPrank();
        _follow();
    }

    // What ends it

    /// @dev The worker signs that `about` starts from no state that anybody knows.
    function _lie(Claim memory about, uint32 step) internal {
        StepStatement memory lie = _statement(about, step);
        lie.preState = 0;
        StepStatement memory none;
        ContradictionProof memory proof = _contradictionProof(about, lie, none);
        proof.committedAt = committedAt;
        disputes.proveSignedContradiction(proof);
    }

    /// @dev Its time runs out, in seconds and in blocks.
    function _expire(uint256 id) internal {
        vm.warp(challenges.challengeOf(id).deadline);
        vm.roll(block.number + 10);
    }
}
