// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";

/// @title Rows of a table chosen by data (N-30)
library Embeddings {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice `rescale(table[i,k]·scale[i], shift)`, i being `ids[t]` limited to the table's rows. Operands table,
    /// scale, ids. Reads one element of each.
    function gather(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(3, 1);
        (TensorType table, TensorType scale) = (operator.typeOf(0), operator.typeOf(1));
        uint256 width = table.row();
        Operands.ensure(table.rank() == 2 && operator.output.rank() == 2 && operator.output.row() == width);
        Operands.ensure(scale.elements() >= table.rows());

        uint256 row = _chosen(operator, element / width, table.rows(), windows);
        // SAFETY: mantissas are within 2^63.
        int256 product = windows.read(0, table, row * width + element % width) * windows.read(1, scale, row);
        return FixedPoint.rescaleHalfEven(product, operator.shift(0), operator.output.bits());
    }

    /// @dev Row of a table of `rows` rows that id `t` names: the first or last where it names none.
    function _chosen(Operator calldata operator, uint256 t, uint256 rows, Window[][] calldata windows)
        private
        pure
        returns (uint256)
    {
        TensorType ids = operator.typeOf(2);
        Operands.ensure(ids.elements() >= operator.output.rows());
        return FixedPoint.limited(windows.read(2, ids, t), rows - 1);
    }
}
