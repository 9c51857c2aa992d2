// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, StepContext, TensorType, Window} from "../../types/Types.sol";
import {Philox} from "../arithmetic/Philox.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";

/// @title Drawing of a batch from a data set (N-24)
library Sampling {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    uint256 private constant MAX_ROWS = 1 << 31;
    /// @dev Data rows are drawn from stream 0.
    uint32 private constant STREAM = 0;

    /// @notice `data[⌊philox(key, (first_row + i, step, 0, 0)) · R / 2^32⌋, ·]` for row i. A data set of rank 1 has
    /// rows of one element.
    function sample(
        Operator calldata operator,
        uint256 element,
        StepContext calldata context,
        Window[][] calldata windows
    ) internal pure returns (int256) {
        operator.expectForm(1, 1);
        TensorType data = operator.typeOf(0);
        uint256 columns = _columns(data, operator.output);
        uint256 row = _drawn(operator, element / columns, columns, context);
        return windows.read(0, data, row * columns + element % columns);
    }

    /// @dev Row of the data set that goes to row `i` of the batch.
    function _drawn(Operator calldata operator, uint256 i, uint256 columns, StepContext calldata context)
        private
        pure
        returns (uint256)
    {
        uint256 rows = operator.typeOf(0).elements() / columns;
        Operands.ensure(rows <= MAX_ROWS);
        // SAFETY of the cast: not negative.
        uint256 firstRow = uint256(operator.attribute(0, 0, int256(uint256(type(uint32).max))));
        // INVARIANT: the counter's word holds every row of the batch, so no draw repeats by wrapping.
        Operands.ensure(firstRow + operator.output.elements() / columns <= 1 << 32);
        // SAFETY of the cast: i is a row of the output, so the line above bounds the sum.
        // forge-lint: disable-next-line(unsafe-typecast)
        return (Philox.draw(context.jobKey, uint32(firstRow + i), context.step, STREAM) * rows) >> 32;
    }

    /// @dev Elements of a row of the data set, which are those of a row of the batch.
    function _columns(TensorType data, TensorType y) private pure returns (uint256) {
        Operands.ensure(y.samePrecision(data));
        if (data.rank() == 1) {
            Operands.ensure(y.rank() == 1);
            return 1;
        }
        Operands.ensure(y.rank() > 1 && y.row() == data.row());
        return data.row();
    }
}
