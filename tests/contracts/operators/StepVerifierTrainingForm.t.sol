// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../../contracts/interfaces/IStepVerifier.sol";
import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {OperatorTest} from "../verifier/OperatorTest.sol";
import {Tensor} from "../verifier/VerifierTest.sol";

/// @notice As `StepVerifierForm`, of the operators that training adds; and that the contract which knows them answers
/// as the one does that asks it.
contract StepVerifierTrainingFormTest is OperatorTest {
    using TensorTypes for TensorType;

    function test_attributeRanges() public {
        int64 c = 2 ** 40;
        int64 word = 2 ** 32;
        range(Opcodes.ROW_COMBINE, 0, 1 - c, c - 1);
        range(Opcodes.ROW_COMBINE, 1, 1 - c, c - 1);
        range(Opcodes.ROW_COMBINE, 2, -63, 63);
        range(Opcodes.ROW_MUL, 0, -63, 63);
        range(Opcodes.INVERSE_NORM, 0, 0, 1);
        range(Opcodes.INVERSE_NORM, 1, 1, 2 ** 60 - 1);
        range(Opcodes.INVERSE_NORM, 2, -32, 63);
        range(Opcodes.GATHER_GRAD, 0, -63, 63);
        range(Opcodes.RATIO, 0, 0, 40);
        range(Opcodes.RATIO, 1, 1, c - 1);
        range(Opcodes.SHRINK, 0, 1, 2 ** 31 - 1);
        range(Opcodes.SHRINK, 1, 0, 30);
        range(Opcodes.GROUP_SUM, 1, -63, 63);
        range(Opcodes.DROPOUT, 0, 1, word);
        range(Opcodes.DROPOUT, 1, 0, word - 1);
        range(Opcodes.DROPOUT, 2, 1 - c, c - 1);
        range(Opcodes.DROPOUT, 3, -63, 63);
        // Rows of 6, of which 5 are taken.
        range(Opcodes.SLICE, 0, 0, 1);
        range(Opcodes.DITHER, 0, 0, 32);
        range(Opcodes.DITHER, 1, 0, word - 1);
        range(Opcodes.ROW_SHIFT, 0, 2, 64);
        range(Opcodes.SHIFTED_MAT_MUL, 0, 0, 2);
        range(Opcodes.SHIFTED_MAT_MUL, 1, -32, 63);
    }

    /// @notice Attributes of a dropped element are looked at, too.
    function test_attributesOfTheDropped() public {
        (Operator memory op, Tensor[] memory inputs) = good(Opcodes.DROPOUT);
        op.attributes[0] = 1;
        assertEq(verifier.recompute(op, 0, context, new Window[][](0)), 0);
        op.attributes[2] = 2 ** 40;
        refuses(op, wholeWindows(inputs));
        (op.attributes[2], op.attributes[3]) = (1, 64);
        refuses(op, wholeWindows(inputs));
    }

    /// @notice Rows of six elements and of three: heads that do not divide both, or do not fit into the latter.
    function test_heads() public {
        (Operator memory op, Tensor[] memory inputs) = good(Opcodes.GROUP_SUM);
        int64[7] memory refused = [int64(0), -1, -3, 1, 3, 4, 7];
        for (uint256 i = 0; i < refused.length; ++i) {
            op.attributes[0] = refused[i];
            refuses(op, wholeWindows(inputs));
        }
        op.attributes[0] = 2;
        verifier.recompute(op, 0, context, wholeWindows(inputs));
        // 129 heads of a group are too many, 128 are not.
        inputs = list(filled(matrix(8, 3, 2, 129)));
        op = operatorOf(Opcodes.GROUP_SUM, matrix(16, 3, 2, 1), inputs, ints(129, 0));
        refuses(op, wholeWindows(inputs));
        inputs = list(filled(matrix(8, 3, 2, 128)));
        op = operatorOf(Opcodes.GROUP_SUM, matrix(16, 3, 2, 1), inputs, ints(128, 0));
        assertEq(verifier.recompute(op, 0, context, wholeWindows(inputs)), 192);
    }

    function test_shapesAndWidths() public {
        swap(Opcodes.ROW_COMBINE, 0, matrix(8, 3, 6, 4));
        swap(Opcodes.ROW_COMBINE, 1, vector(8, 3, 5));
        swap(Opcodes.ROW_COMBINE, 1, vector(8, 3, 48));
        swap(Opcodes.ROW_COMBINE, 9, matrix(9, 0, 6, 4));
        swap(Opcodes.ROW_MUL, 0, vector(8, 3, 24));
        swap(Opcodes.ROW_MUL, 1, vector(8, 3, 7));
        swap(Opcodes.ROW_MUL, 9, matrix(9, 0, 6, 4));
        swap(Opcodes.INVERSE_NORM, 0, matrix(25, 3, 4, 6));
        swap(Opcodes.INVERSE_NORM, 9, vector(32, 20, 5));
        swap(Opcodes.INVERSE_NORM, 9, vector(32, 20, 3));
        swap(Opcodes.INVERSE_NORM, 9, vector(32, 20, 48));
        swap(Opcodes.GATHER_GRAD, 0, vector(8, 3, 24));
        swap(Opcodes.GATHER_GRAD, 0, cube(8, 3, 1, 4, 6));
        swap(Opcodes.GATHER_GRAD, 0, matrix(8, 3, 5, 6));
        swap(Opcodes.GATHER_GRAD, 1, vector(8, 0, 5));
        swap(Opcodes.GATHER_GRAD, 9, matrix(16, 0, 4, 5));
        swap(Opcodes.GATHER_GRAD, 9, cube(16, 0, 1, 5, 4));
        swap(Opcodes.GATHER_GRAD, 9, vector(16, 0, 4));
        swap(Opcodes.RATIO, 0, matrix(8, 3, 6, 4));
        swap(Opcodes.RATIO, 1, matrix(30, 2, 6, 4));
        swap(Opcodes.RATIO, 1, vector(30, 2, 24));
        swap(Opcodes.RATIO, 9, matrix(16, 10, 6, 4));
        swap(Opcodes.SHRINK, 9, matrix(16, 8, 6, 4));
        swap(Opcodes.AT_STEP, 0, cube(8, 3, 1, 4, 6));
        swap(Opcodes.AT_STEP, 0, vector(8, 3, 6));
        swap(Opcodes.AT_STEP, 9, vector(8, 3, 5));
        swap(Opcodes.AT_STEP, 9, vector(9, 3, 6));
        swap(Opcodes.AT_STEP, 9, vector(8, 4, 6));
        swap(Opcodes.AT_STEP, 9, matrix(8, 3, 4, 6));
        swap(Opcodes.GROUP_SUM, 9, matrix(9, 3, 4, 4));
        swap(Opcodes.GROUP_SUM, 9, matrix(9, 3, 4, 12));
        swap(Opcodes.GROUP_SUM, 9, matrix(9, 3, 3, 3));
        swap(Opcodes.DROPOUT, 9, matrix(9, 3, 6, 4));
        swap(Opcodes.SLICE, 0, vector(8, 3, 24));
        swap(Opcodes.SLICE, 0, cube(8, 3, 1, 4, 6));
        swap(Opcodes.SLICE, 0, matrix(8, 3, 5, 6));
        swap(Opcodes.SLICE, 9, matrix(9, 3, 4, 5));
        swap(Opcodes.SLICE, 9, matrix(8, 2, 4, 5));
        swap(Opcodes.SLICE, 9, matrix(8, 3, 4, 6));
        swap(Opcodes.SLICE, 9, matrix(8, 3, 4, 7));
        swap(Opcodes.SLICE, 9, cube(8, 3, 1, 4, 5));
        swap(Opcodes.DITHER, 1, vector(30, 3, 6));
        swap(Opcodes.DITHER, 1, vector(31, 3, 4));
        swap(Opcodes.DITHER, 9, matrix(16, 8, 6, 4));
        swap(Opcodes.ROW_SHIFT, 9, vector(8, 0, 3));
        swap(Opcodes.ROW_SHIFT, 9, vector(8, 0, 5));
        swap(Opcodes.SHIFT_ROWS, 1, vector(8, 0, 3));
        swap(Opcodes.SHIFT_ROWS, 1, vector(8, 0, 24));
        swap(Opcodes.SHIFT_ROWS, 9, matrix(8, 3, 6, 4));
        swap(Opcodes.SHIFTED_MAT_MUL, 0, matrix(8, 3, 4, 3));
        swap(Opcodes.SHIFTED_MAT_MUL, 0, cube(8, 3, 1, 4, 6));
        swap(Opcodes.SHIFTED_MAT_MUL, 1, matrix(16, 0, 5, 4));
        swap(Opcodes.SHIFTED_MAT_MUL, 1, matrix(7, 0, 5, 7));
        swap(Opcodes.SHIFTED_MAT_MUL, 2, vector(8, 0, 5));
        swap(Opcodes.SHIFTED_MAT_MUL, 3, vector(16, 4, 4));
        swap(Opcodes.SHIFTED_MAT_MUL, 9, matrix(24, 0, 5, 4));
    }

    // What training changed of other operators.

    /// @notice What hides elements belongs to whole rows.
    function test_causalParts() public {
        Tensor memory a = filled(matrix(8, 3, 4, 6));
        Operator memory op = operatorOf(Opcodes.ROW_MAX, matrix(8, 3, 4, 2), list(a), ints(1));
        refuses(op, wholeWindows(list(a)));
        op.attributes[0] = 0;
        verifier.recompute(op, 0, context, wholeWindows(list(a)));
    }

    /// @notice Matrices of matrices of matrices are not transposed, nor is one batch made another.
    function test_batchesOfTranspose() public {
        Tensor memory a = filled(cube(8, 3, 2, 3, 4));
        Operator memory op = operatorOf(Opcodes.TRANSPOSE, cube(8, 3, 2, 4, 3), list(a), ints());
        verifier.recompute(op, 0, context, wholeWindows(list(a)));
        TensorType[5] memory refused =
            [cube(8, 3, 2, 3, 4), cube(8, 3, 1, 4, 3), cube(8, 3, 4, 2, 3), cube(8, 3, 3, 4, 2), matrix(8, 3, 8, 3)];
        for (uint256 i = 0; i < refused.length; ++i) {
            op.output = refused[i];
            refuses(op, wholeWindows(list(a)));
        }
    }

    /// @notice The contract that knows them refuses what is not its, and checks output and element itself.
    function test_trainingByItself() public {
        IStepVerifier training = verifier.TRAINING();
        for (uint8 opcode = 0; opcode <= LAST_OPCODE + 1; ++opcode) {
            bool known = opcode > Opcodes.CHOOSE && opcode <= LAST_OPCODE;
            (Operator memory op, Tensor[] memory inputs) = good(known ? opcode : Opcodes.SHRINK);
            op.opcode = opcode;
            Window[][] memory windows = wholeWindows(inputs);
            if (!known) vm.expectRevert(abi.encodeWithSelector(IStepVerifier.UnknownOpcode.selector, opcode));
            int256 mantissa = training.recompute(op, 1, context, windows);
            if (!known) continue;
            assertEq(verifier.recompute(op, 1, context, windows), mantissa);
            uint64 beyond = uint64(op.output.elements());
            vm.expectRevert(abi.encodeWithSelector(IStepVerifier.ElementOutOfRange.selector, beyond));
            training.recompute(op, beyond, context, windows);
            op.output = TensorType.wrap(0);
            vm.expectRevert(IStepVerifier.MalformedOperator.selector);
            training.recompute(op, 0, context, windows);
        }
    }

    /// @notice Arguments cut short, or more than there are, find the same answer as in one contract: a revert, or
    /// the number.
    function test_asItWasAsked() public view {
        (Operator memory op, Tensor[] memory inputs) = good(Opcodes.ROW_MUL);
        bytes memory call = abi.encodeCall(IStepVerifier.recompute, (op, 0, context, wholeWindows(inputs)));
        (bool answered, bytes memory answer) = address(verifier).staticcall(bytes.concat(call, hex"1234"));
        assertTrue(answered);
        assertEq(answer, abi.encode(int256(0)));
        (answered,) = address(verifier).staticcall(slice(call, 0, call.length - 32));
        assertFalse(answered);
    }
}
