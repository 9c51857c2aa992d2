// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Merkle} from "../../../contracts/libraries/proofs/Merkle.sol";
import {LeafRange, TensorType} from "../../../contracts/types/Types.sol";
import {SlowTree} from "../verifier/SlowTree.sol";
import {TensorOpening} from "./ElementProof.sol";

/// @title Tensors of int8 as canonical bytes (C-1), their roots and their openings
abstract contract Int8Tensors {
    using SlowTree for bytes32[][];

    function _matrix(uint256 rows, uint256 columns) internal pure returns (TensorType) {
        return TensorType.wrap((8 << 248) | (2 << 224) | (rows << 96) | (columns << 64));
    }

    function _vector(uint256 length) internal pure returns (TensorType) {
        return TensorType.wrap((8 << 248) | (1 << 224) | (length << 96));
    }

    function _root(TensorType tensorType, bytes memory data) internal pure returns (bytes32) {
        return Merkle.tensorRoot(tensorType, SlowTree.ofLeaves(_leavesOf(data)).rootOf());
    }

    function _leavesOf(bytes memory data) internal pure returns (bytes[] memory leaves) {
        leaves = new bytes[](data.length / 256);
        for (uint256 i = 0; i < data.length; ++i) {
            if (i % 256 == 0) leaves[i / 256] = new bytes(256);
            leaves[i / 256][i % 256] = data[i];
        }
    }

    /// @dev Leaves `[first, first + count)`, without the tensor's place in its list.
    function _open(bytes memory data, uint256 first, uint256 count)
        internal
        pure
        returns (TensorOpening memory opening)
    {
        bytes[] memory leaves = _leavesOf(data);
        bytes32[][] memory tree = SlowTree.ofLeaves(leaves);
        bytes memory opened;
        for (uint256 i = first; i < first + count; ++i) {
            opened = bytes.concat(opened, leaves[i]);
        }
        opening.ranges = new LeafRange[](1);
        opening.ranges[0] =
            LeafRange({firstLeaf: uint32(first), leaves: opened, siblings: tree.rangePath(first, count)});
    }

    function _padded(uint256 length) internal pure returns (bytes memory) {
        return new bytes((length + 255) / 256 * 256);
    }

    function _put(bytes memory data, uint256 i, int256 value) internal pure {
        data[i] = bytes1(uint8(int8(value)));
    }

    function _get(bytes memory data, uint256 i) internal pure returns (int256) {
        return int8(uint8(data[i]));
    }

    function _relu(bytes memory a) internal pure returns (bytes memory data) {
        data = new bytes(a.length);
        for (uint256 i = 0; i < a.length; ++i) {
            if (_get(a, i) > 0) data[i] = a[i];
        }
    }
}
