// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IDisputes} from "../interfaces/IDisputes.sol";
import {LeafRange, TensorOpening, TensorType, Window} from "../types/Types.sol";
import {Mantissas} from "./Mantissas.sol";
import {Merkle} from "./Merkle.sol";
import {TensorTypes} from "./TensorTypes.sol";

/// @title Opened parts of tensors
/// @notice Rules C-1 to C-3 of `agents/proof/SPEC.md`: bytes that a data root commits to.
library Openings {
    using TensorTypes for TensorType;

    /// @dev Stands for the output where an error names an operand.
    uint256 internal constant OUTPUT = type(uint256).max;

    /// @notice Mantissa `element` as the only range of `opening` holds it, unclamped: it may be one that its type forbids.
    /// @param tensorType checked to be valid.
    /// @param element below the tensor's capacity, padding included.
    function mantissaOf(TensorOpening calldata opening, TensorType tensorType, uint256 element)
        internal
        pure
        returns (int256)
    {
        // INVARIANT: the opening has nothing that is not looked at.
        if (opening.ranges.length != 1) revert IDisputes.WrongOpening(OUTPUT, opening.ranges.length);
        LeafRange calldata range = opening.ranges[0];
        _checkRange(opening, tensorType, OUTPUT, 0);

        uint256 width = tensorType.width();
        (uint256 position, uint256 start) = (element * width, uint256(range.firstLeaf) * TensorTypes.LEAF_BYTES);
        bytes calldata leaves = range.leaves;
        // INVARIANT: the element lies in the leaves. It cannot straddle two: widths divide a leaf.
        if (position < start || position >= start + leaves.length) revert IDisputes.WrongOpening(OUTPUT, 0);
        uint256 base;
        // SAFETY: reads no memory; the offset of a calldata slice.
        assembly ("memory-safe") {
            base := leaves.offset
        }
        return Mantissas.load(base + position - start, width);
    }

    /// @notice The opened ranges as `IStepVerifier` reads them, each checked against the data root.
    function windowsOf(TensorOpening calldata opening, TensorType tensorType, uint256 operand)
        internal
        pure
        returns (Window[] memory windows)
    {
        windows = new Window[](opening.ranges.length);
        for (uint256 i = 0; i < windows.length; ++i) {
            LeafRange calldata range = opening.ranges[i];
            _checkRange(opening, tensorType, operand, i);
            // SAFETY: 2^32 leaves of 2^8 bytes.
            // forge-lint: disable-next-line(unsafe-typecast)
            windows[i].firstByte = uint64(range.firstLeaf * TensorTypes.LEAF_BYTES);
            windows[i].data = range.leaves;
        }
    }

    function _checkRange(TensorOpening calldata opening, TensorType tensorType, uint256 operand, uint256 index)
        private
        pure
    {
        LeafRange calldata range = opening.ranges[index];
        bool opened =
            Merkle.isRange(opening.dataRoot, tensorType.leafCount(), range.firstLeaf, range.leaves, range.siblings);
        // INVARIANT: bytes count only where the worker committed to them (P-14).
        if (!opened) revert IDisputes.WrongOpening(operand, index);
    }
}
