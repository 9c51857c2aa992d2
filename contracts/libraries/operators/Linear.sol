// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";
import {RowProducts} from "../operands/RowProducts.sol";

/// @title Products of matrices, and Transpose (N-11, N-12, N-25)
library Linear {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice `rescale(Σ_k a[m,k]·b[n,k], shift)`. Reads row m of a and row n of b, each from one window.
    function matMul(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 1);
        (TensorType a, TensorType b) = (operator.typeOf(0), operator.typeOf(1));
        uint256 length = a.row();
        Operands.ensure(b.row() == length);
        _expectShapes(a, b, operator.output);
        RowProducts.expect(a, b, length);
        (uint256 m, uint256 n) = (element / operator.output.row(), element % operator.output.row());
        int256 sum = RowProducts.sum(operator, windows, m * length, n * length, length);
        return FixedPoint.rescaleHalfEven(sum, operator.shift(0), operator.output.bits());
    }

    /// @notice `rescale(r[m]·c[n]·Σ_k a[m, offset + k]·b[n,k], shift)`. Operands a, b, r, c. Reads `b.row()` elements
    /// of row m of a from one window, row n of b from one.
    function scaledMatMul(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        int256 sum = columnScaled(operator, element, windows);
        // SAFETY: the sum is within 2^105 and a scale within 2^63, so the product is within 2^168.
        sum *= ofRow(operator, element, windows);
        return FixedPoint.rescaleHalfEven(sum, operator.shift(1), operator.output.bits());
    }

    /// @notice `c[n]·Σ_k a[m, offset + k]·b[n,k]`, within 2^105. Checks the form of N-25 and N-51, which share operands
    /// and attributes, but for what belongs to rows of a.
    function columnScaled(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(4, 2);
        (TensorType a, TensorType b) = (operator.typeOf(0), operator.typeOf(1));
        _expectShapes(a, b, operator.output);
        RowProducts.expectMixed(a, b, b.row());
        // INVARIANT: what is read of a row of a lies in that row.
        // SAFETY of the casts: dimensions are below 2^32; no offset is accepted where the upper bound is negative.
        // forge-lint: disable-next-line(unsafe-typecast)
        uint256 offset = uint256(operator.attribute(0, 0, int256(a.row()) - int256(b.row())));
        (uint256 m, uint256 n) = (element / operator.output.row(), element % operator.output.row());
        int256 sum = RowProducts.sum(operator, windows, m * a.row() + offset, n * b.row(), b.row());
        return sum * _scale(operator, 3, b.dim(0), n, windows);
    }

    /// @notice The element of operand 2 that belongs to the row of a. After `columnScaled`.
    function ofRow(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        return _scale(operator, 2, operator.output.dim(0), element / operator.output.row(), windows);
    }

    /// @dev Element `i` of a vector operand of `count` scales.
    function _scale(Operator calldata operator, uint256 operand, uint256 count, uint256 i, Window[][] calldata windows)
        private
        pure
        returns (int256)
    {
        TensorType t = operator.typeOf(operand);
        Operands.ensure(t.elements() == count);
        return windows.read(operand, t, i);
    }

    /// @dev Rows of a by rows of b.
    function _expectShapes(TensorType a, TensorType b, TensorType y) private pure {
        Operands.ensure(a.rank() == 2 && b.rank() == 2 && y.rank() == 2);
        Operands.ensure(y.dim(0) == a.dim(0) && y.dim(1) == b.dim(0));
    }

    /// @notice `a[m,n]` for output element (n, m), of a matrix or of each of several.
    function transpose(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 0);
        (TensorType a, TensorType y) = (operator.typeOf(0), operator.output);
        uint256 rank = a.rank();
        Operands.ensure((rank == 2 || rank == 3) && y.rank() == rank && y.samePrecision(a));
        (uint256 rows, uint256 columns) = (a.dim(rank - 2), a.row());
        // As many elements: as many matrices.
        Operands.ensure(y.dim(rank - 2) == columns && y.row() == rows && y.elements() == a.elements());
        uint256 within = element % (rows * columns);
        return windows.read(0, a, element - within + within % rows * columns + within / rows);
    }
}
