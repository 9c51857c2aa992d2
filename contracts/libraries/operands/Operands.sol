// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../interfaces/IStepVerifier.sol";
import {Operator, TensorType, Window} from "../../types/Types.sol";
import {Mantissas} from "../encoding/Mantissas.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";

/// @title What an operator may take for granted: its form, its attributes, its operands' elements
/// @notice `expect…` checks form, `attribute` and `shift` check ranges; both revert with `MalformedOperator`. `read`
/// and `run` find elements in the opened windows or revert with `MissingElement`.
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

    /// @notice Requires so many operands and attributes, and valid types of the operands. `StepVerifier` has checked
    /// the output's.
    function expectForm(Operator calldata operator, uint256 operands, uint256 attributes) internal pure {
        ensure(operator.operands.length == operands && operator.attributes.length == attributes);
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

    /// @notice Attribute 0 as the number of heads that make a row of `row` elements, and the elements of one.
    /// After `expectForm`.
    function heads(Operator calldata operator, uint256 row) internal pure returns (uint256 count, uint256 width) {
        // SAFETY of the casts: a dimension is below 2^32, the attribute at least 1.
        // forge-lint: disable-next-line(unsafe-typecast)
        count = uint256(attribute(operator, 0, 1, int256(row)));
        width = row / count;
        // INVARIANT: heads are whole.
        ensure(count * width == row);
    }

    /// @notice Elements of operand `i` that belong to each of `rows` rows, as many as a reduction takes.
    /// After `expectForm`.
    function perRow(Operator calldata operator, uint256 i, uint256 rows) internal pure returns (uint256 count) {
        uint256 elements = typeOf(operator, i).elements();
        count = elements / rows;
        // INVARIANT: every row has as many, and at least one.
        ensure(count != 0 && count <= MAX_REDUCTION && count * rows == elements);
    }

    /// @notice Mantissa of element `element` of operand `operand`, whose type is `t`.
    function read(Window[][] calldata windows, uint256 operand, TensorType t, uint256 element)
        internal
        pure
        returns (int256)
    {
        return Mantissas.load(run(windows, operand, t, element, 1), t.width());
    }

    /// @notice Position in calldata of `count` consecutive elements from `element`, which one window holds whole.
    function run(Window[][] calldata windows, uint256 operand, TensorType t, uint256 element, uint256 count)
        internal
        pure
        returns (uint256)
    {
        // INVARIANT: padding is never read as an element.
        ensure(element + count <= t.elements());
        uint256 width = t.width();
        // SAFETY: below 2^40, by the largest number of elements.
        unchecked {
            (bool found, uint256 position) = _find(windows, operand, element * width, (element + count) * width);
            if (found) return position;
        }
        // SAFETY of the cast: a valid type has at most 2^37 elements.
        // forge-lint: disable-next-line(unsafe-typecast)
        revert IStepVerifier.MissingElement(operand, uint64(element));
    }

    /// @dev Position in calldata of bytes `[from, end)` of an operand.
    function _find(Window[][] calldata windows, uint256 operand, uint256 from, uint256 end)
        private
        pure
        returns (bool, uint256 position)
    {
        if (operand >= windows.length) return (false, 0);
        Window[] calldata opened = windows[operand];
        for (uint256 i = 0; i < opened.length; ++i) {
            bool found;
            (found, position) = within(opened[i], from, end);
            if (found) return (true, position);
        }
        return (false, 0);
    }

    /// @notice Whether a window holds bytes `[from, end)` of its operand, and their position in calldata.
    function within(Window calldata opened, uint256 from, uint256 end) internal pure returns (bool, uint256 position) {
        uint256 first = opened.firstByte;
        bytes calldata data = opened.data;
        if (from < first || first + data.length < end) return (false, 0);
        // SAFETY: a slice of calldata carries its offset, and the run lies within the slice.
        assembly ("memory-safe") {
            position := add(data.offset, sub(from, first))
        }
        return (true, position);
    }
}
