// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Dissection} from "../../../contracts/libraries/Dissection.sol";
import {Pick, Position, Subject} from "../../../contracts/types/Challenge.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {SymbolicProofs} from "./SymbolicProofs.sol";

contract DissectionHarness {
    function nodeOver(Position memory p, bytes calldata data) external pure returns (bytes32) {
        return Dissection.nodeOver(p, data);
    }

    function holds(Position memory p, Pick calldata pick) external pure returns (bool) {
        return Dissection.holds(p, pick);
    }
}

/// @notice Rows of a list of up to four digests, asked for from its root: what is answered is the row, and what is picked is of it.
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
