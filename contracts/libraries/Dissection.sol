// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Pick, Position, Subject} from "../types/Challenge.sol";
import {Merkle} from "./Merkle.sol";

/// @title Walking down a committed tree, some levels at a time
/// @notice Trees are those of C-2 and C-4. The one who is asked gives all descendants of a node that lie `levels` below it, and they hash
/// up to the node or count for nothing; the one who asks goes on from one of them.
library Dissection {
    /// @dev At most 256 nodes at a time: `tests/contracts/ChallengeGas.t.sol` measures 16 to 256, of which 32 to 256 cost the same. With 10 levels
    /// allowed it gave 2.66 million for the largest game by 512 or 1,024, a million more than by 64, for 7 answers in place of 9.
    uint256 internal constant MAX_LEVELS = 8;
    /// @dev At most 8 leaves, 2 KiB, at a time.
    uint256 internal constant MAX_LEAF_LEVELS = 3;

    /// @notice Whether so many levels can be asked for at this position.
    function canAsk(Position memory p) internal pure returns (bool) {
        (uint256 levels, uint256 height) = (p.levels, p.height);
        if (levels > height || levels > MAX_LEVELS || (levels == 0 && height > 0)) return false;
        return p.subject != Subject.Output || levels < height || levels <= MAX_LEAF_LEVELS;
    }

    /// @notice Whether the descendants asked for are the tree's last row: entries of a list, leaves of a tensor.
    function isBottom(Position memory p) internal pure returns (bool) {
        return p.levels == p.height;
    }

    /// @notice The node that `data` lies under: entries of a list (32 bytes each) or leaves of a tensor (256) in the last row, without
    /// padding; nodes elsewhere, all of them. Zero if it is not as long as asked for.
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

    /// @dev Whether the nodes under which there is no leaf are those of empty subtrees (C-2). Were they not, a tree could differ from
    /// everybody's in nothing that could be shown.
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
