// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../interfaces/IStepVerifier.sol";
import {TensorType, Window} from "../../types/Types.sol";
import {Mantissas} from "../encoding/Mantissas.sol";
import {TensorTypes} from "../encoding/TensorTypes.sol";
import {Operands} from "./Operands.sol";

/// @title Elements of an operand as far from each other, each from any window
/// @dev A search that goes on from the window that held the last element: where windows come in order, each is
/// passed once.
library Strides {
    using TensorTypes for TensorType;

    /// @notice The sum of `count` elements of operand `operand`, whose type is `t`: `first`, and then
    /// every `stride`-th.
    function sum(
        Window[][] calldata windows,
        uint256 operand,
        TensorType t,
        uint256 first,
        uint256 stride,
        uint256 count
    ) internal pure returns (int256 total) {
        if (operand >= windows.length) _miss(operand, first);
        // INVARIANT: padding is never read as an element.
        Operands.ensure(first + stride * (count - 1) < t.elements());
        Window[] calldata opened = windows[operand];
        uint256 current = 0;
        for (uint256 i = 0; i < count; ++i) {
            uint256 position;
            (current, position) = _next(opened, current, operand, t.width(), first + i * stride);
            total += Mantissas.load(position, t.width());
        }
    }

    /// @dev The window that holds `element`, the first one from `current` on and around, and the element's position
    /// in calldata.
    function _next(Window[] calldata opened, uint256 current, uint256 operand, uint256 width, uint256 element)
        private
        pure
        returns (uint256, uint256)
    {
        for (uint256 tried = 0; tried < opened.length; ++tried) {
            (bool found, uint256 position) = Operands.within(opened[current], element * width, (element + 1) * width);
            if (found) return (current, position);
            current = current + 1 == opened.length ? 0 : current + 1;
        }
        _miss(operand, element);
    }

    function _miss(uint256 operand, uint256 element) private pure {
        // SAFETY of the cast: a valid type has at most 2^37 elements.
        // forge-lint: disable-next-line(unsafe-typecast)
        revert IStepVerifier.MissingElement(operand, uint64(element));
    }
}
