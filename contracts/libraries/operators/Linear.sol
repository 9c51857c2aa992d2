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
    using TensorTypes for TensorType;

    /// @notice `rescale(Σ_k a[m,k]·b[n,k], shift)`. Reads row m of a and row n of b, each from one window.
    function matMul(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 1);
        int256 shift = operator.shift(0);
        uint256 columns = operator.output.row();
        uint256 length = operator.typeOf(0).row();
        _expectMatMul(operator.typeOf(0), operator.typeOf(1), operator.output);

        uint256 a = operator.run(windows, 0, (element / columns) * length, length);
        uint256 b = operator.run(windows, 1, (element % columns) * length, length);
        int256 product =
            operator.typeOf(0).width() == 1 ? DotProduct.ofInt8(a, b, length) : DotProduct.ofInt16(a, b, length);
        return FixedPoint.rescaleHalfEven(product, shift, operator.output.bits());
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
        return operator.read(windows, 0, (element % y.dim(1)) * a.dim(1) + element / y.dim(1));
    }
}
