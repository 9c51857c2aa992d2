// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../interfaces/IStepVerifier.sol";
import {TensorTypes} from "../libraries/encoding/TensorTypes.sol";
import {Attention} from "../libraries/operators/Attention.sol";
import {Choices} from "../libraries/operators/Choices.sol";
import {Elementwise} from "../libraries/operators/Elementwise.sol";
import {Embeddings} from "../libraries/operators/Embeddings.sol";
import {Gumbel} from "../libraries/operators/Gumbel.sol";
import {Linear} from "../libraries/operators/Linear.sol";
import {Norms} from "../libraries/operators/Norms.sol";
import {Opcodes} from "../libraries/operators/Opcodes.sol";
import {Positions} from "../libraries/operators/Positions.sol";
import {Reductions} from "../libraries/operators/Reductions.sol";
import {Sampling} from "../libraries/operators/Sampling.sol";
import {Softmax} from "../libraries/operators/Softmax.sol";
import {Tables} from "../libraries/operators/Tables.sol";
import {Tails} from "../libraries/operators/Tails.sol";
import {Operator, StepContext, TensorType, Window} from "../types/Types.sol";
import {TrainingVerifier} from "./TrainingVerifier.sol";

/// @title StepVerifier: one output element of one operator
/// @notice Rules N-11 to N-37 of `agents/num/SPEC.md`, one function each in `libraries/operators`; what comes after is
/// asked of `TRAINING`, since the code of one contract does not hold all.
/// @dev The program checker decides off chain which programs are accepted; this contract decides what a number is. It
/// refuses every operator on which its arithmetic could differ from the definition, and beyond that checks only what
/// the result depends on: the shift that N-7 binds to the exponents is taken as it stands.
contract StepVerifier is IStepVerifier {
    using TensorTypes for TensorType;

    /// @notice Knows the opcodes after the last that is here. Made with this contract, so neither is ever without
    /// the other.
    IStepVerifier public immutable TRAINING = new TrainingVerifier();

    /// @inheritdoc IStepVerifier
    function recompute(
        Operator calldata operator,
        uint64 element,
        StepContext calldata context,
        Window[][] calldata windows
    ) external view returns (int256 mantissa) {
        if (operator.opcode > Opcodes.CHOOSE) return _askTraining();
        if (!operator.output.isValid()) revert MalformedOperator();
        if (element >= operator.output.elements()) revert ElementOutOfRange(element);

        uint8 opcode = operator.opcode;
        if (opcode == Opcodes.MAT_MUL) return Linear.matMul(operator, element, windows);
        if (opcode == Opcodes.TRANSPOSE) return Linear.transpose(operator, element, windows);
        if (opcode == Opcodes.COMBINE) return Elementwise.combine(operator, element, windows);
        if (opcode == Opcodes.SCALE) return Elementwise.scale(operator, element, windows);
        if (opcode == Opcodes.MUL) return Elementwise.mul(operator, element, windows);
        if (opcode == Opcodes.RELU) return Elementwise.relu(operator, element, windows);
        if (opcode == Opcodes.RELU_GRAD) return Elementwise.reluGrad(operator, element, windows);
        if (opcode == Opcodes.LOOKUP) return Tables.lookup(operator, element, windows);
        if (opcode == Opcodes.ROW_MAX) return Reductions.rowMax(operator, element, windows);
        if (opcode == Opcodes.EXP_NEG) return Tables.expNeg(operator, element, windows);
        if (opcode == Opcodes.ROW_SUM) return Reductions.rowSum(operator, element, windows);
        if (opcode == Opcodes.NORMALIZE) return Softmax.normalize(operator, element, windows);
        if (opcode == Opcodes.ONE_HOT_SUB) return Softmax.oneHotSub(operator, element, windows);
        if (opcode == Opcodes.SAMPLE) return Sampling.sample(operator, element, context, windows);
        if (opcode == Opcodes.SCALED_MAT_MUL) return Linear.scaledMatMul(operator, element, windows);
        if (opcode == Opcodes.HEAD_SCORES) return Attention.headScores(operator, element, windows);
        if (opcode == Opcodes.HEAD_MIX) return Attention.headMix(operator, element, windows);
        if (opcode == Opcodes.NORM) return Norms.norm(operator, element, windows);
        if (opcode == Opcodes.ROPE) return Positions.rope(operator, element, windows);
        if (opcode == Opcodes.GATHER) return Embeddings.gather(operator, element, windows);
        if (opcode == Opcodes.ROW_ABS_MAX) return Reductions.rowAbsMax(operator, element, windows);
        if (opcode == Opcodes.ROW_ARG_MAX) return Choices.rowArgMax(operator, element, windows);
        if (opcode == Opcodes.ROW_PICK) return Choices.rowPick(operator, element, windows);
        if (opcode == Opcodes.TAIL_SUM) return Tails.tailSum(operator, element, windows);
        if (opcode == Opcodes.THRESHOLD) return Tails.threshold(operator, element, windows);
        if (opcode == Opcodes.PERTURB) return Gumbel.perturb(operator, element, windows);
        if (opcode == Opcodes.CHOOSE) return Choices.choose(operator, element, windows);
        revert UnknownOpcode(opcode);
    }

    /// @dev What `TRAINING` answers to this call as it came, number or error.
    function _askTraining() private view returns (int256 mantissa) {
        address training = address(TRAINING);
        // SAFETY: writes beyond what is allocated, and to scratch space. The contract is ours: it reverts or gives
        // one word.
        assembly ("memory-safe") {
            let free := mload(0x40)
            calldatacopy(free, 0, calldatasize())
            if iszero(staticcall(gas(), training, free, calldatasize(), 0, 32)) {
                returndatacopy(free, 0, returndatasize())
                revert(free, returndatasize())
            }
            mantissa := mload(0)
        }
    }
}
