// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, StepContext, Window} from "../types/Types.sol";

/// @title Recomputation of one output element of one operator
/// @notice Rules N-11 to N-48 of `agents/num/SPEC.md`. Anybody can call it; it has no state, so the same arguments give the same number.
interface IStepVerifier {
    error UnknownOpcode(uint8 opcode);
    error MalformedOperator();
    error ElementOutOfRange(uint64 element);
    /// @dev The windows do not hold an element that the operator reads.
    error MissingElement(uint256 operand, uint64 element);

    /// @notice The mantissa of output element `element` (row-major index).
    /// @param windows for each operand, the opened parts of its canonical bytes; must hold every element the operator reads.
    function recompute(
        Operator calldata operator,
        uint64 element,
        StepContext calldata context,
        Window[][] calldata windows
    ) external view returns (int256 mantissa);
}
