// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {RowReduce} from "../arithmetic/RowReduce.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";
import {Parts} from "../operands/Parts.sol";
import {Visibility} from "../operands/Visibility.sol";

/// @title One number for each row, or for each equal part of a row (N-19, N-21, N-31)
/// @dev A vector with one element per row is told by its number of elements; its dimensions do not enter the result.
library Reductions {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice The maximum of a part of a row; or, if causal, of a row's visible elements. Reads the part, or the
    /// visible ones, the first of row m, from one window.
    function rowMax(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 1);
        TensorType a = operator.typeOf(0);
        Operands.ensure(operator.output.samePrecision(a));
        uint256 length = Parts.reducedLength(operator);
        uint256 visible = Visibility.ofRow(operator, 0, element);
        // INVARIANT: what hides elements belongs to a whole row.
        if (length != a.row()) {
            Operands.ensure(operator.attributes[0] == 0);
            visible = length;
        }
        return RowReduce.max(windows.run(0, a, element * length, visible), visible, a.width());
    }

    /// @notice `rescale(Σ_k a[m,k], shift)` over a part of a row. Reads the part from one window.
    function rowSum(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 1);
        TensorType a = operator.typeOf(0);
        uint256 length = Parts.reducedLength(operator);
        int256 sum = RowReduce.sum(windows.run(0, a, element * length, length), length, a.width());
        return FixedPoint.rescaleHalfEven(sum, operator.shift(0), operator.output.bits());
    }

    /// @notice The largest magnitude of a part of a row. Reads the part from one window.
    function rowAbsMax(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 0);
        TensorType a = operator.typeOf(0);
        uint256 length = Parts.reducedLength(operator);
        Operands.ensure(operator.output.samePrecision(a));
        int256 best = RowReduce.maxMagnitude(windows.run(0, a, element * length, length), length, a.width());
        // A mantissa of −2^(b − 1), which N-1 forbids, has no counterpart.
        return FixedPoint.clamp(best, operator.output.bits());
    }
}
