// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {Mantissas} from "../encoding/Mantissas.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";
import {Visibility} from "../operands/Visibility.sol";

/// @title Functions given by a table and a straight line between its entries (N-18, N-20)
library Tables {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @dev Bits to which a table's argument is clamped on its way (N-18, N-20).
    uint256 private constant ARGUMENT_BITS = 63;
    /// @dev `40 · 2^16`: beyond 2^−40 ExpNeg is zero at 24 fraction bits.
    uint256 private constant EXP_END = 40 << 16;

    /// @notice Attributes input_shift, low, fraction_bits, shift. Reads `x[i]` and two adjacent entries from
    /// one window.
    function lookup(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 4);
        TensorType table = operator.typeOf(1);
        // A table of one entry more than a power of two.
        uint256 steps = table.elements() - 1;
        Operands.ensure(table.bits() <= 32 && 0 < steps && steps <= 4096 && steps & (steps - 1) == 0);
        // SAFETY: 1 to 16.
        uint256 f = uint256(operator.attribute(2, 1, 16));

        uint256 u = FixedPoint.limited(_argument(operator, element, windows), steps << f);
        // The end of the table is the end of its last step.
        uint256 j = u >> f;
        if (j == steps) --j;
        int256 y = line(windows, 1, table, j, u - (j << f), f);
        return FixedPoint.rescaleHalfEven(y, operator.shift(3), operator.output.bits());
    }

    /// @dev `rescale(x[i], input_shift, 63) − low`.
    function _argument(Operator calldata operator, uint256 element, Window[][] calldata windows)
        private
        pure
        returns (int256)
    {
        TensorType x = operator.typeOf(0);
        Operands.ensure(operator.output.sameShape(x));
        int256 mantissa = windows.read(0, x, element);
        return FixedPoint.rescaleHalfEven(mantissa, operator.shift(0), ARGUMENT_BITS) - operator.coefficient(1);
    }

    /// @notice `exp(−(max − a))` by powers of two. Operands a, max, table; attributes multiplier, input_shift,
    /// causal. Reads `a[m,k]`, `max[m]` and two adjacent entries from one window; nothing where `a[m,k]` is hidden,
    /// which gives 0.
    function expNeg(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(3, 3);
        (TensorType a, TensorType table) = (operator.typeOf(0), operator.typeOf(2));
        Operands.ensure(operator.output.sameShape(a) && operator.typeOf(1).elements() == a.rows());
        Operands.ensure(operator.output.bits() == 26 && operator.output.exponent() == 24);
        Operands.ensure(table.elements() == 257 && table.bits() <= 32);

        (int256 multiplier, int256 shift) = (operator.attribute(0, 1, (1 << 24) - 1), operator.shift(1));
        if (element % a.row() >= Visibility.ofRow(operator, 2, element / a.row())) return 0;
        int256 z = _distance(operator, element, windows) * multiplier;
        uint256 u = FixedPoint.limited(FixedPoint.rescaleHalfEven(z, shift, ARGUMENT_BITS), EXP_END);
        int256 y = line(windows, 2, table, (u & 0xffff) >> 8, u & 0xff, 8);
        // SAFETY: the shift is at most 40 + 8.
        return FixedPoint.rescaleHalfEven(y, int256((u >> 16) + 8), 26);
    }

    /// @dev `max(max[m] − a[m,k], 0)`. Operands a, max.
    function _distance(Operator calldata operator, uint256 element, Window[][] calldata windows)
        private
        pure
        returns (int256 z)
    {
        TensorType a = operator.typeOf(0);
        z = windows.read(1, operator.typeOf(1), element / a.row()) - windows.read(0, a, element);
        return z > 0 ? z : int256(0);
    }

    /// @notice `table[j]·(2^f − r) + table[j + 1]·r`, `r <= 2^f <= 2^16`, of operand `operand`. Reads both entries from
    /// one window.
    /// @dev Entries have at most 32 bits: below 2^50.
    function line(Window[][] calldata windows, uint256 operand, TensorType table, uint256 j, uint256 r, uint256 f)
        internal
        pure
        returns (int256)
    {
        uint256 width = table.width();
        uint256 position = windows.run(operand, table, j, 2);
        int256 left = Mantissas.load(position, width);
        int256 right = Mantissas.load(position + width, width);
        // SAFETY of the casts: r <= 2^f <= 2^16.
        // forge-lint: disable-next-line(unsafe-typecast)
        return left * int256((1 << f) - r) + right * int256(r);
    }
}
