// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";

/// @title Operators of which an element of the second operand goes with a run of the first (N-38, N-39)
/// @dev As in `Elementwise`, no sum or product reaches 2^127.
library Runs {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice `rescale(ca·a[i] + cb·b[⌊i/r⌋], shift)`.
    function rowCombine(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 3);
        (int256 a, int256 b) = _pair(operator, element, windows);
        int256 sum = operator.coefficient(0) * a + operator.coefficient(1) * b;
        return FixedPoint.rescaleHalfEven(sum, operator.shift(2), operator.output.bits());
    }

    /// @notice `rescale(a[i]·b[⌊i/r⌋], shift)`.
    function rowMul(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 1);
        (int256 a, int256 b) = _pair(operator, element, windows);
        return FixedPoint.rescaleHalfEven(a * b, operator.shift(0), operator.output.bits());
    }

    /// @dev `a[i]` and `b[⌊i/r⌋]`. Operands a, which has the output's shape, and b.
    function _pair(Operator calldata operator, uint256 element, Window[][] calldata windows)
        private
        pure
        returns (int256, int256)
    {
        (TensorType a, TensorType b) = (operator.typeOf(0), operator.typeOf(1));
        (uint256 elements, uint256 count) = (a.elements(), b.elements());
        // INVARIANT: runs are whole.
        Operands.ensure(operator.output.sameShape(a) && elements % count == 0);
        return (windows.read(0, a, element), windows.read(1, b, element / (elements / count)));
    }
}
