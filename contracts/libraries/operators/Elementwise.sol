// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../FixedPoint.sol";
import {Operands} from "../Operands.sol";
import {TensorTypes} from "../TensorTypes.sol";

/// @title Operators whose element i reads element i (N-13 to N-17)
/// @dev No sum or product here reaches 2^127: mantissas are within 2^63, coefficients within 2^40.
library Elementwise {
    using Operands for Operator;
    using TensorTypes for TensorType;

    /// @notice `rescale(ca·a[i] + cb·b[i mod |b|], shift)`.
    function combine(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 3);
        uint256 other = _broadcast(operator, element);
        int256 sum = operator.coefficient(0) * operator.read(windows, 0, element);
        sum += operator.coefficient(1) * operator.read(windows, 1, other);
        return FixedPoint.rescaleHalfEven(sum, operator.shift(2), operator.output.bits());
    }

    /// @notice `rescale(c·a[i], shift)`.
    function scale(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 2);
        _expectShapeOf(operator, 0);
        int256 product = operator.coefficient(0) * operator.read(windows, 0, element);
        return FixedPoint.rescaleHalfEven(product, operator.shift(1), operator.output.bits());
    }

    /// @notice `rescale(a[i]·b[i mod |b|], shift)`.
    function mul(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 1);
        uint256 other = _broadcast(operator, element);
        int256 product = operator.read(windows, 0, element) * operator.read(windows, 1, other);
        return FixedPoint.rescaleHalfEven(product, operator.shift(0), operator.output.bits());
    }

    /// @notice `max(a[i], 0)`.
    function relu(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 0);
        _expectShapeOf(operator, 0);
        Operands.ensure(operator.output.samePrecision(operator.typeOf(0)));
        int256 a = operator.read(windows, 0, element);
        return a > 0 ? a : int256(0);
    }

    /// @notice `dy[i]` where `x[i] > 0`, else 0.
    function reluGrad(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 0);
        _expectShapeOf(operator, 0);
        _expectShapeOf(operator, 1);
        Operands.ensure(operator.output.samePrecision(operator.typeOf(0)));
        if (operator.read(windows, 1, element) <= 0) return 0;
        return operator.read(windows, 0, element);
    }

    /// @dev The element of operand 1 that goes with `element` of the output, which has the shape of operand 0.
    function _broadcast(Operator calldata operator, uint256 element) private pure returns (uint256) {
        _expectShapeOf(operator, 0);
        uint256 count = operator.typeOf(1).elements();
        Operands.ensure(operator.output.elements() % count == 0);
        return element % count;
    }

    function _expectShapeOf(Operator calldata operator, uint256 operand) private pure {
        Operands.ensure(operator.output.sameShape(operator.typeOf(operand)));
    }
}
