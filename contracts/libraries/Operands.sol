// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../interfaces/IStepVerifier.sol";
import {Operator, TensorType, Window} from "../types/Types.sol";
import {Mantissas} from "./Mantissas.sol";
import {TensorTypes} from "./TensorTypes.sol";

/// @title What an operator may take for granted: its form, its attributes, its operands' elements
/// @notice `expect…` checks form, `attribute` and `shift` check ranges; both revert with `MalformedOperator`. `read` and
/// `run` find elements in the opened windows or revert with `MissingElement`.
library Operands {
    using TensorTypes for TensorType;

    /// @dev Longest row of a reduction (N-6).
    uint256 internal constant MAX_REDUCTION = 4096;
    /// @dev Coefficients are below this in magnitude (N-13, N-14, N-18, N-23).
    int256 internal constant COEFFICIENT = 1 << 40;

    /// @notice Reverts unless `condition`: the operator is not one that a checked program holds.
    function ensure(bool condition) internal pure {
        if (!condition) revert IStepVerifier.MalformedOperator();
    }

    /// @notice Requires so many operands and attributes, and valid types.
    function expectForm(Operator calldata operator, uint256 operands, uint256 attributes) internal pure {
        ensure(operator.operands.length == operands && operator.attributes.length == attributes);
        ensure(operator.output.isValid());
        for (uint256 i = 0; i < operands; ++i) {
            ensure(operator.operands[i].tensorType.isValid());
        }
    }

    /// @notice Type of operand `i`. After `expectForm`.
    function typeOf(Operator calldata operator, uint256 i) internal pure returns (TensorType) {
        return operator.operands[i].tensorType;
    }

    /// @notice Attribute `i`, required to lie in `[low, high]`. After `expectForm`.
    function attribute(Operator calldata operator, uint256 i, int256 low, int256 high)
        internal
        pure
        returns (int256 value)
    {
        value = operator.attributes[i];
        ensure(low <= value && value <= high);
    }

    /// @notice Attribute `i` as a shift, −63 to 63 (N-2). After `expectForm`.
    function shift(Operator calldata operator, uint256 i) internal pure returns (int256) {
        return attribute(operator, i, -63, 63);
    }

    /// @notice Attribute `i` as a coefficient, below 2^40 in magnitude. After `expectForm`.
    function coefficient(Operator calldata operator, uint256 i) internal pure returns (int256) {
        return attribute(operator, i, 1 - COEFFICIENT, COEFFICIENT - 1);
    }

    /// @notice Mantissa of element `element` of operand `operand`.
    function read(Operator calldata operator, Window[][] calldata windows, uint256 operand, uint256 element)
        internal
        pure
        returns (int256)
    {
        return Mantissas.load(run(operator, windows, operand, element, 1), typeOf(operator, operand).width());
    }

    /// @notice Position in calldata of `count` consecutive elements from `element`, which one window holds whole.
    function run(
        Operator calldata operator,
        Window[][] calldata windows,
        uint256 operand,
        uint256 element,
        uint256 count
    ) internal pure returns (uint256) {
        TensorType tensorType = typeOf(operator, operand);
        // INVARIANT: padding is never read as an element.
        ensure(element + count <= tensorType.elements());
        uint256 width = tensorType.width();
        uint256 from = element * width;
        uint256 end = from + count * width;
        if (operand < windows.length) {
            Window[] calldata opened = windows[operand];
            for (uint256 i = 0; i < opened.length; ++i) {
                uint256 first = opened[i].firstByte;
                bytes calldata data = opened[i].data;
                if (first <= from && end <= first + data.length) {
                    uint256 position;
                    // SAFETY: calldata slices carry their offset; the run lies within the slice's length.
                    assembly ("memory-safe") {
                        position := add(data.offset, sub(from, first))
                    }
                    return position;
                }
            }
        }
        // SAFETY: a valid type has at most 2^37 elements.
        revert IStepVerifier.MissingElement(operand, uint64(element));
    }
}
