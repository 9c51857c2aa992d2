// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {Mantissas} from "../encoding/Mantissas.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "./Operands.sol";

/// @dev A row of controls, in order: whether a token is chosen at all (not 0), the temperature with 12 fraction bits,
/// the token's position, the number and, with 16 fraction bits, the share of the likeliest to choose among, the two
/// words of the seed.
struct Control {
    int256 isChosen;
    int256 temperature;
    int256 position;
    int256 candidates;
    int256 share;
    int256 seedLow;
    int256 seedHigh;
}

/// @title How a token is chosen: a row of seven numbers ("Operators that choose tokens" in `agents/num/SPEC.md`)
library Controls {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    uint256 private constant LENGTH = 7;

    /// @notice Row `m` of operand `operand`, which has `rows` of them. Reads it from one window. After `expectForm`.
    function read(Operator calldata operator, uint256 operand, uint256 rows, uint256 m, Window[][] calldata windows)
        internal
        pure
        returns (Control memory)
    {
        TensorType t = operator.typeOf(operand);
        Operands.ensure(t.elements() == rows * LENGTH);
        (uint256 position, uint256 width) = (windows.run(operand, t, m * LENGTH, LENGTH), t.width());
        return Control({
            isChosen: Mantissas.load(position, width),
            temperature: Mantissas.load(position + width, width),
            position: Mantissas.load(position + 2 * width, width),
            candidates: Mantissas.load(position + 3 * width, width),
            share: Mantissas.load(position + 4 * width, width),
            seedLow: Mantissas.load(position + 5 * width, width),
            seedHigh: Mantissas.load(position + 6 * width, width)
        });
    }
}
