// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";

import {Dissection} from "../../contracts/libraries/Dissection.sol";
import {Merkle} from "../../contracts/libraries/Merkle.sol";
import {Position, Subject} from "../../contracts/types/Challenge.sol";
import {SlowTree} from "./verifier/SlowTree.sol";

/// @dev Rows of lists of any length against a tree built whole.
contract DissectionTest is Test {
    using SlowTree for bytes32[][];

    function nodeOver(Position memory p, bytes calldata data) external pure returns (bytes32) {
        return Dissection.nodeOver(p, data);
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

    /// @dev A tree whose padding is not what it should be differs from everybody's, and could be shown to differ in nothing: its rows
    /// are no answer, though they hash up.
    function test_paddingIsChecked() public view {
        (bytes32[] memory items, bytes32[][] memory tree) = _list(5);
        // Height 1: three nodes have a leaf under them, the fourth has none.
        bytes memory row = abi.encodePacked(tree[1][0], tree[1][1], tree[1][2], keccak256("garbage"));
        bytes32 right = keccak256(bytes.concat(hex"01", tree[1][2], keccak256("garbage")));
        bytes32 root = keccak256(bytes.concat(hex"01", tree[2][0], right));
        assertEq(items.length, 5);
        assertEq(this.nodeOver(Position(Subject.Trace, 2, 3, 0, 5, root, 0), row), 0);
        row = abi.encodePacked(tree[1][0], tree[1][1], tree[1][2], Merkle.empty(1));
        assertEq(this.nodeOver(Position(Subject.Trace, 2, 3, 0, 5, root, 0), row), tree[3][0]);
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
