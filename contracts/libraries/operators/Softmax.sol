// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";

/// @title The parts of softmax and its gradient that work element by element and need no table (N-22, N-23)
/// @dev A vector with one element per row is told by its number of elements; its dimensions do not enter the result.
library Softmax {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice `clamp(div(p[m,k]·2^bits, max(z[m], 1)))`. Operands p, z.
    function normalize(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 1);
        // SAFETY of the cast: 0 to 32. The dividend is below 2^96.
        int256 dividend = _readElement(operator, element, windows) << uint256(operator.attribute(0, 0, 32));
        int256 z = _readOfRow(operator, element, windows);
        return FixedPoint.clamp(FixedPoint.divHalfUp(dividend, z > 1 ? z : int256(1)), operator.output.bits());
    }

    /// @notice `rescale(p[m,k] − (label[m] = k ? one : 0), shift)`. Operands p, label.
    function oneHotSub(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 2);
        int256 one = operator.attribute(0, 0, Operands.COEFFICIENT - 1);
        int256 value = _readElement(operator, element, windows);
        // SAFETY of the cast: a column is below 2^32.
        // forge-lint: disable-next-line(unsafe-typecast)
        int256 column = int256(element % operator.output.row());
        if (_readOfRow(operator, element, windows) == column) value -= one;
        return FixedPoint.rescaleHalfEven(value, operator.shift(1), operator.output.bits());
    }

    /// @dev Element `element` of operand 0, which has the output's shape.
    function _readElement(Operator calldata operator, uint256 element, Window[][] calldata windows)
        private
        pure
        returns (int256)
    {
        TensorType p = operator.typeOf(0);
        Operands.ensure(operator.output.sameShape(p));
        return windows.read(0, p, element);
    }

    /// @dev The element of operand 1 that belongs to the row of `element`.
    function _readOfRow(Operator calldata operator, uint256 element, Window[][] calldata windows)
        private
        pure
        returns (int256)
    {
        TensorType perRow = operator.typeOf(1);
        Operands.ensure(perRow.elements() == operator.output.rows());
        return windows.read(1, perRow, element / operator.output.row());
    }
}
