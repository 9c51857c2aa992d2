// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType} from "../../types/Types.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "./Operands.sol";

/// @title What a token may see (N-8)
library Visibility {
    using Operands for Operator;
    using TensorTypes for TensorType;

    /// @notice How many elements of row `m` of operand 0 are visible, the first of the row: at least one. `causal` is
    /// attribute `index`. After `expectForm`.
    function ofRow(Operator calldata operator, uint256 index, uint256 m) internal pure returns (uint256) {
        TensorType a = operator.typeOf(0);
        if (operator.attribute(index, 0, 1) == 0) return a.row();
        // INVARIANT: a token is a place in the second-to-last dimension.
        uint256 rank = a.rank();
        Operands.ensure(rank >= 2);
        uint256 visible = m % a.dim(rank - 2) + 1;
        return visible < a.row() ? visible : a.row();
    }
}
