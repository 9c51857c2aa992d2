// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType} from "../../types/Types.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "./Operands.sol";

/// @title Rows of an operator's first operand in equal parts, an element of the output for each (N-19, N-21, N-31 to
/// N-34, N-40)
library Parts {
    using Operands for Operator;
    using TensorTypes for TensorType;

    /// @notice Elements of a part. Those of part i begin at i times as many. After `expectForm`.
    function length(Operator calldata operator) internal pure returns (uint256 elements) {
        TensorType a = operator.typeOf(0);
        uint256 parts = operator.output.elements();
        elements = a.elements() / parts;
        // INVARIANT: parts are whole, there is something in them, and none goes over the end of a row.
        Operands.ensure(elements != 0 && elements * parts == a.elements() && a.row() % elements == 0);
    }

    /// @notice `length`, required to be one that a reduction takes.
    function reducedLength(Operator calldata operator) internal pure returns (uint256 elements) {
        elements = length(operator);
        Operands.ensure(elements <= Operands.MAX_REDUCTION);
    }
}
