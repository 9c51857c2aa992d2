// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";

/// @title Quotients by a root: an optimiser's step, and a norm brought down (N-42, N-43)
library Roots {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @notice `clamp(div(m[i]·2^bits, ⌊√max(v[i], 0)⌋ + floor))`. Operands m, v; attributes bits, floor.
    function ratio(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 2);
        // SAFETY of the cast: 0 to 40. The dividend is below 2^104.
        int256 dividend = _read(operator, 0, element, windows) << uint256(operator.attribute(0, 0, 40));
        int256 divisor = _root(_read(operator, 1, element, windows));
        divisor += operator.attribute(1, 1, Operands.COEFFICIENT - 1);
        return FixedPoint.clamp(FixedPoint.divHalfUp(dividend, divisor), operator.output.bits());
    }

    /// @notice `clamp(min(2^bits, ⌊limit·2^bits / max(1, ⌊√max(s[i], 0)⌋)⌋))`. Attributes limit, bits.
    function shrink(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 2);
        // SAFETY of the cast: 0 to 30.
        int256 one = int256(1 << uint256(operator.attribute(1, 0, 30)));
        // SAFETY: below 2^61.
        int256 factor = operator.attribute(0, 1, type(int32).max) * one;
        int256 root = _root(_read(operator, 0, element, windows));
        if (root > 1) factor /= root;
        return FixedPoint.clamp(factor < one ? factor : one, operator.output.bits());
    }

    /// @dev `⌊√max(x, 0)⌋`.
    function _root(int256 x) private pure returns (int256) {
        // SAFETY of the casts: not negative; at most 2^32.
        // forge-lint: disable-next-line(unsafe-typecast)
        return x > 0 ? int256(Math.sqrt(uint256(x))) : int256(0);
    }

    /// @dev Element `element` of an operand, which has the output's shape.
    function _read(Operator calldata operator, uint256 operand, uint256 element, Window[][] calldata windows)
        private
        pure
        returns (int256)
    {
        TensorType t = operator.typeOf(operand);
        Operands.ensure(operator.output.sameShape(t));
        return windows.read(operand, t, element);
    }
}
