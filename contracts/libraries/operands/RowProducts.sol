// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {DotProduct} from "../arithmetic/DotProduct.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "./Operands.sol";

/// @title Dot products of parts of rows of an operator's first two operands
library RowProducts {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice Requires that products of `length` elements can be summed: both int8 or both int16, `length`
    /// at most 4096.
    function expect(TensorType a, TensorType b, uint256 length) internal pure {
        Operands.ensure(a.width() == b.width() && a.width() <= 2 && length <= Operands.MAX_REDUCTION);
    }

    /// @notice The same where b may be int8 and a int16.
    function expectMixed(TensorType a, TensorType b, uint256 length) internal pure {
        Operands.ensure(b.width() <= a.width() && a.width() <= 2 && length <= Operands.MAX_REDUCTION);
    }

    /// @notice `Σ_k a[i + k]·b[j + k]` over `length` elements of operands 0 and 1, by row-major index, each read from
    /// one window. After `expect` or `expectMixed`.
    /// @dev Within 2^42.
    function sum(Operator calldata operator, Window[][] calldata windows, uint256 i, uint256 j, uint256 length)
        internal
        pure
        returns (int256)
    {
        TensorType a = operator.typeOf(0);
        TensorType b = operator.typeOf(1);
        uint256 left = windows.run(0, a, i, length);
        uint256 right = windows.run(1, b, j, length);
        return DotProduct.ofWidths(left, right, length, a.width(), b.width());
    }
}
