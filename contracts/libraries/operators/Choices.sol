// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, TensorType, Window} from "../../types/Types.sol";
import {FixedPoint} from "../arithmetic/FixedPoint.sol";
import {RowSearch} from "../arithmetic/RowSearch.sol";
import {Mantissas} from "../encoding/Mantissas.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Controls} from "../operands/Controls.sol";
import {Operands} from "../operands/Operands.sol";
import {Parts} from "../operands/Parts.sol";

/// @title The place of a row's largest element, in parts and put together, and what stands at a place (N-32,
/// N-33, N-37)
/// @dev A tensor with so many elements for each row is told by its number of elements; its dimensions do not enter
/// the result.
library Choices {
    using Operands for Operator;
    using Operands for Window[][];
    using TensorTypes for TensorType;

    /// @dev Bits of a place; its exponent is 0.
    uint256 private constant PLACE_BITS = 32;

    /// @notice The place, in its part of a row, of the first of the largest elements. Reads the part from one window.
    function rowArgMax(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(1, 0);
        _expectPlaces(operator.output);
        // SAFETY of the cast: below 4096.
        // forge-lint: disable-next-line(unsafe-typecast)
        return int256(_firstMax(operator, 0, element, Parts.reducedLength(operator), windows));
    }

    /// @notice The element of a part of a row at `place`, limited to the part. Operands a, place. Reads one element
    /// of each.
    function rowPick(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(2, 0);
        (TensorType a, TensorType places) = (operator.typeOf(0), operator.typeOf(1));
        Operands.ensure(operator.output.samePrecision(a) && places.elements() == operator.output.elements());
        uint256 length = Parts.length(operator);
        uint256 place = FixedPoint.limited(windows.read(1, places, element), length - 1);
        return windows.read(0, a, element * length + place);
    }

    /// @notice The place in a row of the best of its parts: `clamp(j·length + place[m,j])`, j being the first that
    /// `best` is largest at; 0 if none is to be chosen. Operands place, best, controls. Reads the parts' rows of either
    /// and a row of controls, each from one window.
    function choose(Operator calldata operator, uint256 element, Window[][] calldata windows)
        internal
        pure
        returns (int256)
    {
        operator.expectForm(3, 1);
        _expectPlaces(operator.output);
        uint256 rows = operator.output.elements();
        uint256 parts = operator.perRow(0, rows);
        Operands.ensure(operator.perRow(1, rows) == parts);
        int256 length = operator.attribute(0, 1, int256(Operands.MAX_REDUCTION));

        TensorType places = operator.typeOf(0);
        uint256 position = windows.run(0, places, element * parts, parts);
        uint256 j = _firstMax(operator, 1, element, parts, windows);
        if (Controls.read(operator, 2, rows, element, windows).isChosen == 0) return 0;
        int256 place = Mantissas.load(position + j * places.width(), places.width());
        // SAFETY of the cast: j is below 4096, and so is the length at most.
        // forge-lint: disable-next-line(unsafe-typecast)
        return FixedPoint.clamp(int256(j) * length + place, PLACE_BITS);
    }

    /// @dev The place of the first of the largest of the `length` elements of operand `operand` that belong to
    /// output `element`.
    function _firstMax(
        Operator calldata operator,
        uint256 operand,
        uint256 element,
        uint256 length,
        Window[][] calldata windows
    ) private pure returns (uint256) {
        TensorType t = operator.typeOf(operand);
        uint256 position = windows.run(operand, t, element * length, length);
        return RowSearch.firstMax(position, length, t.width());
    }

    function _expectPlaces(TensorType y) private pure {
        Operands.ensure(y.bits() == PLACE_BITS && y.exponent() == 0);
    }
}
