// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";

/// @title Operators whose element i reads element i (N-13 to N-17)
/// @dev No sum or product here reaches 2^127: mantissas are within 2^63, coefficients within 2^40.
library Elementwise {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice `rescale(ca·a[i] + cb·b[i mod |b|], shift)`.
    function combine(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 3);
        int256 sum = operator.coefficient(0) * _readLike(operator, element, windows, 0);
        sum += operator.coefficient(1) * _readBroadcast(operator, element, windows);
        return FixedPoint.rescaleHalfEven(sum, operator.shift(2), operator.output.bits());
    }

    /// @notice `rescale(c·a[i], shift)`.
    function scale(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 2);
        int256 product = operator.coefficient(0) * _readLike(operator, element, windows, 0);
        return FixedPoint.rescaleHalfEven(product, operator.shift(1), operator.output.bits());
    }

    /// @notice `rescale(a[i]·b[i mod |b|], shift)`.
    function mul(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 1);
        int256 product = _readLike(operator, element, windows, 0) * _readBroadcast(operator, element, windows);
        return FixedPoint.rescaleHalfEven(product, operator.shift(0), operator.output.bits());
    }

    /// @notice `max(a[i], 0)`.
    function relu(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 0);
        Operands.ensure(operator.output.samePrecision(operator.typeOf(0)));
        int256 a = _readLike(operator, element, windows, 0);
        return a > 0 ? a : int256(0);
    }

    /// @notice `dy[i]` where `x[i] > 0`, else 0. Operands dy, x.
    function reluGrad(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 0);
        Operands.ensure(TensorType.unwrap(operator.output) == TensorType.unwrap(operator.typeOf(0)));
        int256 dy = _readLike(operator, element, windows, 0);
        return _readLike(operator, element, windows, 1) > 0 ? dy : int256(0);
    }

    /// @dev Element `element` of an operand that has the output's shape.
    function _readLike(Operator calldata operator, uint256 element, Window[][] calldata windows, uint256 operand)
        private
        pure
        returns (int256)
    {
        TensorType t = operator.typeOf(operand);
        Operands.ensure(operator.output.sameShape(t));
        return windows.read(operand, t, element);
    }

    /// @dev The element of operand 1 that goes with `element` of the output: b repeats, a whole number of times.
    function _readBroadcast(Operator calldata operator, uint256 element, Window[][] calldata windows)
        private
        pure
        returns (int256)
    {
        TensorType b = operator.typeOf(1);
        uint256 count = b.elements();
        Operands.ensure(operator.output.elements() % count == 0);
        return windows.read(1, b, element % count);
    }
}
