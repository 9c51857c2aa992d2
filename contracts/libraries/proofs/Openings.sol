// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IDisputes} from "../../interfaces/IDisputes.sol";
import {OpenedRange, OpenedTensor} from "../../types/ElementProof.sol";
import {TensorType, Window} from "../../types/Types.sol";
import {Mantissas} from "../encoding/Mantissas.sol";
import {Reader} from "../encoding/Reader.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Merkle} from "./Merkle.sol";

/// @title Opened parts of tensors
/// @notice Rules C-1 to C-3 of `agents/proof/SPEC.md`: bytes, and the data root that commits to them.
library Openings {
    using TensorTypes for TensorType;

    /// @dev Stands for the output where an error names an operand.
    uint256 internal constant OUTPUT = type(uint256).max;

    /// @notice Data root of a tensor of which a range at least is opened; all ranges lead to it. `operand` is what an
    /// error names.
    function dataRootOf(OpenedTensor memory opened, TensorType tensorType, uint256 operand)
        internal
        pure
        returns (bytes32 dataRoot)
    {
        uint256 leafCount = tensorType.leafCount();
        for (uint256 i = 0; i < opened.ranges.length; ++i) {
            OpenedRange memory range = opened.ranges[i];
            (bool placed, bytes32 root) = Merkle.dataRootOver(
                leafCount, range.firstLeaf, Reader.toBytes(range.leaves), Reader.toWords(range.siblings)
            );
            if (i == 0) dataRoot = root;
            // INVARIANT: bytes count only where the worker committed to them, all of them as one tensor (P-14).
            if (!placed || root != dataRoot) revert IDisputes.WrongOpening(operand, i);
        }
    }

    /// @notice Mantissa `element` as the only range of `opened` holds it, unclamped: it may be one that its
    /// type forbids.
    /// @param tensorType checked to be valid.
    /// @param element below the tensor's capacity, padding included.
    function mantissaOf(OpenedTensor memory opened, TensorType tensorType, uint256 element)
        internal
        pure
        returns (int256)
    {
        OpenedRange memory range = opened.ranges[0];
        uint256 width = tensorType.width();
        (uint256 position, uint256 start) = (element * width, uint256(range.firstLeaf) * TensorTypes.LEAF_BYTES);
        bytes calldata leaves = Reader.toBytes(range.leaves);
        // INVARIANT: the element lies in the leaves. It cannot straddle two: widths divide a leaf.
        if (position < start || position >= start + leaves.length) revert IDisputes.WrongOpening(OUTPUT, 0);
        uint256 base;
        // SAFETY: reads no memory; the offset of a calldata slice.
        assembly ("memory-safe") {
            base := leaves.offset
        }
        return Mantissas.load(base + position - start, width);
    }

    /// @notice The opened ranges as `IStepVerifier` reads them.
    function windowsOf(OpenedTensor memory opened) internal pure returns (Window[] memory windows) {
        windows = new Window[](opened.ranges.length);
        for (uint256 i = 0; i < windows.length; ++i) {
            OpenedRange memory range = opened.ranges[i];
            // SAFETY: 2^32 leaves of 2^8 bytes.
            // forge-lint: disable-next-line(unsafe-typecast)
            windows[i].firstByte = uint64(range.firstLeaf * TensorTypes.LEAF_BYTES);
            windows[i].data = Reader.toBytes(range.leaves);
        }
    }
}
