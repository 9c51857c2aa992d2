// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../interfaces/IStepVerifier.sol";
import {TensorTypes} from "../libraries/encoding/TensorTypes.sol";
import {Chances} from "../libraries/operators/Chances.sol";
import {Gradients} from "../libraries/operators/Gradients.sol";
import {Norms} from "../libraries/operators/Norms.sol";
import {Opcodes} from "../libraries/operators/Opcodes.sol";
import {Roots} from "../libraries/operators/Roots.sol";
import {Runs} from "../libraries/operators/Runs.sol";
import {Selections} from "../libraries/operators/Selections.sol";
import {Shifts} from "../libraries/operators/Shifts.sol";
import {Operator, StepContext, TensorType, Window} from "../types/Types.sol";

/// @title TrainingVerifier: the operators of training, of wide rows and later ones, for `StepVerifier`
/// @notice Rules N-38 and the following of `agents/num/SPEC.md`, one function each in `libraries/operators`.
contract TrainingVerifier is IStepVerifier {
    using TensorTypes for TensorType;

    /// @inheritdoc IStepVerifier
    function recompute(
        Operator calldata operator,
        uint64 element,
        StepContext calldata context,
        Window[][] calldata windows
    ) external pure returns (int256 mantissa) {
        if (!operator.output.isValid()) revert MalformedOperator();
        if (element >= operator.output.elements()) revert ElementOutOfRange(element);

        uint8 opcode = operator.opcode;
        if (opcode == Opcodes.ROW_COMBINE) return Runs.rowCombine(operator, element, windows);
        if (opcode == Opcodes.ROW_MUL) return Runs.rowMul(operator, element, windows);
        if (opcode == Opcodes.INVERSE_NORM) return Norms.inverseNorm(operator, element, windows);
        if (opcode == Opcodes.GATHER_GRAD) return Gradients.gatherGrad(operator, element, windows);
        if (opcode == Opcodes.RATIO) return Roots.ratio(operator, element, windows);
        if (opcode == Opcodes.SHRINK) return Roots.shrink(operator, element, windows);
        if (opcode == Opcodes.AT_STEP) return Selections.atStep(operator, element, context, windows);
        if (opcode == Opcodes.GROUP_SUM) return Gradients.groupSum(operator, element, windows);
        if (opcode == Opcodes.DROPOUT) return Chances.dropout(operator, element, context, windows);
        if (opcode == Opcodes.SLICE) return Selections.slice(operator, element, windows);
        if (opcode == Opcodes.DITHER) return Chances.dither(operator, element, context, windows);
        if (opcode == Opcodes.ROW_SHIFT) return Shifts.rowShift(operator, element, windows);
        if (opcode == Opcodes.SHIFT_ROWS) return Shifts.shiftRows(operator, element, windows);
        if (opcode == Opcodes.SHIFTED_MAT_MUL) return Shifts.shiftedMatMul(operator, element, windows);
        revert UnknownOpcode(opcode);
    }
}
