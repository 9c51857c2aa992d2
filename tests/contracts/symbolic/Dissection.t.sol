// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Dissection} from "../../../contracts/libraries/challenges/Dissection.sol";
import {Merkle} from "../../../contracts/libraries/proofs/Merkle.sol";
import {Pick, Position, Subject, Way} from "../../../contracts/types/Challenge.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {SymbolicProofs} from "./SymbolicProofs.sol";

contract DissectionHarness {
    function nodeOver(Position memory p, bytes calldata data) external pure returns (bytes32) {
        return Dissection.nodeOver(p, data);
    }

    function holds(Position memory p, Pick calldata pick) external pure returns (bool) {
        return Dissection.holds(p, pick);
    }

    function follow(Position memory p, Way calldata way) external pure returns (bool) {
        return Dissection.follow(p, way);
    }
}

/// @notice Rows of a list of up to four digests, asked for from its root: what is answered is the row, and what is
/// picked is of it. Hints, of one level or two, lead one way.
/// @dev Proven for a hash without collisions, of which nothing else is known.
contract DissectionSymbolic is SymbolicProofs {
    using SlowTree for bytes32[][];

    DissectionHarness private dissection = new DissectionHarness();

    function check_answersAreTheRow(uint8 count, uint8 levels, bytes32[8] memory entries, bytes32[4] memory row)
        public
        view
    {
        for (uint256 c = 1; c <= 4; ++c) {
            for (uint256 l = 0; l <= 2; ++l) {
                if (c == count && l == levels) _answersAreTheRow(c, l, entries, row);
            }
        }
    }

    function _answersAreTheRow(uint256 count, uint256 levels, bytes32[8] memory entries, bytes32[4] memory row)
        private
        view
    {
        bytes32[][] memory tree = SlowTree.ofDigests(_first(entries, count));
        if (levels >= tree.length) return;
        Position memory p = _root(tree, count, levels);
        bytes32[] memory expected = _row(tree, p, entries);
        bytes memory data;
        for (uint256 i = 0; i < expected.length; ++i) {
            data = bytes.concat(data, row[i]);
        }
        if (dissection.nodeOver(p, data) != p.node) return;
        for (uint256 i = 0; i < expected.length; ++i) {
            assert(row[i] == expected[i]);
        }
    }

    function testFuzz_answersAreTheRow(uint8 count, uint8 levels, bytes32[8] memory entries) public view {
        (count, levels) = (1 + count % 4, levels % 3);
        bytes32[][] memory tree = SlowTree.ofDigests(_first(entries, count));
        if (levels >= tree.length) return;
        Position memory p = _root(tree, count, levels);
        bytes32[] memory row = _row(tree, p, entries);
        bytes32[4] memory given;
        bytes memory data;
        for (uint256 i = 0; i < row.length; ++i) {
            given[i] = row[i];
            data = bytes.concat(data, row[i]);
        }
        assertEq(dissection.nodeOver(p, data), p.node);
        check_answersAreTheRow(count, levels, entries, given);
    }

    function check_picksAreOfTheRow(
        uint8 count,
        uint8 levels,
        uint8 child,
        bytes32[8] memory entries,
        bytes32 digest,
        bytes32[3] memory siblings
    ) public view {
        for (uint256 c = 1; c <= 4; ++c) {
            for (uint256 l = 0; l <= 2; ++l) {
                if (c == count && l == levels) _picksAreOfTheRow(c, l, child, entries, digest, siblings);
            }
        }
    }

    function _picksAreOfTheRow(
        uint256 count,
        uint256 levels,
        uint256 child,
        bytes32[8] memory entries,
        bytes32 digest,
        bytes32[3] memory siblings
    ) private view {
        bytes32[][] memory tree = SlowTree.ofDigests(_first(entries, count));
        if (levels >= tree.length) return;
        Position memory p = _root(tree, count, levels);
        bytes32[] memory row = _row(tree, p, entries);
        // One beyond the row, too.
        for (uint256 k = 0; k <= 1 << levels; ++k) {
            if (k != child) continue;
            if (!dissection.holds(p, Pick({child: uint32(k), digest: digest, siblings: _first(siblings, levels)}))) {
                continue;
            }
            assert(k < 1 << levels && k << (p.height - levels) < count && digest == row[k]);
        }
    }

    function testFuzz_picksAreOfTheRow(uint8 count, uint8 child, bytes32[8] memory entries) public view {
        count = 1 + count % 4;
        child = child % count;
        bytes32[][] memory tree = SlowTree.ofDigests(_first(entries, count));
        uint256 depth = tree.length - 1;
        bytes32[] memory path = tree.path(child);
        bytes32[3] memory siblings;
        for (uint256 i = 0; i < depth; ++i) {
            siblings[i] = path[i];
        }
        Pick memory pick = Pick({child: child, digest: entries[child], siblings: path});
        assertTrue(dissection.holds(_root(tree, count, depth), pick));
        check_picksAreOfTheRow(count, uint8(depth), child, entries, entries[child], siblings);
    }

    /// @dev Hints of any kind, and any way: it is taken if it is the one that the rule gives, gone from the top, and no
    /// other is.
    function check_hintsLeadOneWay(
        uint8 count,
        uint8 guided,
        bool long,
        bytes32[8] memory entries,
        bytes8[4] memory hints,
        uint32 child,
        bytes32 node,
        bytes32[3] memory siblings
    ) public view {
        for (uint256 c = 2; c <= 4; ++c) {
            for (uint256 g = 1; g <= 2 && g <= Merkle.depth(c); ++g) {
                if (c != count || g != guided) continue;
                bytes32[][] memory tree = SlowTree.ofDigests(_first(entries, c));
                Position memory p = _root(tree, c, 0);
                p.guided = uint8(g);
                Way memory right = _wayOf(tree, p, hints, long);
                p.hints = keccak256(right.hints);
                assert(dissection.follow(p, right));
                Way memory way = Way(child, node, _first(siblings, g), right.hints);
                _isTheOnlyWay(p, right, way);
            }
        }
    }

    function _isTheOnlyWay(Position memory p, Way memory right, Way memory way) private view {
        uint256 child = way.child;
        // One beyond what lies there, too.
        for (uint256 k = 0; k <= 1 << p.guided; ++k) {
            if (k != child) continue;
            way.child = uint32(k);
            if (!dissection.follow(p, way)) continue;
            assert(k == right.child && way.node == right.node);
            for (uint256 i = 0; i < way.siblings.length; ++i) {
                assert(way.siblings[i] == right.siblings[i]);
            }
        }
    }

    /// @dev A salt, and a hint for each left node.
    function _hints(bytes8[4] memory words, uint256 guided, bool long) private pure returns (bytes memory hints) {
        hints = bytes.concat(words[0]);
        for (uint256 i = 1; i < 1 << guided; ++i) {
            hints = long ? bytes.concat(hints, words[i]) : bytes.concat(hints, bytes2(words[i]));
        }
    }

    /// @dev The way that hints lead, gone from the top.
    function _wayOf(bytes32[][] memory tree, Position memory p, bytes8[4] memory hints, bool long)
        private
        pure
        returns (Way memory way)
    {
        uint256 index = 0;
        (way.hints, way.siblings) = (_hints(hints, p.guided, long), new bytes32[](p.guided));
        for (uint256 row = 0; row < p.guided; ++row) {
            uint256 height = p.height - row - 1;
            bytes8 salted = bytes8(keccak256(bytes.concat(hints[0], tree[height][2 * index])));
            bytes8 hint = hints[(1 << row) + index];
            bool hinted = long ? hint == salted : bytes2(hint) == bytes2(salted);
            bool alone = (2 * index + 1) << height >= p.count;
            index *= 2;
            if (hinted && !alone) ++index;
            way.siblings[p.guided - row - 1] = tree[height][index ^ 1];
            (way.child, way.node) = (uint32(index), tree[height][index]);
        }
    }

    function testFuzz_hintsLeadOneWay(
        uint8 count,
        uint8 guided,
        bool long,
        bytes32[8] memory entries,
        bytes8[4] memory hints,
        uint256 seed
    ) public view {
        (count, guided) = (2 + count % 3, 1 + guided % 2);
        bytes32[][] memory tree = SlowTree.ofDigests(_first(entries, count));
        if (guided >= tree.length) return;
        // Some hints are of what is there, and some ways the right one.
        bytes8 salt = hints[0];
        if (seed & 1 == 1) hints[1] = bytes8(keccak256(bytes.concat(salt, tree[tree.length - 2][0])));
        if (seed & 2 == 2 && guided == 2) hints[3] = bytes8(keccak256(bytes.concat(salt, tree[0][2])));
        Position memory p = _root(tree, count, 0);
        p.guided = guided;
        Way memory way = _wayOf(tree, p, hints, long);
        bytes32[3] memory siblings;
        for (uint256 i = 0; i < guided; ++i) {
            siblings[i] = way.siblings[i];
        }
        if (seed & 4 == 4) way.child ^= 1;
        if (seed & 8 == 8) siblings[0] = way.node;
        check_hintsLeadOneWay(count, guided, long, entries, hints, way.child, way.node, siblings);
    }

    function _root(bytes32[][] memory tree, uint256 count, uint256 levels) private pure returns (Position memory p) {
        (p.subject, p.levels, p.height) = (Subject.Trace, uint8(levels), uint8(tree.length - 1));
        (p.count, p.node) = (uint64(count), tree.rootOf());
    }

    /// @dev Entries without padding in the last row, nodes elsewhere.
    function _row(bytes32[][] memory tree, Position memory p, bytes32[8] memory entries)
        private
        pure
        returns (bytes32[] memory)
    {
        return p.levels == p.height ? _first(entries, p.count) : tree[p.height - p.levels];
    }
}
