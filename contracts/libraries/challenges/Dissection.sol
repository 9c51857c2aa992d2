// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {FixedPointMathLib} from "solady/utils/FixedPointMathLib.sol";

import {Pick, Position, Subject, Way} from "../../types/Challenge.sol";
import {Merkle} from "../proofs/Merkle.sol";

/// @title Walking down a committed tree, some levels at a time
/// @notice Trees are those of C-2 and C-4. The one who is asked gives all descendants of a node that lie `levels` below
/// it, and they hash up to the node or count for nothing; the one who asks goes on from one of them.
///
/// Who asks may add hints of what it would find itself: the first bits of each left node's salted hash, row after row.
/// They lead to one node of the tree that is asked about, whichever it is: at each node to the left where the left one
/// is not what the hint says, or nothing lies right, and else to the right. So a tree that is not the asker's is left
/// at its first difference, for a fraction of the calldata that the nodes themselves take. Hints prove nothing and
/// bind nobody.
///
/// They are short, 16 bits of up to 10 levels, for a tree whose root is known: the salt is chosen after it, so that no
/// wrong node can have been made to pass for a right one; where one does by chance, the siblings of the answer show it,
/// and one asks once more, with another salt. They are long, 64 bits of up to 8 levels, for a tree whose root comes
/// with the answer, which is made by who has seen them.
library Dissection {
    /// @dev At most 256 nodes at a time: `tests/contracts/core/challenges/ChallengeGas.t.sol` measures 16 to 256, of
    /// which 32 to 256 cost the same.
    uint256 internal constant MAX_LEVELS = 8;
    /// @dev At most 8 leaves, 2 KiB, at a time.
    uint256 internal constant MAX_LEAF_LEVELS = 3;
    /// @dev At most 10 levels by short hints and 8 by long ones: 2 KiB.
    uint256 internal constant MAX_GUIDED = 10;
    /// @dev Bytes of the salt, with which hints begin, and of a hint.
    uint256 private constant SALT = 8;
    uint256 private constant SHORT = 2;
    uint256 private constant LONG = 8;

    /// @notice Whether so many levels can be asked for at this position.
    function canAsk(Position memory p) internal pure returns (bool) {
        if (p.guided > p.height) return false;
        (uint256 levels, uint256 height) = (p.levels, p.height - p.guided);
        if (levels > height || levels > MAX_LEVELS || (levels == 0 && height > 0)) return false;
        return p.subject != Subject.Output || levels < height || levels <= MAX_LEAF_LEVELS;
    }

    /// @notice Levels that `hints` lead down; 0 without any.
    function levelsOf(bytes calldata hints) internal pure returns (bool formed, uint8 levels) {
        if (hints.length == 0) return (true, 0);
        unchecked {
            // SALT + hint · (2^levels − 1) bytes: six more than a power of two, or one, for a salt is as long as a long
            // hint. A shorter length becomes a huge number.
            uint256 hint = _hintOf(hints);
            uint256 power = hints.length - (SALT - hint);
            formed = power > hint && power <= SHORT << MAX_GUIDED && power & (power - 1) == 0;
            // SAFETY: at most 10 where it counts.
            // forge-lint: disable-next-line(unsafe-typecast)
            if (formed) levels = uint8(FixedPointMathLib.log2(power / hint));
        }
    }

    /// @dev Bytes of a hint. No length is one of both kinds.
    function _hintOf(bytes calldata hints) private pure returns (uint256) {
        return hints.length & (hints.length - 1) == 0 ? LONG : SHORT;
    }

    /// @notice Takes the position, of which the node is known, to where its hints lead; false if that is not `way`.
    /// @dev Of every tree and any hints there is one way (P-22), and it ends above a leaf.
    function follow(Position memory p, Way calldata way) internal pure returns (bool) {
        uint256 guided = p.guided;
        // INVARIANT: an answer has nothing that is not looked at.
        if (way.siblings.length != guided) return false;
        if (guided == 0) return way.hints.length == 0;
        if (keccak256(way.hints) != p.hints || way.child >= 1 << guided) return false;
        // INVARIANT of positions: at most so high, and at most so many levels guided, which `canAsk` has checked;
        // indices have 64 bits.
        unchecked {
            (uint256 height, uint256 index) = (p.height - guided, (uint256(p.index) << guided) + way.child);
            // INVARIANT of positions: there is a leaf below each.
            if (index << height >= p.count) return false;
            if (!_leads(way, index, height, p)) return false;
            // SAFETY: an index below the count, which has 64 bits; a height that is less than before.
            // forge-lint: disable-next-line(unsafe-typecast)
            (p.index, p.height) = (uint64(index), uint8(height));
        }
        (p.node, p.guided, p.hints) = (way.node, 0, 0);
        return true;
    }

    /// @dev Whether the way up from node `index` at `height` is the one that hints lead down, and ends in the
    /// position's node.
    function _leads(Way calldata way, uint256 index, uint256 height, Position memory p) private pure returns (bool) {
        (bytes calldata hints, bytes32 node, uint256 row) = (way.hints, way.node, 1 << p.guided);
        for (uint256 level = 0; level < p.guided; ++level) {
            bytes32 sibling = way.siblings[level];
            unchecked {
                row >>= 1;
                // Hints are counted from the top row on: there are `row − 1` above this one.
                uint256 hint = row - 1 + ((index & (2 * row - 1)) >> 1);
                if (index & 1 == 1) {
                    if (!_isHinted(hints, hint, sibling)) return false;
                    node = Merkle.join(sibling, node);
                } else {
                    bool alone = (index + 1) << height >= p.count;
                    if (alone ? sibling != Merkle.empty(height) : _isHinted(hints, hint, node)) return false;
                    node = Merkle.join(node, sibling);
                }
                (index, height) = (index >> 1, height + 1);
            }
        }
        return node == p.node;
    }

    /// @dev Whether a node is what hint `number` says: the first bits of `H(salt ‖ node)`.
    function _isHinted(bytes calldata hints, uint256 number, bytes32 node) private pure returns (bool hinted) {
        uint256 hint = _hintOf(hints);
        uint256 place = SALT + hint * number;
        uint256 rest = 256 - 8 * hint;
        // SAFETY: reads hints up to the last, and uses memory beyond the free pointer, which it leaves free.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore(p, calldataload(hints.offset))
            mstore(add(p, 8), node)
            hinted := eq(shr(rest, keccak256(p, 40)), shr(rest, calldataload(add(hints.offset, place))))
        }
    }

    /// @notice Whether the descendants asked for are the tree's last row: entries of a list, leaves of a tensor.
    function isBottom(Position memory p) internal pure returns (bool) {
        return p.levels == p.height;
    }

    /// @notice The node that `data` lies under: entries of a list (32 bytes each) or leaves of a tensor (256) in the
    /// last row, without padding; nodes elsewhere, all of them. Zero if it is not as long as asked for.
    function nodeOver(Position memory p, bytes calldata data) internal pure returns (bytes32) {
        uint256 width = 1 << p.levels;
        if (!isBottom(p)) {
            if (data.length != width * 32) return bytes32(0);
            bytes32[] memory nodes = Merkle.nodesOf(data, width);
            return _isPadded(p, nodes) ? Merkle.fold(nodes) : bytes32(0);
        }

        // INVARIANT of positions: there is a leaf below each.
        uint256 there = uint256(p.count) - (uint256(p.index) << p.levels);
        if (there > width) there = width;
        if (p.subject == Subject.Output) {
            return data.length == there * 256 ? Merkle.fold(Merkle.leavesOf(data, width)) : bytes32(0);
        }
        return data.length == there * 32 ? Merkle.fold(Merkle.itemsOf(data, width)) : bytes32(0);
    }

    /// @notice Whether the position is the root of its tree.
    function isRoot(Position memory p) internal pure returns (bool) {
        return p.height == Merkle.depth(p.count);
    }

    /// @dev Whether the nodes under which there is no leaf are those of empty subtrees (C-2). Were they not, a tree
    /// could differ from everybody's in nothing that could be shown.
    function _isPadded(Position memory p, bytes32[] memory nodes) private pure returns (bool) {
        uint256 height = p.height - p.levels;
        // Nodes of the row that have a leaf under them.
        uint256 there = ((uint256(p.count) - 1) >> height) + 1 - (uint256(p.index) << p.levels);
        if (there >= nodes.length) return true;
        bytes32 empty = Merkle.empty(height);
        for (uint256 i = there; i < nodes.length; ++i) {
            if (nodes[i] != empty) return false;
        }
        return true;
    }

    /// @notice Whether `pick` is among what lies `p.levels` below `p.node`, and not padding.
    function holds(Position memory p, Pick calldata pick) internal pure returns (bool) {
        uint256 levels = p.levels;
        if (pick.child >= 1 << levels || pick.siblings.length != levels) return false;
        if (leafOf(p, pick) >= p.count) return false;
        bool entry = isBottom(p) && p.subject != Subject.Output;
        return Merkle.climb(entry ? Merkle.itemNode(pick.digest) : pick.digest, pick.child, pick.siblings) == p.node;
    }

    /// @notice The first leaf below what was picked.
    function leafOf(Position memory p, Pick calldata pick) internal pure returns (uint256) {
        return ((uint256(p.index) << p.levels) + pick.child) << (p.height - p.levels);
    }
}
