// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../FixedPoint.sol";
import {Operands} from "../Operands.sol";
import {RowReduce} from "../RowReduce.sol";
import {TensorTypes} from "../TensorTypes.sol";

/// @title The parts of softmax and its gradient that need no table (N-19, N-21, N-22, N-23)
/// @dev A vector with one element per row is told by its number of elements; its dimensions do not enter the result.
library Softmax {
    using Operands for Operator;
    using TensorTypes for TensorType;

    /// @notice `max_k a[m,k]`. Reads row m from one window.
    function rowMax(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 0);
        TensorType a = operator.typeOf(0);
        _expectReduced(a, operator.output);
        Operands.ensure(operator.output.samePrecision(a));
        return RowReduce.max(operator.run(windows, 0, element * a.row(), a.row()), a.row(), a.width());
    }

    /// @notice `rescale(Σ_k a[m,k], shift)`. Reads row m from one window.
    function rowSum(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 1);
        TensorType a = operator.typeOf(0);
        _expectReduced(a, operator.output);
        int256 sum = RowReduce.sum(operator.run(windows, 0, element * a.row(), a.row()), a.row(), a.width());
        return FixedPoint.rescaleHalfEven(sum, operator.shift(0), operator.output.bits());
    }

    /// @notice `clamp(div(p[m,k]·2^bits, max(z[m], 1)))`. Operands p, z.
    function normalize(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 1);
        TensorType p = operator.typeOf(0);
        Operands.ensure(operator.output.sameShape(p) && operator.typeOf(1).elements() == p.rows());
        // SAFETY of the cast: 0 to 32. The dividend is below 2^96.
        int256 dividend = operator.read(windows, 0, element) << uint256(operator.attribute(0, 0, 32));
        int256 z = operator.read(windows, 1, element / p.row());
        return FixedPoint.clamp(FixedPoint.divHalfUp(dividend, z > 1 ? z : int256(1)), operator.output.bits());
    }

    /// @notice `rescale(p[m,k] − (label[m] = k ? one : 0), shift)`. Operands p, label.
    function oneHotSub(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 2);
        TensorType p = operator.typeOf(0);
        Operands.ensure(operator.output.sameShape(p) && operator.typeOf(1).elements() == p.rows());
        int256 one = operator.attribute(0, 0, Operands.COEFFICIENT - 1);
        int256 value = operator.read(windows, 0, element);
        // SAFETY of the cast: a column is below 2^32.
        if (operator.read(windows, 1, element / p.row()) == int256(element % p.row())) value -= one;
        return FixedPoint.rescaleHalfEven(value, operator.shift(1), operator.output.bits());
    }

    function _expectReduced(TensorType a, TensorType y) private pure {
        Operands.ensure(y.elements() == a.rows() && a.row() <= Operands.MAX_REDUCTION);
    }
}
