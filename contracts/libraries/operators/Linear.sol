// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {DotProduct} from "../DotProduct.sol";
import {FixedPoint} from "../FixedPoint.sol";
import {Operands} from "../Operands.sol";
import {TensorTypes} from "../TensorTypes.sol";

/// @title MatMul and Transpose (N-11, N-12)
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
        _expectMatMul(operator.typeOf(0), operator.typeOf(1), operator.output);
        int256 sum = _dot(operator, element / operator.output.row(), element % operator.output.row(), windows);
        return FixedPoint.rescaleHalfEven(sum, operator.shift(0), operator.output.bits());
    }

    /// @dev `Σ_k a[m,k]·b[n,k]`.
    function _dot(Operator calldata operator, uint256 m, uint256 n, Window[][] calldata windows)
        private
        pure
        returns (int256)
    {
        TensorType a = operator.typeOf(0);
        uint256 length = a.row();
        uint256 left = windows.run(0, a, m * length, length);
        uint256 right = windows.run(1, operator.typeOf(1), n * length, length);
        return a.width() == 1 ? DotProduct.ofInt8(left, right, length) : DotProduct.ofInt16(left, right, length);
    }

    function _expectMatMul(TensorType a, TensorType b, TensorType y) private pure {
        Operands.ensure(a.rank() == 2 && b.rank() == 2 && y.rank() == 2);
        Operands.ensure(a.dim(1) == b.dim(1) && y.dim(0) == a.dim(0) && y.dim(1) == b.dim(0));
        Operands.ensure(a.width() == b.width() && a.width() <= 2 && a.dim(1) <= Operands.MAX_REDUCTION);
    }

    /// @notice `a[m,n]` for output element (n, m).
    function transpose(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 0);
        TensorType a = operator.typeOf(0);
        TensorType y = operator.output;
        Operands.ensure(a.rank() == 2 && y.rank() == 2 && y.samePrecision(a));
        Operands.ensure(y.dim(0) == a.dim(1) && y.dim(1) == a.dim(0));
        return windows.read(0, a, (element % y.dim(1)) * a.dim(1) + element / y.dim(1));
    }
}
