// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, StepContext, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {Philox} from "../arithmetic/Philox.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";

/// @title What a draw for each element decides: whether it is dropped, which way it is rounded (N-46, N-48)
library Chances {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @dev First of the last words of the counters: no two kinds of draws have one, nor has N-4.
    uint256 private constant DROPOUT = 1 << 16;
    uint256 private constant DITHER = 1 << 17;
    /// @dev Bits of what Dither divides by.
    uint256 private constant DIVISOR_BITS = 30;

    /// @notice `rescale(c·a[i], shift)` where the draw is below `keep`, else 0. Attributes keep, stream, c, shift.
    /// Reads `a[i]`, or nothing where it is dropped.
    function dropout(
        Operator calldata operator,
        uint256 element,
        StepContext calldata context,
        Window[][] calldata windows
    ) internal pure returns (int256) {
        operator.expectForm(1, 4);
        TensorType a = operator.typeOf(0);
        Operands.ensure(operator.output.sameShape(a));
        (int256 c, int256 shift) = (operator.coefficient(2), operator.shift(3));
        // SAFETY of the cast: at least 1.
        uint256 keep = uint256(operator.attribute(0, 1, 1 << 32));
        if (_word(operator, element, context, DROPOUT) >= keep) return 0;
        return FixedPoint.rescaleHalfEven(c * windows.read(0, a, element), shift, operator.output.bits());
    }

    /// @notice `clamp(⌊(p[m,k]·2^bits + ⌊w·d/2^32⌋) / d⌋)`, `d = max(z[m], 1)`, w being the draw. Operands p, z;
    /// attributes bits, stream.
    function dither(
        Operator calldata operator,
        uint256 element,
        StepContext calldata context,
        Window[][] calldata windows
    ) internal pure returns (int256) {
        operator.expectForm(2, 2);
        (TensorType p, TensorType z) = (operator.typeOf(0), operator.typeOf(1));
        Operands.ensure(operator.output.sameShape(p) && z.elements() == p.rows() && z.bits() <= DIVISOR_BITS);
        // SAFETY of the cast: 0 to 32. The dividend is below 2^96.
        int256 dividend = windows.read(0, p, element) << uint256(operator.attribute(0, 0, 32));
        int256 d = windows.read(1, z, element / p.row());
        if (d < 1) d = 1;
        // SAFETY of the cast: 32 bits.
        // forge-lint: disable-next-line(unsafe-typecast)
        dividend += (int256(_word(operator, element, context, DITHER)) * d) >> 32;
        return FixedPoint.clamp(FixedPoint.divFloor(dividend, d), operator.output.bits());
    }

    /// @dev The draw for element `element`, 32 bits. The stream is attribute 1.
    function _word(Operator calldata operator, uint256 element, StepContext calldata context, uint256 kind)
        private
        pure
        returns (uint256)
    {
        // SAFETY of the cast: not negative.
        uint256 stream = uint256(operator.attribute(1, 0, int256(uint256(type(uint32).max))));
        // SAFETY: an element is below 2^37, so every word of the counter has 32 bits.
        return Philox.drawElement(context.jobKey, element, context.step, stream, kind);
    }
}
