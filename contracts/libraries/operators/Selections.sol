// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, StepContext, TensorType, Window} from "../../types/Types.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";

/// @title Parts of a tensor as they stand: the row for a step, some columns (N-44, N-47)
library Selections {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice Row `min(step, S − 1)` of a table of S rows; a table of rank 1 has rows of one element.
    function atStep(
        Operator calldata operator,
        uint256 element,
        StepContext calldata context,
        Window[][] calldata windows
    ) internal pure returns (int256) {
        operator.expectForm(1, 0);
        TensorType table = operator.typeOf(0);
        uint256 rank = table.rank();
        uint256 columns = rank == 1 ? 1 : table.row();
        Operands.ensure(rank <= 2 && operator.output.samePrecision(table) && operator.output.elements() == columns);
        uint256 last = table.dim(0) - 1;
        return windows.read(0, table, (context.step < last ? context.step : last) * columns + element);
    }

    /// @notice `a[m, offset + k]`.
    function slice(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 1);
        (TensorType a, TensorType y) = (operator.typeOf(0), operator.output);
        Operands.ensure(a.rank() == 2 && y.rank() == 2 && y.dim(0) == a.dim(0) && y.samePrecision(a));
        // INVARIANT: what is read of a row of a lies in that row.
        // SAFETY of the casts: dimensions are below 2^32; no offset is accepted where the upper bound is negative.
        // forge-lint: disable-next-line(unsafe-typecast)
        uint256 offset = uint256(operator.attribute(0, 0, int256(a.row()) - int256(y.row())));
        return windows.read(0, a, element / y.row() * a.row() + offset + element % y.row());
    }
}
