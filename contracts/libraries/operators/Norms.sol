// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {RowMoments} from "../arithmetic/RowMoments.sol";
import {Mantissas} from "../encoding/Mantissas.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "../operands/Operands.sol";
import {Parts} from "../operands/Parts.sol";

/// @title LayerNorm and RMSNorm, and what they multiply a row by (N-28, N-40)
/// @dev Mean and deviations are f places finer than the row, their squares 2·f: the wider the row, the fewer.
library Norms {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @dev Most bits of a row, which are those of the exponent of the normalised value, too, and largest f.
    uint256 private constant MAX_BITS = 24;
    uint256 private constant MAX_PLACES = 4;
    int256 private constant MAX_EPSILON = (1 << 60) - 1;
    /// @dev Least shift of N-40: less the largest j, it is one of N-2.
    int256 private constant MIN_INVERSE_SHIFT = -32;

    /// @notice `rescale(n·gain[k] + bias[k]·2^t, shift)`. Operands x, gain, bias; attributes center, epsilon,
    /// bias_shift, shift. Reads the K elements of row m from one window, `gain[k]` and `bias[k]`.
    function norm(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(3, 4);
        TensorType x = operator.typeOf(0);
        uint256 length = operator.typeOf(1).elements();
        Operands.ensure(operator.output.sameShape(x));
        Operands.ensure(length <= Operands.MAX_REDUCTION && x.row() % length == 0);

        uint256 k = element % length;
        // SAFETY: n is within 2^25, gain and bias within 2^15 and t within 40, so the sum is within 2^56.
        int256 n = _normalised(operator, windows.run(0, x, element - k, length), length, k);
        int256 sum = n * _readOfColumn(operator, 1, length, k, windows);
        sum += _readOfColumn(operator, 2, length, k, windows) * int256(1 << uint256(operator.attribute(2, 0, 40)));
        return FixedPoint.rescaleHalfEven(sum, operator.shift(3), operator.output.bits());
    }

    /// @dev `(x[k] − mean)/√(Σ(x − mean)² + ε)` with exponent 24 − f, for the row of `length` mantissas at `position`.
    function _normalised(Operator calldata operator, uint256 position, uint256 length, uint256 k)
        private
        pure
        returns (int256)
    {
        uint256 width = operator.typeOf(0).width();
        uint256 places = _places(operator);
        (int256 mean, uint256 v) = _moments(operator, position, length, places);
        (int256 inverse, int256 j) = _inverseRoot(v);
        // SAFETY: a deviation is within 2^25. Of the cast: at most 4.
        int256 deviation = (Mantissas.load(position + k * width, width) << places) - mean;
        // forge-lint: disable-next-line(unsafe-typecast)
        return FixedPoint.rescaleHalfEven(deviation * inverse, 30 + int256(places) - j, MAX_BITS + 2 - places);
    }

    /// @notice `rescale(R, shift − j)` of N-28's R and j for a part of a row. Attributes center, epsilon, shift. Reads
    /// the part from one window.
    function inverseNorm(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 3);
        TensorType x = operator.typeOf(0);
        uint256 length = Parts.reducedLength(operator);
        int256 shift = operator.attribute(2, MIN_INVERSE_SHIFT, FixedPoint.MAX_SHIFT);
        // How far 1/√v is to be shifted does not depend on the mean.
        // slither-disable-next-line unused-return
        (, uint256 v) = _moments(operator, windows.run(0, x, element * length, length), length, _places(operator));
        (int256 inverse, int256 j) = _inverseRoot(v);
        return FixedPoint.rescaleHalfEven(inverse, shift - j, operator.output.bits());
    }

    /// @dev R and j of N-28: `1/√v` with exponent 54 + j, at most 2^24, and j, 0 to 30.
    function _inverseRoot(uint256 v) private pure returns (int256 inverse, int256) {
        // INVARIANT: 0 < v < 2^61, so j is from 0 to 30 and the root from 2^30 to 2^31.
        uint256 j = (61 - Math.log2(v)) / 2;
        // SAFETY of the casts: at most 2^24, and 30.
        // forge-lint: disable-next-line(unsafe-typecast)
        return (int256((1 << 54) / Math.sqrt(v << (2 * j))), int256(j));
    }

    /// @dev f of N-28, for operand 0.
    function _places(Operator calldata operator) private pure returns (uint256) {
        uint256 bits = operator.typeOf(0).bits();
        Operands.ensure(bits <= MAX_BITS);
        return Math.min(MAX_BITS - bits, MAX_PLACES);
    }

    /// @dev `μ` and `v` of N-28: the mean of `2^f·x`, or 0, and `Σ(2^f·x − μ)² + epsilon`.
    function _moments(Operator calldata operator, uint256 position, uint256 length, uint256 places)
        private
        pure
        returns (int256 mean, uint256)
    {
        (int256 sum, int256 squares) = RowMoments.sums(position, length, operator.typeOf(0).width());
        int256 v = (squares << (2 * places)) + operator.attribute(1, 1, MAX_EPSILON);
        if (operator.attribute(0, 0, 1) == 1) {
            // SAFETY of the casts: at most 4096.
            // forge-lint: disable-next-line(unsafe-typecast)
            int256 count = int256(length);
            sum <<= places;
            mean = FixedPoint.divHalfUp(sum, count);
            v += mean * (count * mean - 2 * sum);
        }
        // SAFETY of the cast: a sum of squares and an epsilon of at least 1.
        // forge-lint: disable-next-line(unsafe-typecast)
        return (mean, uint256(v));
    }

    /// @dev Element `k` of a vector operand that has one element for each column.
    function _readOfColumn(
        Operator calldata operator,
        uint256 operand,
        uint256 columns,
        uint256 k,
        Window[][] calldata windows
    ) private pure returns (int256) {
        TensorType t = operator.typeOf(operand);
        Operands.ensure(t.elements() == columns && t.bits() <= 16);
        return windows.read(operand, t, k);
    }
}
