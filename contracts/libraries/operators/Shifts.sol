// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {RowReduce} from "../arithmetic/RowReduce.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";
import {Parts} from "../operands/Parts.sol";
import {Linear} from "./Linear.sol";

/// @title Rows of wide activations, shifted until they fit a product (N-49 to N-51)
/// @dev A vector with one element per row is told by its number of elements; its dimensions do not enter the result.
library Shifts {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @dev Largest shift of a row.
    uint256 private constant MAX_ROW_SHIFT = 31;
    /// @dev Least shift of N-51: less the largest of a row, it is one of N-2.
    int256 private constant MIN_SHIFT = -32;

    /// @notice `max(0, bits(max_k |a[m,k]|) − (w − 1))` of a part of a row. Attribute w. Reads the part from one
    /// window.
    function rowShift(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 1);
        TensorType a = operator.typeOf(0);
        uint256 length = Parts.reducedLength(operator);
        // SAFETY of the casts: 2 to 64; a magnitude is at most 2^63, and so has at most 64 bits.
        // forge-lint: disable-start(unsafe-typecast)
        uint256 fitting = uint256(operator.attribute(0, 2, 64)) - 1;
        uint256 largest =
            uint256(RowReduce.maxMagnitude(windows.run(0, a, element * length, length), length, a.width()));
        uint256 bits = largest == 0 ? 0 : Math.log2(largest) + 1;
        return FixedPoint.clamp(bits > fitting ? int256(bits - fitting) : int256(0), operator.output.bits());
        // forge-lint: disable-end(unsafe-typecast)
    }

    /// @notice `rescale(a[m,k], s[m])`, s limited to what a row may be shifted. Operands a, s.
    function shiftRows(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 0);
        (TensorType a, TensorType s) = (operator.typeOf(0), operator.typeOf(1));
        Operands.ensure(operator.output.sameShape(a));
        uint256 row = a.row();
        Operands.ensure(s.elements() * row == a.elements());
        int256 shift = _limited(windows.read(1, s, element / row));
        return FixedPoint.rescaleHalfEven(windows.read(0, a, element), shift, operator.output.bits());
    }

    /// @notice `rescale(c[n]·Σ_k a[m, offset + k]·b[n,k], shift − s[m])`, s limited as in N-50. Operands a, b, s, c.
    /// Reads as N-25 does.
    function shiftedMatMul(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        int256 sum = Linear.columnScaled(operator, element, windows);
        int256 shift = operator.attribute(1, MIN_SHIFT, FixedPoint.MAX_SHIFT);
        shift -= _limited(Linear.ofRow(operator, element, windows));
        return FixedPoint.rescaleHalfEven(sum, shift, operator.output.bits());
    }

    /// @dev What a row is shifted by, if its number says so.
    function _limited(int256 shift) private pure returns (int256) {
        // SAFETY of the cast: at most 31.
        // forge-lint: disable-next-line(unsafe-typecast)
        return int256(FixedPoint.limited(shift, MAX_ROW_SHIFT));
    }
}
