// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Merkle} from "../../contracts/libraries/Merkle.sol";
import {Facts, Pick, Position, StepAnswer, Subject} from "../../contracts/types/Challenge.sol";
import {Claim, JobTerms, Operator, StepStatement, TensorType} from "../../contracts/types/Types.sol";
import {ChallengeFeed} from "./protocol/ChallengeFeed.sol";

/// @title Gas of the largest game for several numbers k = 2^levels of nodes at a time
/// @notice An interval of 10,000 steps, a program of 3,000 operators, an output of 2^21 leaves (512 MiB); the challenger goes down to the
/// last of each. Of the trees there is only what the walk meets; what lies beside its way is noise. With the proof that ends it
/// (`conviction.json`) the game at k = 64 takes less than 2.2 million.
/// forge-config: default.isolate = true
contract ChallengeGasTest is ChallengeFeed {
    uint256 private constant ID = 1;
    uint32 private constant LONG = 10_000;
    uint32 private constant OPERATORS = 3000;
    uint256 private constant LEAVES = 1 << 21;
    /// @dev int8, 131,072 by 4,096.
    TensorType private constant OUTPUT = TensorType.wrap((8 << 248) | (2 << 224) | (131_072 << 96) | (4096 << 64));

    /// @dev Of a tree: the rows on the way to its last leaf, the top one first, the root, and the siblings of that leaf.
    struct Walk {
        uint8[] levels;
        bytes[] rows;
        bytes32 root;
        bytes32[] siblings;
        bytes32 last;
        bytes32 before;
    }

    uint256 private gas;
    uint256 private answers;
    Claim private claim;

    function test_k16() public {
        _measure(4);
    }

    function test_k32() public {
        _measure(5);
    }

    function test_k64() public {
        _measure(6);
        assertLe(answers, 9);
        assertLe(gas, 1_700_000);
    }

    function test_k128() public {
        _measure(7);
    }

    function test_k256() public {
        _measure(8);
    }

    function _measure(uint8 most) private {
        _play(most);
        string memory name = string.concat("largest game, k = ", vm.toString(1 << most));
        vm.snapshotValue("challenge", string.concat(name, ", gas without the proof"), gas);
        vm.snapshotValue("challenge", string.concat(name, ", answers"), answers);
    }

    /// @dev The three walks of a game.
    struct Game {
        Walk steps;
        Walk trace;
        Walk output;
    }

    function _play(uint8 most) private {
        Game memory g;
        (g.steps, g.trace, g.output) =
        (_walk(LONG, true, most), _walk(OPERATORS, true, most), _walk(LEAVES, false, most));
        // The last entry of the trace is the output's root.
        (g.trace.rows, g.trace.root) = _withLast(g.trace, OPERATORS, Merkle.tensorRoot(OUTPUT, g.output.root));
        (StepAnswer memory said, Operator memory operator, bytes32[] memory membership) = _program();
        _start(said, g.steps.last);
        _findStep(g);
        _state(g, said);
        _findOutput(g, operator, membership);
    }

    function _findStep(Game memory g) private {
        vm.prank(auditor);
        challenges.open(claim, uint64(block.timestamp), g.steps.levels[0]);
        _spent(false);
        Position memory p = positions[ID];
        vm.prank(workers[0].addr);
        challenges.answerSteps(ID, p, claim, g.steps.root, g.steps.siblings, g.steps.rows[0]);
        _spent(true);
        _descend(g.steps);
    }

    function _state(Game memory g, StepAnswer memory said) private {
        Pick memory pick = _pickLast(g.steps);
        bytes32[] memory path = _copy(g.steps.siblings);
        path[0] = _itemNode(g.steps.last);
        vm.prank(auditor);
        challenges.askStatement(ID, positions[ID], factsOf[ID], claim, pick, g.steps.before, path, g.trace.levels[0]);
        _spent(false);
        said.trace = g.trace.root;
        said.signature = _signed(said);
        vm.prank(workers[0].addr);
        challenges.answerStatement(ID, positions[ID], factsOf[ID], said, g.trace.rows[0]);
        _spent(true);
        _descend(g.trace);
    }

    function _findOutput(Game memory g, Operator memory operator, bytes32[] memory membership) private {
        Pick memory pick = _pickLast(g.trace);
        vm.prank(auditor);
        challenges.askOutput(ID, positions[ID], factsOf[ID], pick, operator, membership, g.output.levels[0]);
        _spent(false);
        vm.prank(workers[0].addr);
        challenges.answerOutput(ID, positions[ID], factsOf[ID], g.output.root, g.output.rows[0]);
        _spent(true);
        _descend(g.output);
    }

    /// @dev The rest of a walk.
    function _descend(Walk memory walk) private {
        for (uint256 i = 1; i < walk.rows.length; ++i) {
            Pick memory pick = _pickLast(walk);
            vm.prank(auditor);
            challenges.ask(ID, positions[ID], pick, walk.levels[i]);
            _spent(false);
            vm.prank(workers[0].addr);
            challenges.answer(ID, positions[ID], walk.rows[i]);
            _spent(true);
        }
    }

    function _spent(bool answer) private {
        gas += vm.snapshotGasLastCall("challenge", answer ? "last answer of a game" : "last question of a game");
        if (answer) ++answers;
        _follow();
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
    function _levels(uint256 height, bool list, uint8 most) private pure returns (uint8[] memory levels) {
        uint256 above = list ? height : height - 3;
        uint256 rows = (above + most - 1) / most;
        levels = new uint8[](list ? rows : rows + 1);
        for (uint256 i = 0; i < rows; ++i) {
            levels[i] = uint8((above + rows - 1 - i) / rows);
        }
        if (!list) levels[rows] = 3;
    }

    function _walk(uint256 count, bool list, uint8 most) private pure returns (Walk memory walk) {
        walk.levels = _levels(Merkle.depth(count), list, most);
        walk.last = keccak256(abi.encode(count));
        (walk.rows, walk.root) = _build(walk, count, list);
        walk.siblings = _siblings(walk, count, list);
        if (list) walk.before = _word(walk.rows[walk.rows.length - 1], _lastOf(walk, count) - 1);
    }

    /// @dev The same with another last entry.
    function _withLast(Walk memory walk, uint256 count, bytes32 last) private pure returns (bytes[] memory, bytes32) {
        walk.last = last;
        return _build(walk, count, true);
    }

    /// @dev Place of the last leaf in the last row.
    function _lastOf(Walk memory walk, uint256 count) private pure returns (uint256) {
        return (count - 1) & ((1 << walk.levels[walk.levels.length - 1]) - 1);
    }

    function _build(Walk memory walk, uint256 count, bool list)
        private
        pure
        returns (bytes[] memory rows, bytes32 node)
    {
        rows = new bytes[](walk.levels.length);
        uint256 below = 0;
        for (uint256 i = rows.length; i > 0; --i) {
            uint256 width = 1 << walk.levels[i - 1];
            uint256 place = ((count - 1) >> below) & (width - 1);
            bytes32[] memory nodes = new bytes32[](width);
            if (below > 0) {
                for (uint256 k = 0; k < width; ++k) {
                    nodes[k] = k == place ? node : keccak256(abi.encode(count, i, k));
                    // After the last leaf there is padding.
                    if (k > place) nodes[k] = Merkle.empty(below);
                }
                rows[i - 1] = abi.encodePacked(nodes);
            } else {
                for (uint256 k = 0; k <= place; ++k) {
                    bytes32 item = k == place ? walk.last : keccak256(abi.encode(count, k));
                    bytes memory entry = list ? bytes.concat(item) : bytes.concat(item, new bytes(224));
                    rows[i - 1] = bytes.concat(rows[i - 1], entry);
                    nodes[k] = list ? _itemNode(item) : keccak256(bytes.concat(hex"00", entry));
                }
            }
            node = _fold(nodes);
            below += walk.levels[i - 1];
        }
    }

    /// @dev Siblings of the last leaf, from the bottom.
    function _siblings(Walk memory walk, uint256 count, bool list) private pure returns (bytes32[] memory siblings) {
        siblings = new bytes32[](Merkle.depth(count));
        uint256 below = 0;
        for (uint256 i = walk.rows.length; i > 0; --i) {
            uint256 place = ((count - 1) >> below) & ((1 << walk.levels[i - 1]) - 1);
            bytes32[] memory nodes = _nodesOf(walk.rows[i - 1], walk.levels[i - 1], below == 0 && list, list);
            for (uint256 level = 0; level < walk.levels[i - 1]; ++level) {
                siblings[below + level] = nodes[place ^ 1];
                nodes = _up(nodes);
                place /= 2;
            }
            below += walk.levels[i - 1];
        }
    }

    /// @dev What the last answer holds at the end of the way, to go on from.
    function _pickLast(Walk memory walk) private view returns (Pick memory pick) {
        Position memory p = positions[ID];
        uint256 row = walk.rows.length;
        // The row that was answered last is the one of its height.
        uint256 below = p.height - p.levels;
        for (uint256 sum = 0; sum <= below; --row) {
            if (sum == below) break;
            sum += walk.levels[row - 1];
        }
        bool list = p.subject != Subject.Output;
        pick.child = uint32(((p.count - 1) >> below) & ((1 << p.levels) - 1));
        pick.digest = below == 0 && list ? walk.last : _word(walk.rows[row - 1], pick.child);
        bytes32[] memory nodes = _nodesOf(walk.rows[row - 1], p.levels, below == 0 && list, list);
        pick.siblings = new bytes32[](p.levels);
        uint256 place = pick.child;
        for (uint256 level = 0; level < p.levels; ++level) {
            pick.siblings[level] = nodes[place ^ 1];
            nodes = _up(nodes);
            place /= 2;
        }
    }

    function _nodesOf(bytes memory row, uint256 levels, bool items, bool list)
        private
        pure
        returns (bytes32[] memory nodes)
    {
        nodes = new bytes32[](1 << levels);
        bool leaves = !list && row.length == (256 << levels);
        for (uint256 i = 0; i < nodes.length && i * 32 < row.length; ++i) {
            if (leaves) nodes[i] = keccak256(bytes.concat(hex"00", _word(row, i * 8), new bytes(224)));
            else nodes[i] = items ? _itemNode(_word(row, i)) : _word(row, i);
        }
    }

    function _up(bytes32[] memory nodes) private pure returns (bytes32[] memory above) {
        above = new bytes32[](nodes.length / 2);
        for (uint256 i = 0; i < above.length; ++i) {
            above[i] = _node(nodes[2 * i], nodes[2 * i + 1]);
        }
    }

    function _fold(bytes32[] memory nodes) private pure returns (bytes32) {
        while (nodes.length > 1) {
            nodes = _up(nodes);
        }
        return nodes[0];
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
