// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";

/// @title Rotary position embedding (N-29)
library Positions {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice Rotates elements i and i + R/2 of every head by the angle of token t; leaves those from R on. Operands
    /// x, table; attributes heads, shift. Reads both elements of x, the cosine and the sine; or the element alone.
    function rope(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 2);
        (TensorType x, TensorType table) = (operator.typeOf(0), operator.typeOf(1));
        // How many heads there are follows from their width.
        // slither-disable-next-line unused-return
        (, uint256 width) = operator.heads(x.row());
        _expectTable(operator.output, x, table, width);

        uint256 i = element % x.row() % width;
        int256 own = windows.read(0, x, element);
        // SAFETY: mantissas of 16 bits: no term exceeds 2^30. The exponent is 0 to 15.
        int256 turned = i < table.row()
            ? _turned(own, element, i, x, table, windows)
            : own * int256(1 << uint256(table.exponent()));
        return FixedPoint.rescaleHalfEven(turned, operator.shift(1), operator.output.bits());
    }

    /// @dev `own·cos ∓ other·sin`, the other being half a rotation's elements ahead or behind.
    function _turned(
        int256 own,
        uint256 element,
        uint256 i,
        TensorType x,
        TensorType table,
        Window[][] calldata windows
    ) private pure returns (int256) {
        uint256 half = table.row() / 2;
        bool first = i < half;
        uint256 cosine = element / x.row() * table.row() + (first ? i : i - half);
        int256 other = windows.read(0, x, first ? element + half : element - half);
        int256 sine = windows.read(1, table, cosine + half);
        own *= windows.read(1, table, cosine);
        return first ? own - other * sine : own + other * sine;
    }

    function _expectTable(TensorType y, TensorType x, TensorType table, uint256 width) private pure {
        Operands.ensure(y.sameShape(x) && x.bits() <= 16 && table.bits() <= 16);
        Operands.ensure(table.exponent() >= 0 && table.exponent() <= 15);
        // INVARIANT: pairs do not leave their head, and every token has its angles.
        Operands.ensure(table.row() % 2 == 0 && table.row() <= width && table.rows() >= x.rows());
    }
}
