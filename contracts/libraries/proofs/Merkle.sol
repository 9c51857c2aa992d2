// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {FixedPointMathLib} from "solady/utils/FixedPointMathLib.sol";

import {TensorType} from "../../types/Types.sol";

/// @title Trees of digests and of tensors
/// @notice Rules C-2 to C-4 of `agents/proof/SPEC.md`. The depth of a tree follows from a count that the caller has
/// from a commitment, never from the proof. Domain bytes keep tensor leaves (0), nodes (1), tensor roots (2) and list
/// leaves (3) apart. No function reverts on a bad proof; all return false.
library Merkle {
    uint256 private constant LEAF_BYTES = 256;

    /// @notice Least depth of a binary tree that holds `count` leaves; 0 for none and for one.
    function depth(uint256 count) internal pure returns (uint256) {
        return FixedPointMathLib.log2Up(count);
    }

    /// @notice `H(0x02 ‖ type word ‖ data root)`.
    function tensorRoot(TensorType tensorType, bytes32 dataRoot) internal pure returns (bytes32 root) {
        // SAFETY: uses memory beyond the free pointer and leaves it free.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore8(p, 2)
            mstore(add(p, 1), tensorType)
            mstore(add(p, 33), dataRoot)
            root := keccak256(p, 65)
        }
    }

    /// @notice Whether `digest` is entry `index` of the list of `count` digests that `root` commits to.
    /// @param siblings from the leaf up; exactly `depth(count)` of them.
    function isMember(bytes32 root, bytes32 digest, uint256 index, uint256 count, bytes32[] calldata siblings)
        internal
        pure
        returns (bool)
    {
        // INVARIANT: an index names one leaf, and padding is no entry.
        if (index >= count || siblings.length != depth(count)) return false;
        return climb(itemNode(digest), index, siblings) == root;
    }

    /// @notice Root of the list of `count` digests that has `digest` as entry `index`, and these siblings beside it.
    /// Not `placed` if no list has.
    /// @dev Parameters as of `isMember`, which does not ask this: a call more costs a tenth of what is hashed.
    function rootOver(bytes32 digest, uint256 index, uint256 count, bytes32[] calldata siblings)
        internal
        pure
        returns (bool placed, bytes32 root)
    {
        // INVARIANT: an index names one leaf, and padding is no entry.
        if (index >= count || siblings.length != depth(count)) return (false, 0);
        return (true, climb(itemNode(digest), index, siblings));
    }

    /// @notice `H(0x03 ‖ digest)`: the leaf of a list's tree.
    function itemNode(bytes32 digest) internal pure returns (bytes32 node) {
        // SAFETY: uses memory beyond the free pointer and leaves it free.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore8(p, 3)
            mstore(add(p, 1), digest)
            node := keccak256(p, 33)
        }
    }

    /// @notice `H(0x01 ‖ left ‖ right)`: the node over two.
    function join(bytes32 left, bytes32 right) internal pure returns (bytes32 node) {
        // SAFETY: uses memory beyond the free pointer and leaves it free.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore8(p, 1)
            mstore(add(p, 1), left)
            mstore(add(p, 33), right)
            node := keccak256(p, 65)
        }
    }

    /// @notice The node over `2^height` missing leaves (C-2).
    function empty(uint256 height) internal pure returns (bytes32 node) {
        // SAFETY: uses memory beyond the free pointer and leaves it free.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore8(p, 1)
            for {} height { height := sub(height, 1) } {
                mstore(add(p, 1), node)
                mstore(add(p, 33), node)
                node := keccak256(p, 65)
            }
        }
    }

    /// @notice The node that stands `siblings.length` above `node`, which is the `index`-th of those that lie under it.
    function climb(bytes32 node, uint256 index, bytes32[] calldata siblings) internal pure returns (bytes32 above) {
        above = node;
        // SAFETY: uses memory beyond the free pointer and leaves it free; `siblings` is walked to its length.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore8(p, 1)
            let left := add(p, 1)
            let next := siblings.offset
            for { let end := add(next, shl(5, siblings.length)) } lt(next, end) { next := add(next, 32) } {
                // The node goes right when its index is odd; its sibling takes the other place.
                let odd := shl(5, and(index, 1))
                mstore(add(left, odd), above)
                // An exclusive or is meant: the other of 0 and 32.
                // slither-disable-next-line incorrect-exp
                mstore(add(left, xor(odd, 32)), calldataload(next))
                above := keccak256(p, 65)
                index := shr(1, index)
            }
        }
    }

    /// @notice Whether `leaves` are the leaves `[first, first + leaves.length / 256)` of the tensor data
    /// under `dataRoot`.
    /// @param leafCount leaves of the tensor, from its type.
    /// @param siblings as C-3 orders them; all are used.
    function isRange(
        bytes32 dataRoot,
        uint256 leafCount,
        uint256 first,
        bytes calldata leaves,
        bytes32[] calldata siblings
    ) internal pure returns (bool) {
        (bool placed, bytes32 over) = dataRootOver(leafCount, first, leaves, siblings);
        return placed && over == dataRoot;
    }

    /// @notice Root of the tensor data that has such leaves, and these siblings beside them. Not `placed` if none has.
    /// @dev Parameters as of `isRange`.
    function dataRootOver(uint256 leafCount, uint256 first, bytes calldata leaves, bytes32[] calldata siblings)
        internal
        pure
        returns (bool placed, bytes32 root)
    {
        // INVARIANT: a range is not empty, is whole leaves, and ends within the tensor.
        if (leaves.length == 0 || leaves.length % LEAF_BYTES != 0) return (false, 0);
        uint256 count = leaves.length / LEAF_BYTES;
        if (first >= leafCount || count > leafCount - first) return (false, 0);
        bytes32[] memory nodes = leavesOf(leaves, count);
        placed = _climbAll(first, nodes, depth(leafCount), siblings);
        root = nodes[0];
    }

    /// @notice `H(0x00 ‖ leaf)` of every leaf of 256 bytes, the first of `slots` nodes of which the rest are zero.
    function leavesOf(bytes calldata leaves, uint256 slots) internal pure returns (bytes32[] memory nodes) {
        nodes = new bytes32[](slots);
        // SAFETY: writes the array just allocated, and memory beyond the free pointer that it leaves free. The caller
        // has checked that the length is a multiple of a leaf, and of no more leaves than slots.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore8(p, 0)
            let leaf := leaves.offset
            let end := add(leaf, leaves.length)
            for { let slot := add(nodes, 32) } lt(leaf, end) { slot := add(slot, 32) } {
                calldatacopy(add(p, 1), leaf, 256)
                mstore(slot, keccak256(p, 257))
                leaf := add(leaf, 256)
            }
        }
    }

    /// @notice `H(0x03 ‖ digest)` of every digest of 32 bytes, the first of `slots` nodes of which the rest are zero.
    function itemsOf(bytes calldata digests, uint256 slots) internal pure returns (bytes32[] memory nodes) {
        nodes = nodesOf(digests, slots);
        for (uint256 i = 0; i < digests.length / 32; ++i) {
            nodes[i] = itemNode(nodes[i]);
        }
    }

    /// @notice Nodes one after another in `data`, the first of `slots` of which the rest are zero; no more of them
    /// than slots.
    function nodesOf(bytes calldata data, uint256 slots) internal pure returns (bytes32[] memory nodes) {
        nodes = new bytes32[](slots);
        // SAFETY: writes the array just allocated; the caller has checked that the data are no longer.
        assembly ("memory-safe") {
            calldatacopy(add(nodes, 32), data.offset, data.length)
        }
    }

    /// @notice The node over `nodes`, a power of two of them. Uses them up.
    function fold(bytes32[] memory nodes) internal pure returns (bytes32) {
        bytes32[] calldata none;
        // SAFETY: an empty array, wherever it stands.
        assembly ("memory-safe") {
            none.offset := 0
            none.length := 0
        }
        _climbAll(0, nodes, depth(nodes.length), none);
        return nodes[0];
    }

    /// @dev Takes `nodes`, consecutive from node `first`, up `levels` levels, to `nodes[0]`: pairs
    /// `[left?] nodes [right?]` become parents, which overwrite the front of `nodes`, at each level, and the last one
    /// climbs on alone. The caller has seen to it that they all lie below one node there. False when siblings are
    /// missing or left over. Written by hand: of a proof this is what is done most often, and the checks of indices
    /// cost four times what is hashed.
    function _climbAll(uint256 first, bytes32[] memory nodes, uint256 levels, bytes32[] calldata siblings)
        private
        pure
        returns (bool matched)
    {
        // SAFETY: reads and writes `nodes` within its length, and memory beyond the free pointer that it leaves free;
        // reads siblings before their end. Parent i is written after its children 2i − odd and 2i + 1 − odd are read,
        // and 2i + 1 − odd >= i.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mstore8(p, 1)
            let start := add(nodes, 32)
            let end := add(start, shl(5, mload(nodes)))
            let next := siblings.offset
            let over := add(next, shl(5, siblings.length))
            matched := 1
            for {} gt(sub(end, start), 32) { levels := sub(levels, 1) } {
                let child := start
                let parent := start
                // The first node is a right one: its left neighbour is a sibling.
                if and(first, 1) {
                    matched := and(matched, lt(next, over))
                    mstore(add(p, 1), calldataload(next))
                    mstore(add(p, 33), mload(child))
                    next := add(next, 32)
                    child := add(child, 32)
                    mstore(parent, keccak256(p, 65))
                    parent := add(parent, 32)
                }
                for {} lt(add(child, 32), end) { child := add(child, 64) } {
                    mcopy(add(p, 1), child, 64)
                    mstore(parent, keccak256(p, 65))
                    parent := add(parent, 32)
                }
                // The last node is a left one.
                if lt(child, end) {
                    matched := and(matched, lt(next, over))
                    mstore(add(p, 1), mload(child))
                    mstore(add(p, 33), calldataload(next))
                    next := add(next, 32)
                    mstore(parent, keccak256(p, 65))
                    parent := add(parent, 32)
                }
                end := parent
                first := shr(1, first)
            }
            // One node takes one sibling a level.
            matched := and(matched, eq(sub(over, next), shl(5, levels)))
            siblings.offset := next
            siblings.length := levels
        }
        if (matched && siblings.length > 0) nodes[0] = climb(nodes[0], first, siblings);
    }
}
