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
        TensorType a = operator.typeOf(0);
        TensorType b = operator.typeOf(1);
        _expectMatMul(a, b, operator.output);
        uint256 length = a.row();
        uint256 columns = b.dim(0);
        uint256 left = windows.run(0, a, (element / columns) * length, length);
        uint256 right = windows.run(1, b, (element % columns) * length, length);
        int256 sum = a.width() == 1 ? DotProduct.ofInt8(left, right, length) : DotProduct.ofInt16(left, right, length);
        return FixedPoint.rescaleHalfEven(sum, operator.shift(0), operator.output.bits());
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
