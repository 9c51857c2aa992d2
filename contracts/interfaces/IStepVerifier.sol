// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Operator, StepContext, Window} from "../types/Types.sol";

/// @title Recomputation of one output element of one operator
/// @notice Rules N-11 and the following of `agents/num/SPEC.md`. Anyone may call. The contract has no state, so the
/// same arguments always give the same number.
interface IStepVerifier {
    /// @notice No rule defines this opcode.
    /// @param opcode the operator's opcode
    error UnknownOpcode(uint8 opcode);

    /// @notice The operator's types, operands or attributes are not those that its rule allows.
    error MalformedOperator();

    /// @notice The output has no such element.
    /// @param element row-major index of the element
    error ElementOutOfRange(uint64 element);

    /// @notice The windows do not hold an element that the operator reads.
    /// @param operand index of the operand
    /// @param element row-major index of the missing element
    error MissingElement(uint256 operand, uint64 element);

    /// @notice Computes one element of an operator's output.
    /// @param operator opcode, types and attributes
    /// @param element row-major index of the output element
    /// @param context job key and step, for operators that draw random words or follow a schedule
    /// @param windows for each operand, the opened parts of its canonical bytes (C-1); they must hold every element
    /// that the operator reads
    /// @return mantissa the element's mantissa under the output's exponent
    function recompute(
        Operator calldata operator,
        uint64 element,
        StepContext calldata context,
        Window[][] calldata windows
    ) external view returns (int256 mantissa);
}
