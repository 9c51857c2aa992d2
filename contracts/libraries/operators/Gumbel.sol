// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {LibBit} from "solady/utils/LibBit.sol";

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {Philox} from "../arithmetic/Philox.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Control, Controls} from "../operands/Controls.sol";
import {Operands} from "../operands/Operands.sol";
import {Tables} from "./Tables.sol";
import {Tails} from "./Tails.sol";

/// @title Noise by which the largest element of a row is a sample of its softmax (N-36)
library Gumbel {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @dev Exponent of the sum before it is rescaled: temperatures have 12 fraction bits, noise 16.
    int256 private constant EXPONENT = 28;
    int256 private constant MAX_LEFT_SHIFT = 40;
    /// @dev The table has 257 entries for each number of leading zeros of a word, 0 to 31.
    uint256 private constant OCTAVE = 257;
    uint256 private constant OCTAVES = 32;
    /// @dev Bits that the noise is rescaled to: none is ever cut off.
    uint256 private constant NOISE_BITS = 63;

    /// @notice `rescale(a[m,v]·2^(28 − e_a) + τ·g, shift)`, or the least mantissa where `a[m,v]` is below
    /// `t[m] + bound`. Operands a, t, controls, table; attributes bound, shift. Reads `a[m,v]`, `t[m]` and the row of
    /// controls from one window; where noise counts, two adjacent entries from one.
    function perturb(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(4, 2);
        (TensorType a, TensorType y) = (operator.typeOf(0), operator.output);
        _expectTypes(operator, a);
        int256 shift = operator.shift(1);

        (uint256 m, uint256 v) = (element / a.row(), element % a.row());
        int256 mantissa = windows.read(0, a, element);
        bool below = mantissa < Tails.leastOf(operator, 1, m, windows);
        Control memory control = Controls.read(operator, 2, a.rows(), m, windows);
        if (below) return -y.limit();

        // SAFETY: a shift from 0 to 40; noise is within 2^32, so the sum is within 2^72.
        // forge-lint: disable-next-line(unsafe-typecast)
        mantissa *= int256(1 << uint256(EXPONENT - a.exponent()));
        mantissa += _noise(operator, control, v, windows);
        return FixedPoint.rescaleHalfEven(mantissa, shift, y.bits());
    }

    function _expectTypes(Operator calldata operator, TensorType a) private pure {
        Operands.ensure(operator.output.sameShape(a) && a.bits() <= 32 && operator.typeOf(2).bits() <= 32);
        Operands.ensure(a.exponent() <= EXPONENT && a.exponent() >= EXPONENT - MAX_LEFT_SHIFT);
        TensorType table = operator.typeOf(3);
        Operands.ensure(table.elements() == OCTAVE * OCTAVES && table.bits() <= 32);
    }

    /// @dev `τ·g` for column `v`. At no temperature nothing is drawn.
    function _noise(Operator calldata operator, Control memory control, uint256 v, Window[][] calldata windows)
        private
        pure
        returns (int256)
    {
        if (control.temperature <= 0) return 0;
        return control.temperature * _draw(_word(control, v), operator.typeOf(3), windows);
    }

    /// @dev The draw for column `v`, 32 bits.
    function _word(Control memory control, uint256 v) private pure returns (uint256 word) {
        (uint256 low, uint256 high) = (_low32(control.seedLow), _low32(control.seedHigh));
        // SAFETY: a column is below 2^32.
        // One word of the four is asked for.
        // slither-disable-next-line unused-return
        (word,,,) = Philox.block10(low, high, v, _low32(control.position), 0, 0);
    }

    /// @dev A draw of the standard Gumbel distribution with 16 fraction bits, from a word of 32 that are uniform.
    function _draw(uint256 word, TensorType table, Window[][] calldata windows) private pure returns (int256) {
        (uint256 entry, uint256 rest) = cell(word);
        int256 y = Tables.line(windows, 3, table, entry, rest, 8);
        return FixedPoint.rescaleHalfEven(y, 8, NOISE_BITS);
    }

    /// @notice The step of the table that a word of 32 bits falls into, and how many 1/256 of it: the leading zeros
    /// name an octave, the 8 bits after the leading one the step, the next 8 the rest.
    function cell(uint256 word) internal pure returns (uint256 entry, uint256 rest) {
        // 224 zeros come before the 32 bits.
        uint256 octave = LibBit.clz(word) - 224;
        // Of a word of zeros, as if its last bit were 1.
        if (octave == OCTAVES) octave = OCTAVES - 1;
        uint256 place = ((word << (octave + 1)) & type(uint32).max) >> 16;
        return (OCTAVE * octave + (place >> 8), place & 0xff);
    }

    /// @dev `x` modulo 2^32.
    function _low32(int256 x) private pure returns (uint256) {
        // SAFETY of the cast: two's complement bits.
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint256(x) & type(uint32).max;
    }
}
