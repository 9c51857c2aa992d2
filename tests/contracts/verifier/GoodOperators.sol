// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType} from "../../../contracts/types/Types.sol";
import {Tensor, VerifierTest} from "./VerifierTest.sol";

/// @title One small operator of each opcode, to be spoilt
abstract contract GoodOperators is VerifierTest {
    using TensorTypes for TensorType;

    uint8 internal constant LAST_OPCODE = Opcodes.SHIFTED_MAT_MUL;

    /// @dev A good operator of each opcode, over tensors of 1 and 2.
    function good(uint8 opcode) internal pure returns (Operator memory op, Tensor[] memory inputs) {
        Tensor memory a = filled(matrix(8, 3, 4, 6));
        Tensor memory vector4 = filled(vector(8, 3, 4));
        if (opcode == Opcodes.MAT_MUL) {
            inputs = list(a, filled(matrix(7, 0, 5, 6)));
            op = operatorOf(opcode, matrix(8, 0, 4, 5), inputs, ints(2));
        } else if (opcode == Opcodes.TRANSPOSE) {
            op = operatorOf(opcode, matrix(8, 3, 6, 4), inputs = list(a), ints());
        } else if (opcode == Opcodes.COMBINE) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a, filled(vector(8, 3, 6))), ints(1, 2, 3));
        } else if (opcode == Opcodes.SCALE) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a), ints(5, 1));
        } else if (opcode == Opcodes.MUL) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a, filled(vector(8, 3, 6))), ints(1));
        } else if (opcode == Opcodes.RELU) {
            op = operatorOf(opcode, a.tensorType, inputs = list(a), ints());
        } else if (opcode == Opcodes.RELU_GRAD) {
            op = operatorOf(opcode, a.tensorType, inputs = list(a, filled(matrix(20, 0, 4, 6))), ints());
        } else if (opcode == Opcodes.LOOKUP) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a, filled(vector(16, 3, 9))), ints(0, -3, 4, 1));
        } else if (opcode == Opcodes.ROW_MAX) {
            op = operatorOf(opcode, vector4.tensorType, inputs = list(a), ints(0));
        } else if (opcode == Opcodes.EXP_NEG) {
            inputs = list(a, vector4, filled(vector(26, 24, 257)));
            op = operatorOf(opcode, matrix(26, 24, 4, 6), inputs, ints(23_637, 1, 0));
        } else if (opcode == Opcodes.ROW_SUM) {
            op = operatorOf(opcode, vector4.tensorType, inputs = list(a), ints(0));
        } else if (opcode == Opcodes.NORMALIZE) {
            op = operatorOf(opcode, matrix(16, 0, 4, 6), inputs = list(a, vector4), ints(8));
        } else if (opcode == Opcodes.ONE_HOT_SUB) {
            op = operatorOf(opcode, matrix(16, 0, 4, 6), inputs = list(a, vector4), ints(100, 0));
        } else if (opcode == Opcodes.SAMPLE) {
            op = operatorOf(opcode, matrix(8, 3, 3, 6), inputs = list(a), ints(0));
        } else {
            return _goodOfTransformers(opcode, a, vector4);
        }
    }

    /// @dev 3 tokens, 5 keys; 4 heads and 2 of keys and values, of 2.
    function _goodOfTransformers(uint8 opcode, Tensor memory a, Tensor memory vector4)
        private
        pure
        returns (Operator memory op, Tensor[] memory inputs)
    {
        if (opcode == Opcodes.SCALED_MAT_MUL) {
            inputs = list(a, filled(matrix(7, 0, 5, 4)), vector4, filled(vector(16, 4, 5)));
            op = operatorOf(opcode, matrix(16, 0, 4, 5), inputs, ints(1, 2));
        } else if (opcode == Opcodes.HEAD_SCORES) {
            inputs = list(filled(matrix(8, 0, 3, 8)), filled(matrix(7, 0, 5, 4)));
            op = operatorOf(opcode, cube(16, 0, 4, 3, 5), inputs, ints(4, 0));
        } else if (opcode == Opcodes.HEAD_MIX) {
            inputs = list(filled(cube(8, 0, 4, 3, 5)), filled(matrix(7, 0, 4, 5)));
            op = operatorOf(opcode, matrix(16, 0, 3, 8), inputs, ints(4, 0));
        } else if (opcode == Opcodes.NORM) {
            inputs = list(a, filled(vector(16, 3, 6)), filled(vector(8, 3, 6)));
            op = operatorOf(opcode, matrix(16, 0, 4, 6), inputs, ints(1, 1, 20, 20));
        } else if (opcode == Opcodes.ROPE) {
            inputs = list(filled(matrix(16, 0, 3, 8)), filled(matrix(16, 14, 4, 4)));
            op = operatorOf(opcode, matrix(16, 0, 3, 8), inputs, ints(2, 14));
        } else if (opcode == Opcodes.GATHER) {
            inputs = list(a, vector4, filled(vector(8, 0, 4)));
            op = operatorOf(opcode, matrix(16, 0, 3, 6), inputs, ints(1));
        } else if (opcode == Opcodes.ROW_ABS_MAX) {
            op = operatorOf(opcode, vector4.tensorType, inputs = list(a), ints());
        } else {
            return _goodOfSampling(opcode, a, vector4);
        }
    }

    /// @dev 4 rows, each in 2 parts.
    function _goodOfSampling(uint8 opcode, Tensor memory a, Tensor memory vector4)
        private
        pure
        returns (Operator memory op, Tensor[] memory inputs)
    {
        Tensor memory controls = filled(matrix(32, 0, 4, 7));
        Tensor memory parts = filled(matrix(16, 0, 4, 2));
        if (opcode == Opcodes.ROW_ARG_MAX) {
            op = operatorOf(opcode, matrix(32, 0, 4, 2), inputs = list(a), ints());
        } else if (opcode == Opcodes.ROW_PICK) {
            op = operatorOf(opcode, matrix(8, 3, 4, 2), inputs = list(a, parts), ints());
        } else if (opcode == Opcodes.TAIL_SUM) {
            inputs = list(a, filled(matrix(26, 24, 4, 6)), vector4);
            op = operatorOf(opcode, matrix(30, 24, 4, 2), inputs, ints(-1, 1, 0));
        } else if (opcode == Opcodes.THRESHOLD) {
            inputs = list(vector4, parts, filled(matrix(30, 24, 4, 2)), filled(matrix(30, 24, 4, 2)), controls);
            op = operatorOf(opcode, vector4.tensorType, inputs, ints(16));
        } else if (opcode == Opcodes.PERTURB) {
            inputs = list(a, vector4, controls, filled(vector(8, 16, 8224)));
            op = operatorOf(opcode, matrix(32, 12, 4, 6), inputs, ints(-1, 16));
        } else if (opcode == Opcodes.CHOOSE) {
            inputs = list(parts, filled(matrix(8, 3, 4, 2)), controls);
            op = operatorOf(opcode, vector(32, 0, 4), inputs, ints(3));
        } else {
            return _goodOfTraining(opcode, a, vector4);
        }
    }

    /// @dev 4 tokens, 5 rows of a table; 6 heads of one element in 3 groups.
    function _goodOfTraining(uint8 opcode, Tensor memory a, Tensor memory vector4)
        private
        pure
        returns (Operator memory op, Tensor[] memory inputs)
    {
        if (opcode == Opcodes.ROW_COMBINE) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a, vector4), ints(1, 2, 3));
        } else if (opcode == Opcodes.ROW_MUL) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a, vector4), ints(1));
        } else if (opcode == Opcodes.INVERSE_NORM) {
            op = operatorOf(opcode, matrix(32, 20, 4, 2), inputs = list(a), ints(1, 9, 27));
        } else if (opcode == Opcodes.GATHER_GRAD) {
            inputs = list(a, filled(vector(8, 0, 7)));
            op = operatorOf(opcode, matrix(16, 0, 5, 4), inputs, ints(3));
        } else if (opcode == Opcodes.RATIO) {
            inputs = list(a, filled(matrix(30, 2, 4, 6)));
            op = operatorOf(opcode, matrix(16, 10, 4, 6), inputs, ints(8, 5));
        } else if (opcode == Opcodes.SHRINK) {
            op = operatorOf(opcode, matrix(16, 8, 4, 6), inputs = list(a), ints(5, 8));
        } else if (opcode == Opcodes.AT_STEP) {
            op = operatorOf(opcode, vector(8, 3, 6), inputs = list(a), ints());
        } else if (opcode == Opcodes.GROUP_SUM) {
            op = operatorOf(opcode, matrix(9, 3, 4, 3), inputs = list(a), ints(6, 0));
        } else if (opcode == Opcodes.DROPOUT) {
            op = operatorOf(opcode, matrix(9, 3, 4, 6), inputs = list(a), ints(2 ** 32, 3, 2, 0));
        } else if (opcode == Opcodes.SLICE) {
            op = operatorOf(opcode, matrix(8, 3, 4, 5), inputs = list(a), ints(1));
        } else if (opcode == Opcodes.DITHER) {
            inputs = list(a, filled(vector(30, 3, 4)));
            op = operatorOf(opcode, matrix(16, 8, 4, 6), inputs, ints(8, 3));
        } else {
            return _goodOfWideRowsAndLater(opcode, a);
        }
    }

    /// @dev 4 rows of 6, each in 2 parts; 5 columns of 4 weights.
    function _goodOfWideRowsAndLater(uint8 opcode, Tensor memory a)
        private
        pure
        returns (Operator memory op, Tensor[] memory inputs)
    {
        Tensor memory shifts = filled(vector(8, 0, 4));
        if (opcode == Opcodes.ROW_SHIFT) {
            op = operatorOf(opcode, matrix(8, 0, 4, 2), inputs = list(a), ints(2));
        } else if (opcode == Opcodes.SHIFT_ROWS) {
            op = operatorOf(opcode, matrix(8, 3, 4, 6), inputs = list(a, shifts), ints());
        } else if (opcode == Opcodes.SHIFTED_MAT_MUL) {
            inputs = list(a, filled(matrix(7, 0, 5, 4)), shifts, filled(vector(16, 4, 5)));
            op = operatorOf(opcode, matrix(24, 0, 4, 5), inputs, ints(1, 7));
        }
    }

    function filled(TensorType tensorType) internal pure returns (Tensor memory t) {
        t.tensorType = tensorType;
        t.mantissas = new int256[](tensorType.elements());
        for (uint256 i = 0; i < t.mantissas.length; ++i) {
            t.mantissas[i] = int256(i % 2 + 1);
        }
    }
}
