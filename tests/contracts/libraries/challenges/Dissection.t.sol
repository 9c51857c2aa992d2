// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";

import {Dissection} from "../../../../contracts/libraries/challenges/Dissection.sol";
import {Merkle} from "../../../../contracts/libraries/proofs/Merkle.sol";
import {Position, Subject, Way} from "../../../../contracts/types/Challenge.sol";
import {SlowTree} from "../../verifier/SlowTree.sol";

/// @dev Rows of lists of any length against a tree built whole.
contract DissectionTest is Test {
    using SlowTree for bytes32[][];

    function nodeOver(Position memory p, bytes calldata data) external pure returns (bytes32) {
        return Dissection.nodeOver(p, data);
    }

    function follow(Position memory p, Way calldata way) external pure returns (bool, Position memory) {
        return (Dissection.follow(p, way), p);
    }

    function levelsOf(bytes calldata hints) external pure returns (bool, uint8) {
        return Dissection.levelsOf(hints);
    }

    /// @dev Of a tree and hints of any kind there is one way: of all nodes so far below, one is taken, it has a leaf,
    /// and it stands where the rule says, followed from the top.
    function testFuzz_hintsLeadOneWay(uint256 seed, bytes32 salt) public view {
        uint256 count = seed % 20 + 1;
        (, bytes32[][] memory tree) = _list(count);
        Position memory p;
        (p.subject, p.count) = (Subject.Trace, uint64(count));
        p.height = uint8(1 + seed / 40 % 5);
        if (p.height >= tree.length) return;
        p.guided = uint8(1 + seed / 1024 % p.height);
        p.index = uint64(seed / 4096 % (((count - 1) >> p.height) + 1));
        p.node = tree[p.height][p.index];
        bytes memory hints = _hints(tree, p, salt);
        p.hints = keccak256(hints);
        uint256 expected = _descend(tree, p, hints);
        uint256 taken;
        for (uint32 child = 0; child < 1 << p.guided; ++child) {
            Way memory way = _wayTo(tree, p, child, hints);
            (bool leads, Position memory end) = this.follow(p, way);
            if (!leads) continue;
            ++taken;
            assertEq(end.index, expected);
            assertLt(uint256(end.index) << end.height, count);
            assertEq(end.node, tree[end.height][end.index]);
            assertEq(uint256(end.guided) + uint256(end.hints), 0);
            // Nothing of it can be another.
            _changed(p, way, seed);
        }
        assertEq(taken, 1);
    }

    function _changed(Position memory p, Way memory way, uint256 seed) private view {
        Way memory other = abi.decode(abi.encode(way), (Way));
        uint256 kind = seed % 5;
        if (kind == 0) other.node ^= bytes32(uint256(1));
        if (kind == 1) other.siblings[seed % other.siblings.length] ^= bytes32(uint256(1));
        if (kind == 2) other.hints[seed % other.hints.length] ^= 0x01;
        if (kind == 3) other.siblings = new bytes32[](way.siblings.length + 1);
        if (kind == 4) other.child += uint32(1 << p.guided);
        (bool leads,) = this.follow(p, other);
        assertFalse(leads);
    }

    function test_hintsAreSoLong() public view {
        for (uint256 length = 0; length < 2100; ++length) {
            (bool formed, uint8 levels) = this.levelsOf(new bytes(length));
            bool right = length == 0;
            for (uint256 guided = 1; guided <= 10; ++guided) {
                bool long = length == 8 + 8 * ((1 << guided) - 1) && guided <= 8;
                if (!long && length != 8 + 2 * ((1 << guided) - 1)) continue;
                assertFalse(right);
                right = true;
                assertEq(levels, guided);
            }
            assertEq(formed, right);
        }
    }

    /// @dev Some are what they should be, others are not; short or long.
    function _hints(bytes32[][] memory tree, Position memory p, bytes32 salt)
        private
        pure
        returns (bytes memory hints)
    {
        hints = bytes.concat(bytes8(salt));
        for (uint256 row = 0; row < p.guided; ++row) {
            for (uint256 pair = 0; pair < 1 << row; ++pair) {
                bytes32 left = tree[p.height - row - 1][((uint256(p.index) << row) + pair) * 2];
                bytes8 hint = bytes8(keccak256(bytes.concat(bytes8(salt), left)));
                // Of a wrong one all bits are wrong, or the last one.
                uint256 kind = uint256(keccak256(abi.encode(salt, row, pair))) % 4;
                if (kind == 0) hint = ~hint;
                if (kind == 1) hint ^= _isLong(salt) ? bytes8(uint64(1)) : bytes8(uint64(1) << 48);
                hints = _isLong(salt) ? bytes.concat(hints, hint) : bytes.concat(hints, bytes2(hint));
            }
        }
    }

    function _isLong(bytes32 salt) private pure returns (bool) {
        return uint256(salt) % 2 == 0;
    }

    function _descend(bytes32[][] memory tree, Position memory p, bytes memory hints)
        private
        pure
        returns (uint256 index)
    {
        index = p.index;
        for (uint256 row = 0; row < p.guided; ++row) {
            uint256 height = p.height - row - 1;
            uint256 width = hints.length == 8 << p.guided ? 8 : 2;
            uint256 place = 8 + width * ((1 << row) - 1 + index - (uint256(p.index) << row));
            bytes32 left = tree[height][index * 2];
            bytes32 salted = keccak256(bytes.concat(bytes8(bytes.concat(hints)), left));
            bool hinted = true;
            for (uint256 k = 0; k < width; ++k) {
                hinted = hinted && hints[place + k] == salted[k];
            }
            bool alone = (index * 2 + 1) << height >= p.count;
            index = index * 2 + (hinted && !alone ? 1 : 0);
        }
    }

    function _wayTo(bytes32[][] memory tree, Position memory p, uint32 child, bytes memory hints)
        private
        pure
        returns (Way memory way)
    {
        uint256 index = (uint256(p.index) << p.guided) + child;
        (way.child, way.hints, way.siblings) = (child, hints, new bytes32[](p.guided));
        way.node = tree[p.height - p.guided][index];
        for (uint256 level = 0; level < p.guided; ++level) {
            way.siblings[level] = tree[p.height - p.guided + level][(index >> level) ^ 1];
        }
    }

    function testFuzz_rowsHashUpAndNothingElseDoes(uint256 seed) public view {
        uint256 count = seed % 40 + 1;
        (bytes32[] memory items, bytes32[][] memory tree) = _list(count);
        Position memory p;
        (p.subject, p.count) = (Subject.Trace, uint64(count));
        p.height = uint8(seed / 40 % tree.length);
        p.levels = p.height == 0 ? 0 : uint8(1 + seed / 1024 % p.height);
        p.index = uint64(seed / 4096 % (((count - 1) >> p.height) + 1));
        p.node = tree[p.height][p.index];
        bytes memory row = _row(p, items, tree);
        assertEq(this.nodeOver(p, row), p.node);

        // Any byte of it changed, even of a node that stands over padding alone.
        row[seed / 1_000_000 % row.length] ^= 0x01;
        assertTrue(this.nodeOver(p, row) != p.node);
        assertEq(this.nodeOver(p, bytes.concat(row, new bytes(32))), 0);
    }

    /// @dev A tree whose padding is not what it should be differs from everybody's, and could be shown to differ in
    /// nothing: its rows are no answer, though they hash up.
    function test_paddingIsChecked() public view {
        (bytes32[] memory items, bytes32[][] memory tree) = _list(5);
        // Height 1: three nodes have a leaf under them, the fourth has none.
        bytes memory row = abi.encodePacked(tree[1][0], tree[1][1], tree[1][2], keccak256("garbage"));
        bytes32 right = keccak256(bytes.concat(hex"01", tree[1][2], keccak256("garbage")));
        bytes32 root = keccak256(bytes.concat(hex"01", tree[2][0], right));
        assertEq(items.length, 5);
        assertEq(this.nodeOver(Position(Subject.Trace, 2, 0, 3, 0, 5, root, 0, 0), row), 0);
        row = abi.encodePacked(tree[1][0], tree[1][1], tree[1][2], Merkle.empty(1));
        assertEq(this.nodeOver(Position(Subject.Trace, 2, 0, 3, 0, 5, root, 0, 0), row), tree[3][0]);
    }

    function _list(uint256 count) private pure returns (bytes32[] memory items, bytes32[][] memory tree) {
        items = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            items[i] = keccak256(abi.encode(i));
        }
        tree = SlowTree.ofDigests(items);
    }

    function _row(Position memory p, bytes32[] memory items, bytes32[][] memory tree)
        private
        pure
        returns (bytes memory row)
    {
        uint256 first = uint256(p.index) << p.levels;
        bool bottom = p.levels == p.height;
        for (uint256 i = first; i < first + (1 << p.levels) && (!bottom || i < p.count); ++i) {
            row = bytes.concat(row, bottom ? items[i] : tree[p.height - p.levels][i]);
        }
    }
}
