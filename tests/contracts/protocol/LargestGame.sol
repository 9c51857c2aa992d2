// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Merkle} from "../../../contracts/libraries/proofs/Merkle.sol";
import {ParameterBounds} from "../../../contracts/libraries/terms/ParameterBounds.sol";
import {Pick, Position, Question, StepAnswer, Subject, Way} from "../../../contracts/types/Challenge.sol";
import {Claim, JobTerms, Operator, StepStatement, TensorType} from "../../../contracts/types/Types.sol";
import {ChallengeFeed} from "./ChallengeFeed.sol";

/// @title The moves of the largest game
/// @notice An interval of 10,000 steps, a program of 3,000 operators, an output of 2^21 leaves (512 MiB); the
/// challenger goes down to the last of each. Of the trees there is only what the walk meets; what lies beside its way
/// is noise.
abstract contract LargestGame is ChallengeFeed {
    uint256 internal constant ID = 1;
    uint32 internal constant LONG = 10_000;
    uint32 internal constant OPERATORS = 3000;
    uint256 internal constant LEAVES = 1 << 21;
    /// @dev int8, 131,072 by 4,096.
    TensorType private constant OUTPUT = TensorType.wrap((8 << 248) | (2 << 224) | (131_072 << 96) | (4096 << 64));
    bytes8 private constant SALT = "any salt";

    /// @dev Of a tree: for each question, the first one first, its levels by hints and below, the row that answers
    /// it, and the node over that; the root; the siblings of the last leaf from the bottom up; the last entry, and
    /// the one before.
    struct Walk {
        uint256 count;
        bool list;
        uint8[] guided;
        uint8[] levels;
        bytes[] rows;
        bytes32[] tops;
        bytes32 root;
        bytes32[] path;
        bytes32 last;
        bytes32 before;
    }

    /// @dev Which game it is.
    string internal name;
    uint256 internal gas;
    uint256 internal answerGas;
    uint256 internal answers;
    Claim internal claim;

    /// @dev The three walks of a game.
    struct Game {
        Walk steps;
        Walk trace;
        Walk output;
    }

    function _play(Game memory g) internal {
        (StepAnswer memory said, Operator memory operator, bytes32[] memory membership) = _begin(g);
        _findStep(g);
        _descend(g.steps);
        _state(g, said);
        _findOutput(g, operator, membership);
    }

    /// @dev The job, its claim, and the answer about the last step.
    function _begin(Game memory g)
        internal
        returns (StepAnswer memory said, Operator memory operator, bytes32[] memory membership)
    {
        // The last entry of the trace is the output's root.
        g.trace.last = Merkle.tensorRoot(OUTPUT, g.output.root);
        _build(g.trace);
        (said, operator, membership) = _program();
        _start(said, g.steps.last);
    }

    function _findStep(Game memory g) internal {
        vm.deal(auditor, 1 ether);
        Question memory question = _question(g.steps, 0);
        vm.prank(auditor);
        challenges.open{value: 1 ether}(claim, uint64(block.timestamp), question);
        _spent(false);
        Position memory p = positions[ID];
        Way memory way = _way(g.steps, 0);
        vm.prank(workers[0].addr);
        challenges.answerSteps(ID, p, claim, g.steps.root, g.steps.path, way, g.steps.rows[0]);
        _spent(true);
    }

    /// @dev The first row once more, from the root.
    function _repeat(Walk memory walk, Subject subject) internal {
        vm.prank(auditor);
        challenges.askTree(ID, positions[ID], factsOf[ID], subject, _question(walk, 0));
        _spent(false);
        vm.prank(workers[0].addr);
        challenges.answer(ID, positions[ID], _way(walk, 0), walk.rows[0]);
        _spent(true);
    }

    function _state(Game memory g, StepAnswer memory said) internal {
        Pick memory pick = _pickLast(g.steps, g.steps.rows.length - 1);
        bytes32[] memory path = _copy(g.steps.path);
        path[0] = _itemNode(g.steps.last);
        Question memory question = _question(g.trace, 0);
        vm.prank(auditor);
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, g.steps.before, path, question);
        _spent(false);
        said.trace = g.trace.root;
        said.signature = _signed(said);
        Way memory way = _way(g.trace, 0);
        vm.prank(workers[0].addr);
        challenges.answerStatement(ID, positions[ID], factsOf[ID], said, way, g.trace.rows[0]);
        _spent(true);
        _descend(g.trace);
    }

    function _findOutput(Game memory g, Operator memory operator, bytes32[] memory membership) internal {
        Pick memory pick = _pickLast(g.trace, g.trace.rows.length - 1);
        Question memory question = _question(g.output, 0);
        vm.prank(auditor);
        challenges.askOutput(ID, positions[ID], factsOf[ID], pick, operator, membership, question);
        _spent(false);
        Way memory way = _way(g.output, 0);
        vm.prank(workers[0].addr);
        challenges.answerOutput(ID, positions[ID], factsOf[ID], g.output.root, way, g.output.rows[0]);
        _spent(true);
        _descend(g.output);
    }

    /// @dev The rest of a walk, as far as questions last.
    function _descend(Walk memory walk) internal {
        for (uint256 i = 1; i < walk.rows.length; ++i) {
            if (challenges.challengeOf(ID).asks == ParameterBounds.MAX_ASKS) return;
            Pick memory pick = _pickLast(walk, i - 1);
            Question memory question = _question(walk, i);
            vm.prank(auditor);
            challenges.ask(ID, positions[ID], pick, question);
            _spent(false);
            Way memory way = _way(walk, i);
            vm.prank(workers[0].addr);
            challenges.answer(ID, positions[ID], way, walk.rows[i]);
            _spent(true);
        }
    }

    function _spent(bool answer) private {
        string memory last = string.concat(name, answer ? ", last answer" : ", last question");
        uint256 used = vm.snapshotGasLastCall("challenge", last);
        gas += used;
        _follow();
        if (!answer) return;
        ++answers;
        answerGas += used;
        _isPaidFor(ID, used);
    }

    // The job

    function _start(StepAnswer memory said, bytes32 newState) private {
        JobTerms memory terms = _terms(address(sno), 1, 1, 1);
        terms.stepsPerInterval = LONG;
        terms.programs[0] = keccak256(abi.encode(said.program));
        claim = _claim(_run(terms), 0, 0, 0);
        claim.newState = newState;
        vm.prank(workers[0].addr);
        checkpoints.commit(claim, _link(claim, 0));
    }

    /// @dev A program whose last operator gives `OUTPUT`.
    function _program()
        private
        pure
        returns (StepAnswer memory said, Operator memory operator, bytes32[] memory membership)
    {
        operator.output = OUTPUT;
        membership = new bytes32[](12);
        bytes32 node = _itemNode(keccak256(abi.encode(operator)));
        for (uint256 level = 0; level < 12; ++level) {
            membership[level] = keccak256(abi.encode("operators", level));
            bool right = (uint256(OPERATORS - 1) >> level) & 1 == 1;
            node = right ? _node(membership[level], node) : _node(node, membership[level]);
        }
        said.program.operators = node;
        (said.program.operatorCount, said.program.stateCount, said.program.microBatches) = (OPERATORS, 1, 1);
    }

    function _signed(StepAnswer memory said) private view returns (bytes memory) {
        StepStatement memory statement = StepStatement({
            claimId: checkpoints.claimId(claim),
            auditor: auditor,
            step: LONG - 1,
            preState: factsOf[ID].preState,
            postState: factsOf[ID].postState,
            trace: said.trace
        });
        return _sign(workers[0].key, _statementDigest(statement));
    }

    // Trees

    /// @dev As many levels at a time as there may be, evenly; leaves of a tensor at most 3 at a time.
    function _plainWalk(uint256 count, bool list, uint8 most) internal pure returns (Walk memory) {
        uint256 height = Merkle.depth(count);
        uint256 above = list ? height : height - 3;
        uint256 rows = (above + most - 1) / most;
        uint8[] memory levels = new uint8[](list ? rows : rows + 1);
        for (uint256 i = 0; i < rows; ++i) {
            levels[i] = uint8((above + rows - 1 - i) / rows);
        }
        if (!list) levels[rows] = 3;
        return _walk(count, list, new uint8[](levels.length), levels);
    }

    function _numbers(uint8 first, uint8 second) internal pure returns (uint8[] memory) {
        return _numbers(first, second, second > 0 ? 2 : 1);
    }

    function _numbers(uint8 first, uint8 second, uint256 length) internal pure returns (uint8[] memory numbers) {
        numbers = new uint8[](length);
        numbers[0] = first;
        if (length > 1) numbers[1] = second;
    }

    function _walk(uint256 count, bool list, uint8[] memory guided, uint8[] memory levels)
        internal
        pure
        returns (Walk memory walk)
    {
        (walk.count, walk.list, walk.guided, walk.levels) = (count, list, guided, levels);
        walk.last = keccak256(abi.encode(count));
        _build(walk);
        uint256 row = walk.rows.length - 1;
        if (list) walk.before = _word(walk.rows[row], ((count - 1) & ((1 << levels[row]) - 1)) - 1);
    }

    /// @dev Rows, path and root, from the last row up.
    function _build(Walk memory walk) private pure {
        (walk.rows, walk.tops) = (new bytes[](walk.levels.length), new bytes32[](walk.levels.length));
        walk.path = new bytes32[](Merkle.depth(walk.count));
        uint256 below = 0;
        for (uint256 i = walk.rows.length; i > 0; --i) {
            bytes32[] memory nodes = _row(walk, i - 1, below);
            _climb(walk, nodes, below);
            walk.tops[i - 1] = walk.root;
            below += walk.levels[i - 1];
            if (walk.guided[i - 1] == 0) continue;
            _climb(walk, _noise(walk, walk.guided[i - 1], below), below);
            below += walk.guided[i - 1];
        }
    }

    function _row(Walk memory walk, uint256 i, uint256 below) private pure returns (bytes32[] memory nodes) {
        if (below > 0) {
            nodes = _noise(walk, walk.levels[i], below);
            walk.rows[i] = abi.encodePacked(nodes);
            return nodes;
        }
        nodes = new bytes32[](1 << walk.levels[i]);
        uint256 place = (walk.count - 1) & (nodes.length - 1);
        for (uint256 k = 0; k <= place; ++k) {
            bytes32 item = k == place ? walk.last : keccak256(abi.encode(walk.count, k));
            bytes memory entry =
                walk.list ? bytes.concat(item) : abi.encodePacked(item, item, item, item, item, item, item, item);
            walk.rows[i] = bytes.concat(walk.rows[i], entry);
            nodes[k] = walk.list ? _itemNode(item) : keccak256(bytes.concat(hex"00", entry));
        }
    }

    /// @dev Nodes `below` above the leaves, around the one on the way, which is `root` by now; after the last leaf
    /// there is padding.
    function _noise(Walk memory walk, uint256 levels, uint256 below) private pure returns (bytes32[] memory nodes) {
        nodes = new bytes32[](1 << levels);
        uint256 place = ((walk.count - 1) >> below) & (nodes.length - 1);
        for (uint256 k = 0; k < nodes.length; ++k) {
            nodes[k] = k == place ? walk.root : keccak256(abi.encode(walk.count, below, k));
            if (k > place) nodes[k] = Merkle.empty(below);
        }
    }

    /// @dev Writes the siblings of the way over these nodes, and what stands above them.
    function _climb(Walk memory walk, bytes32[] memory nodes, uint256 below) private pure {
        uint256 place = (walk.count - 1) >> below;
        while (nodes.length > 1) {
            walk.path[below] = nodes[(place ^ 1) & (nodes.length - 1)];
            bytes32[] memory above = new bytes32[](nodes.length / 2);
            for (uint256 i = 0; i < above.length; ++i) {
                above[i] = keccak256(bytes.concat(hex"01", nodes[2 * i], nodes[2 * i + 1]));
            }
            (nodes, place, below) = (above, place / 2, below + 1);
        }
        walk.root = nodes[0];
    }

    /// @dev Levels that lie below the row that answers a question.
    function _below(Walk memory walk, uint256 question) private pure returns (uint256 below) {
        for (uint256 i = question + 1; i < walk.rows.length; ++i) {
            below += walk.guided[i] + walk.levels[i];
        }
    }

    function _part(Walk memory walk, uint256 from, uint256 length) private pure returns (bytes32[] memory siblings) {
        siblings = new bytes32[](length);
        for (uint256 i = 0; i < length; ++i) {
            siblings[i] = walk.path[from + i];
        }
    }

    /// @dev Hints of which those on the way are right, and the others anything. Long ones where the root comes with
    /// the answer.
    function _question(Walk memory walk, uint256 i) private pure returns (Question memory question) {
        (uint256 guided, uint256 low) = (walk.guided[i], _below(walk, i) + walk.levels[i]);
        question.levels = walk.levels[i];
        if (guided == 0) return question;
        bytes32[] memory hints = new bytes32[]((1 << guided) - 1);
        for (uint256 k = 0; k < hints.length; ++k) {
            hints[k] = keccak256(abi.encode("beside", k));
        }
        uint256 child = ((walk.count - 1) >> low) & ((1 << guided) - 1);
        for (uint256 level = 0; level < guided; ++level) {
            uint256 hint = (1 << (guided - 1 - level)) - 1 + (child >> (level + 1));
            hints[hint] = keccak256(bytes.concat(SALT, walk.path[low + level]));
        }
        question.hints = bytes.concat(SALT);
        bool long = walk.list && i == 0;
        for (uint256 k = 0; k < hints.length; ++k) {
            bytes memory hint = long ? bytes.concat(bytes8(hints[k])) : bytes.concat(bytes2(hints[k]));
            question.hints = bytes.concat(question.hints, hint);
        }
    }

    function _way(Walk memory walk, uint256 i) private pure returns (Way memory way) {
        (uint256 guided, uint256 low) = (walk.guided[i], _below(walk, i) + walk.levels[i]);
        if (guided == 0) return way;
        way.child = uint32(((walk.count - 1) >> low) & ((1 << guided) - 1));
        way.siblings = _part(walk, low, guided);
        way.hints = _question(walk, i).hints;
        way.node = walk.tops[i];
    }

    /// @dev Of what answered a question, the one on the way to the last leaf.
    function _pickLast(Walk memory walk, uint256 i) private pure returns (Pick memory pick) {
        uint256 below = _below(walk, i);
        pick.child = uint32(((walk.count - 1) >> below) & ((1 << walk.levels[i]) - 1));
        pick.digest = below == 0 && walk.list ? walk.last : _word(walk.rows[i], pick.child);
        pick.siblings = _part(walk, below, walk.levels[i]);
    }

    function _word(bytes memory data, uint256 index) private pure returns (bytes32 word) {
        assembly ("memory-safe") {
            word := mload(add(add(data, 32), mul(index, 32)))
        }
    }

    function _itemNode(bytes32 item) private pure returns (bytes32) {
        return keccak256(bytes.concat(hex"03", item));
    }

    function _node(bytes32 left, bytes32 right) private pure returns (bytes32) {
        return keccak256(bytes.concat(hex"01", left, right));
    }

    function _copy(bytes32[] memory list) private pure returns (bytes32[] memory copy) {
        copy = new bytes32[](list.length);
        for (uint256 i = 0; i < list.length; ++i) {
            copy[i] = list[i];
        }
    }
}
