// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {RowReduce} from "../arithmetic/RowReduce.sol";
import {RowTails} from "../arithmetic/RowTails.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Control, Controls} from "../operands/Controls.sol";
import {Operands} from "../operands/Operands.sol";
import {Parts} from "../operands/Parts.sol";

/// @title What reaches a threshold, and the search for the threshold (N-34, N-35)
/// @dev A tensor with so many elements for each row is told by its number of elements; its dimensions do not enter
/// the result.
library Tails {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    int256 private constant WHOLE_SHARE = 1 << 16;

    /// @notice `rescale(Σ (a[m,v] ≥ t[m] + bound ? u : 0), shift)` over a part of a row, u being `w[m,v]` or 1.
    /// Operands a, w, t; attributes bound, weighted, shift. Reads the part from one window, that of w, if weighted,
    /// from one, and `t[m]`.
    function tailSum(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(3, 3);
        TensorType a = operator.typeOf(0);
        Operands.ensure(operator.typeOf(1).elements() == a.elements() && operator.typeOf(1).bits() <= 32);
        bool weighted = operator.attribute(1, 0, 1) == 1;
        uint256 length = Parts.reducedLength(operator);
        uint256 first = element * length;

        int256 least = leastOf(operator, 2, first / a.row(), windows);
        uint256[] memory tail = RowTails.reaching(windows.run(0, a, first, length), length, a.width(), least);
        // SAFETY of the cast: at most 4096.
        // forge-lint: disable-next-line(unsafe-typecast)
        int256 sum = weighted ? _weight(operator, tail, first, length, windows) : int256(RowTails.count(tail));
        return FixedPoint.rescaleHalfEven(sum, operator.shift(2), operator.output.bits());
    }

    /// @dev `Σ w[first + i]` over those of `length` elements that are in `tail`.
    function _weight(
        Operator calldata operator,
        uint256[] memory tail,
        uint256 first,
        uint256 length,
        Window[][] calldata windows
    ) private pure returns (int256) {
        TensorType w = operator.typeOf(1);
        return RowTails.sum(tail, windows.run(1, w, first, length), length, w.width());
    }

    /// @notice The least mantissa that counts in row `m` of operand 0: `t[m] + bound`, t being operand `operand`, the
    /// bound attribute 0. After `expectForm`.
    function leastOf(Operator calldata operator, uint256 operand, uint256 m, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        TensorType t = operator.typeOf(operand);
        Operands.ensure(t.elements() == operator.typeOf(0).rows());
        return windows.read(operand, t, m) + operator.coefficient(0);
    }

    /// @notice `clamp(t[m] + step)` if what reaches that is enough, else `t[m]`. Operands t, counts, masses, totals,
    /// controls; attribute step. Reads `t[m]` and the row of each other operand, each from one window.
    function threshold(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(5, 1);
        TensorType t = operator.typeOf(0);
        Operands.ensure(TensorType.unwrap(operator.output) == TensorType.unwrap(t));
        (TensorType masses, TensorType totals) = (operator.typeOf(2), operator.typeOf(3));
        // INVARIANT: a mass and a total are counted in the same unit.
        Operands.ensure(masses.samePrecision(totals) && masses.bits() <= 32);
        int256 step = operator.attribute(0, 0, Operands.COEFFICIENT - 1);

        int256 mantissa = windows.read(0, t, element);
        if (!_isEnough(operator, element, windows)) return mantissa;
        return FixedPoint.clamp(mantissa + step, t.bits());
    }

    /// @dev Whether there are as many as asked for, or they weigh as large a share.
    function _isEnough(Operator calldata operator, uint256 m, Window[][] calldata windows) private pure returns (bool) {
        uint256 rows = operator.output.elements();
        uint256 parts = operator.perRow(1, rows);
        Operands.ensure(operator.perRow(2, rows) == parts && operator.perRow(3, rows) == parts);
        Control memory control = Controls.read(operator, 4, rows, m, windows);
        (int256 k, int256 q) = (control.candidates, control.share);
        if (k < 1) k = 1;
        if (q < 1) q = 1;
        if (q > WHOLE_SHARE) q = WHOLE_SHARE;

        int256 count = _sumOfRow(operator, 1, m, parts, windows);
        int256 mass = _sumOfRow(operator, 2, m, parts, windows);
        int256 total = _sumOfRow(operator, 3, m, parts, windows);
        // SAFETY: sums of masses are within 2^43.
        return count >= k || WHOLE_SHARE * mass >= q * total;
    }

    /// @dev `Σ_j x[m,j]` of operand `operand`, which has `parts` elements for each row.
    function _sumOfRow(
        Operator calldata operator,
        uint256 operand,
        uint256 m,
        uint256 parts,
        Window[][] calldata windows
    ) private pure returns (int256) {
        TensorType x = operator.typeOf(operand);
        return RowReduce.sum(windows.run(operand, x, m * parts, parts), parts, x.width());
    }
}
