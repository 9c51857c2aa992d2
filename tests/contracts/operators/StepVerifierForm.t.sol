// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../../contracts/interfaces/IStepVerifier.sol";
import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operand, Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {OperatorTest} from "../verifier/OperatorTest.sol";
import {Tensor} from "../verifier/VerifierTest.sol";

/// @notice What `StepVerifier` refuses: operators that no checked program holds, elements that do not exist. It never
/// gives a number for those; `StepVerifierWindows` is about what it reads.
contract StepVerifierFormTest is OperatorTest {
    using TensorTypes for TensorType;

    function test_goodOperatorsPass() public view {
        for (uint8 opcode = 1; opcode <= LAST_OPCODE; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = good(opcode);
            verifier.recompute(op, 0, context, wholeWindows(inputs));
        }
    }

    function testFuzz_unknownOpcode(uint8 opcode) public {
        vm.assume(opcode == 0 || opcode > LAST_OPCODE);
        (Operator memory op, Tensor[] memory inputs) = good(1);
        op.opcode = opcode;
        vm.expectRevert(abi.encodeWithSelector(IStepVerifier.UnknownOpcode.selector, opcode));
        verifier.recompute(op, 0, context, wholeWindows(inputs));
    }

    function testFuzz_elementOutOfRange(uint64 element) public {
        for (uint8 opcode = 1; opcode <= LAST_OPCODE; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = good(opcode);
            uint64 beyond = uint64(bound(element, op.output.elements(), type(uint64).max));
            vm.expectRevert(abi.encodeWithSelector(IStepVerifier.ElementOutOfRange.selector, beyond));
            verifier.recompute(op, beyond, context, wholeWindows(inputs));
        }
    }

    function test_wrongCounts() public {
        for (uint8 opcode = 1; opcode <= LAST_OPCODE; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = good(opcode);
            Window[][] memory windows = wholeWindows(inputs);
            (Operand[] memory operands, int64[] memory attributes) = (op.operands, op.attributes);
            for (uint256 count = 0; count < 7; ++count) {
                if (count == operands.length) continue;
                op.operands = new Operand[](count);
                for (uint256 i = 0; i < count; ++i) {
                    op.operands[i] = operands[i % operands.length];
                }
                refuses(op, windows);
            }
            op.operands = operands;
            for (uint256 count = 0; count < 6; ++count) {
                if (count == attributes.length) continue;
                op.attributes = new int64[](count);
                refuses(op, windows);
            }
        }
    }

    function test_invalidTypes() public {
        TensorType bad = TensorType.wrap(0);
        for (uint8 opcode = 1; opcode <= LAST_OPCODE; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = good(opcode);
            Window[][] memory windows = wholeWindows(inputs);
            for (uint256 i = 0; i < inputs.length; ++i) {
                op.operands[i].tensorType = bad;
                refuses(op, windows);
                // A stray bit in the gap.
                op.operands[i].tensorType = TensorType.wrap(TensorType.unwrap(inputs[i].tensorType) | (1 << 130));
                refuses(op, windows);
                op.operands[i].tensorType = inputs[i].tensorType;
            }
            op.output = bad;
            refuses(op, windows);
        }
    }

    /// @notice Every attribute has a range; both neighbours of it are refused, its ends are not.
    function test_attributeRanges() public {
        int64 c = 2 ** 40;
        range(Opcodes.MAT_MUL, 0, -63, 63);
        range(Opcodes.COMBINE, 0, 1 - c, c - 1);
        range(Opcodes.COMBINE, 1, 1 - c, c - 1);
        range(Opcodes.COMBINE, 2, -63, 63);
        range(Opcodes.SCALE, 0, 1 - c, c - 1);
        range(Opcodes.SCALE, 1, -63, 63);
        range(Opcodes.MUL, 0, -63, 63);
        range(Opcodes.LOOKUP, 0, -63, 63);
        range(Opcodes.LOOKUP, 1, 1 - c, c - 1);
        range(Opcodes.LOOKUP, 2, 1, 16);
        range(Opcodes.LOOKUP, 3, -63, 63);
        range(Opcodes.EXP_NEG, 0, 1, 2 ** 24 - 1);
        range(Opcodes.EXP_NEG, 1, -63, 63);
        range(Opcodes.ROW_SUM, 0, -63, 63);
        range(Opcodes.NORMALIZE, 0, 0, 32);
        range(Opcodes.ONE_HOT_SUB, 0, 0, c - 1);
        range(Opcodes.ONE_HOT_SUB, 1, -63, 63);
        range(Opcodes.SAMPLE, 0, 0, 2 ** 32 - 3);
    }

    function test_attributeRangesOfTransformers() public {
        range(Opcodes.ROW_MAX, 0, 0, 1);
        range(Opcodes.EXP_NEG, 2, 0, 1);
        // Row of 6, of which b takes 4.
        range(Opcodes.SCALED_MAT_MUL, 0, 0, 2);
        range(Opcodes.SCALED_MAT_MUL, 1, -63, 63);
        range(Opcodes.HEAD_SCORES, 1, -63, 63);
        range(Opcodes.HEAD_MIX, 1, -63, 63);
        range(Opcodes.NORM, 0, 0, 1);
        range(Opcodes.NORM, 1, 1, 2 ** 60 - 1);
        range(Opcodes.NORM, 2, 0, 40);
        range(Opcodes.NORM, 3, -63, 63);
        range(Opcodes.ROPE, 1, -63, 63);
        range(Opcodes.GATHER, 0, -63, 63);
    }

    function test_attributeRangesOfSampling() public {
        int64 c = 2 ** 40;
        range(Opcodes.TAIL_SUM, 0, 1 - c, c - 1);
        range(Opcodes.TAIL_SUM, 1, 0, 1);
        range(Opcodes.TAIL_SUM, 2, -63, 63);
        range(Opcodes.THRESHOLD, 0, 0, c - 1);
        range(Opcodes.PERTURB, 0, 1 - c, c - 1);
        range(Opcodes.PERTURB, 1, -63, 63);
        range(Opcodes.CHOOSE, 0, 1, 4096);
    }

    /// @notice Heads that do not divide what they are heads of.
    function test_heads() public {
        int64[6] memory refused = [int64(0), -1, -2, 3, 5, 2 ** 32];
        for (uint256 i = 0; i < refused.length; ++i) {
            refusesAttribute(Opcodes.HEAD_SCORES, 0, refused[i]);
            refusesAttribute(Opcodes.HEAD_MIX, 0, refused[i]);
            refusesAttribute(Opcodes.ROPE, 0, refused[i]);
        }
        // Queries divide, but not into so many heads; heads are too narrow for the table.
        refusesAttribute(Opcodes.HEAD_SCORES, 0, 1);
        refusesAttribute(Opcodes.HEAD_MIX, 0, 8);
        refusesAttribute(Opcodes.ROPE, 0, 4);
    }

    /// @notice A vector has no second-to-last dimension that tokens could be counted in.
    function test_causalVectors() public {
        Tensor memory a = filled(vector(8, 3, 6));
        Operator memory op = operatorOf(Opcodes.ROW_MAX, vector(8, 3, 1), list(a), ints(1));
        refuses(op, wholeWindows(list(a)));
        Tensor[] memory inputs = list(a, filled(vector(8, 3, 1)), filled(vector(26, 24, 257)));
        refuses(operatorOf(Opcodes.EXP_NEG, vector(26, 24, 6), inputs, ints(23_637, 1, 1)), wholeWindows(inputs));
    }

    /// @notice Operand or output types that do not go with each other.
    function test_shapesAndWidths() public {
        swap(Opcodes.MAT_MUL, 0, matrix(8, 3, 4, 7));
        swap(Opcodes.MAT_MUL, 0, matrix(9, 3, 4, 6));
        swap(Opcodes.MAT_MUL, 0, vector(8, 3, 6));
        swap(Opcodes.MAT_MUL, 1, cube(7, 0, 1, 5, 6));
        swap(Opcodes.MAT_MUL, 9, matrix(8, 0, 5, 4));
        swap(Opcodes.TRANSPOSE, 9, matrix(8, 3, 4, 6));
        swap(Opcodes.TRANSPOSE, 9, matrix(8, 4, 6, 4));
        swap(Opcodes.TRANSPOSE, 9, matrix(9, 3, 6, 4));
        swap(Opcodes.TRANSPOSE, 9, vector(8, 3, 24));
        swap(Opcodes.TRANSPOSE, 9, cube(8, 3, 1, 6, 4));
        swap(Opcodes.TRANSPOSE, 0, cube(8, 3, 1, 4, 6));
        swap(Opcodes.COMBINE, 0, matrix(8, 3, 6, 4));
        swap(Opcodes.COMBINE, 1, vector(8, 3, 5));
        swap(Opcodes.COMBINE, 1, vector(8, 3, 48));
        swap(Opcodes.SCALE, 9, matrix(9, 0, 6, 4));
        swap(Opcodes.MUL, 1, vector(8, 3, 7));
        swap(Opcodes.RELU, 9, matrix(7, 3, 4, 6));
        swap(Opcodes.RELU, 9, matrix(8, 2, 4, 6));
        swap(Opcodes.RELU_GRAD, 1, matrix(20, 0, 6, 4));
        swap(Opcodes.RELU_GRAD, 9, matrix(7, 3, 4, 6));
        swap(Opcodes.LOOKUP, 1, vector(16, 3, 8));
        swap(Opcodes.LOOKUP, 1, vector(16, 3, 1));
        swap(Opcodes.LOOKUP, 1, vector(16, 3, 8193));
        swap(Opcodes.LOOKUP, 1, vector(33, 3, 9));
        swap(Opcodes.ROW_MAX, 9, vector(8, 3, 5));
        swap(Opcodes.ROW_MAX, 9, vector(9, 3, 4));
        swap(Opcodes.ROW_MAX, 9, vector(8, 2, 4));
        // 24 elements in 3 parts of 8 from rows of 6, in 48.
        swap(Opcodes.ROW_MAX, 9, vector(8, 3, 3));
        swap(Opcodes.ROW_MAX, 9, vector(8, 3, 48));
        swap(Opcodes.ROW_SUM, 9, vector(8, 3, 5));
        swap(Opcodes.ROW_SUM, 9, vector(8, 3, 48));
        swap(Opcodes.EXP_NEG, 1, vector(8, 3, 5));
        swap(Opcodes.EXP_NEG, 2, vector(26, 24, 256));
        swap(Opcodes.EXP_NEG, 2, vector(33, 24, 257));
        swap(Opcodes.EXP_NEG, 9, matrix(27, 24, 4, 6));
        swap(Opcodes.EXP_NEG, 9, matrix(26, 23, 4, 6));
        swap(Opcodes.ROW_SUM, 9, vector(8, 3, 3));
        swap(Opcodes.NORMALIZE, 1, vector(8, 3, 6));
        swap(Opcodes.ONE_HOT_SUB, 1, vector(8, 3, 24));
        swap(Opcodes.ONE_HOT_SUB, 9, matrix(16, 0, 6, 4));
        swap(Opcodes.SAMPLE, 9, matrix(8, 3, 6, 3));
        swap(Opcodes.SAMPLE, 9, vector(8, 3, 6));
        swap(Opcodes.SAMPLE, 9, matrix(9, 3, 3, 6));
        swap(Opcodes.SAMPLE, 0, vector(8, 3, 24));
        // 2^31 + 1 rows.
        swap(Opcodes.SAMPLE, 0, matrix(8, 3, 2 ** 31 + 1, 6));
    }

    function test_shapesAndWidthsOfTransformers() public {
        swap(Opcodes.SCALED_MAT_MUL, 1, matrix(16, 0, 5, 4));
        swap(Opcodes.SCALED_MAT_MUL, 0, matrix(8, 3, 4, 3));
        swap(Opcodes.SCALED_MAT_MUL, 0, cube(8, 3, 1, 4, 6));
        swap(Opcodes.SCALED_MAT_MUL, 1, matrix(7, 0, 5, 7));
        swap(Opcodes.SCALED_MAT_MUL, 1, vector(7, 0, 4));
        swap(Opcodes.SCALED_MAT_MUL, 2, vector(16, 4, 5));
        swap(Opcodes.SCALED_MAT_MUL, 3, vector(16, 4, 4));
        swap(Opcodes.SCALED_MAT_MUL, 9, matrix(16, 0, 5, 4));
        swap(Opcodes.SCALED_MAT_MUL, 9, vector(16, 0, 20));
        swap(Opcodes.HEAD_SCORES, 0, matrix(16, 0, 3, 8));
        swap(Opcodes.HEAD_SCORES, 0, matrix(8, 0, 4, 8));
        swap(Opcodes.HEAD_SCORES, 0, matrix(8, 0, 3, 6));
        swap(Opcodes.HEAD_SCORES, 0, cube(8, 0, 1, 3, 8));
        swap(Opcodes.HEAD_SCORES, 1, matrix(8, 0, 6, 4));
        swap(Opcodes.HEAD_SCORES, 1, matrix(8, 0, 5, 3));
        swap(Opcodes.HEAD_SCORES, 1, matrix(8, 0, 5, 1));
        swap(Opcodes.HEAD_SCORES, 1, matrix(8, 0, 5, 6));
        swap(Opcodes.HEAD_SCORES, 9, cube(16, 0, 4, 5, 3));
        swap(Opcodes.HEAD_SCORES, 9, cube(16, 0, 2, 3, 5));
        swap(Opcodes.HEAD_SCORES, 9, matrix(16, 0, 12, 5));
        swap(Opcodes.HEAD_MIX, 0, cube(8, 0, 4, 5, 3));
        swap(Opcodes.HEAD_MIX, 0, cube(16, 0, 4, 3, 5));
        swap(Opcodes.HEAD_MIX, 0, cube(8, 0, 2, 3, 5));
        swap(Opcodes.HEAD_MIX, 0, matrix(8, 0, 12, 5));
        swap(Opcodes.HEAD_MIX, 1, matrix(8, 0, 4, 6));
        swap(Opcodes.HEAD_MIX, 1, matrix(8, 0, 3, 5));
        swap(Opcodes.HEAD_MIX, 1, matrix(8, 0, 1, 5));
        swap(Opcodes.HEAD_MIX, 1, matrix(8, 0, 6, 5));
        swap(Opcodes.HEAD_MIX, 9, matrix(16, 0, 4, 8));
        swap(Opcodes.HEAD_MIX, 9, matrix(16, 0, 3, 12));
        swap(Opcodes.HEAD_MIX, 9, cube(16, 0, 1, 3, 8));
        swap(Opcodes.NORM, 0, matrix(25, 3, 4, 6));
        swap(Opcodes.NORM, 1, vector(8, 3, 5));
        swap(Opcodes.NORM, 1, vector(8, 3, 12));
        swap(Opcodes.NORM, 1, vector(17, 3, 6));
        swap(Opcodes.NORM, 2, vector(8, 3, 24));
        swap(Opcodes.NORM, 2, vector(17, 3, 6));
        swap(Opcodes.NORM, 9, matrix(16, 0, 6, 4));
        swap(Opcodes.ROPE, 0, matrix(17, 0, 3, 8));
        swap(Opcodes.ROPE, 1, matrix(16, 14, 2, 2));
        swap(Opcodes.ROPE, 1, matrix(16, 14, 4, 1));
        swap(Opcodes.ROPE, 1, matrix(16, 14, 4, 3));
        swap(Opcodes.ROPE, 1, matrix(16, 14, 4, 6));
        swap(Opcodes.ROPE, 1, matrix(17, 14, 4, 4));
        swap(Opcodes.ROPE, 1, matrix(16, 16, 4, 4));
        swap(Opcodes.ROPE, 1, matrix(16, -1, 4, 4));
        swap(Opcodes.ROPE, 9, matrix(16, 0, 4, 8));
        swap(Opcodes.GATHER, 0, vector(8, 3, 6));
        swap(Opcodes.GATHER, 0, matrix(8, 3, 5, 6));
        swap(Opcodes.GATHER, 1, vector(8, 3, 3));
        swap(Opcodes.GATHER, 2, vector(8, 0, 2));
        swap(Opcodes.GATHER, 2, matrix(8, 0, 1, 2));
        swap(Opcodes.GATHER, 9, matrix(16, 0, 3, 5));
        swap(Opcodes.GATHER, 9, cube(16, 0, 1, 3, 6));
        swap(Opcodes.ROW_ABS_MAX, 9, vector(8, 3, 5));
        swap(Opcodes.ROW_ABS_MAX, 9, vector(9, 3, 4));
        swap(Opcodes.ROW_ABS_MAX, 9, vector(8, 2, 4));
    }

    function test_shapesAndWidthsOfSampling() public {
        // 24 elements in 5 parts, in 3 of 8 from rows of 6, in 48; places of other types.
        swap(Opcodes.ROW_ARG_MAX, 9, vector(32, 0, 5));
        swap(Opcodes.ROW_ARG_MAX, 9, vector(32, 0, 3));
        swap(Opcodes.ROW_ARG_MAX, 9, vector(32, 0, 48));
        swap(Opcodes.ROW_ARG_MAX, 9, matrix(31, 0, 4, 2));
        swap(Opcodes.ROW_ARG_MAX, 9, matrix(33, 0, 4, 2));
        swap(Opcodes.ROW_ARG_MAX, 9, matrix(32, 1, 4, 2));
        swap(Opcodes.ROW_PICK, 1, vector(16, 0, 4));
        swap(Opcodes.ROW_PICK, 1, vector(16, 0, 24));
        swap(Opcodes.ROW_PICK, 9, vector(8, 3, 4));
        swap(Opcodes.ROW_PICK, 9, vector(9, 3, 8));
        swap(Opcodes.ROW_PICK, 9, vector(8, 2, 8));
        swap(Opcodes.ROW_PICK, 0, matrix(8, 3, 4, 5));
        swap(Opcodes.ROW_PICK, 0, matrix(8, 3, 6, 4));
        swap(Opcodes.TAIL_SUM, 1, matrix(26, 24, 4, 5));
        swap(Opcodes.TAIL_SUM, 2, vector(8, 3, 8));
        swap(Opcodes.TAIL_SUM, 9, vector(30, 24, 5));
        swap(Opcodes.TAIL_SUM, 9, vector(30, 24, 3));
        swap(Opcodes.TAIL_SUM, 9, vector(30, 24, 48));
        swap(Opcodes.THRESHOLD, 0, vector(9, 3, 4));
        swap(Opcodes.THRESHOLD, 0, vector(8, 2, 4));
        swap(Opcodes.THRESHOLD, 0, matrix(8, 3, 4, 1));
        swap(Opcodes.THRESHOLD, 1, vector(16, 0, 4));
        swap(Opcodes.THRESHOLD, 1, vector(16, 0, 9));
        swap(Opcodes.THRESHOLD, 1, vector(16, 0, 3));
        swap(Opcodes.THRESHOLD, 2, vector(30, 24, 12));
        swap(Opcodes.THRESHOLD, 2, matrix(29, 24, 4, 2));
        swap(Opcodes.THRESHOLD, 2, matrix(30, 23, 4, 2));
        swap(Opcodes.THRESHOLD, 3, vector(30, 24, 4));
        swap(Opcodes.THRESHOLD, 4, vector(32, 0, 7));
        swap(Opcodes.THRESHOLD, 4, matrix(32, 0, 7, 5));
        swap(Opcodes.PERTURB, 0, matrix(33, 3, 4, 6));
        swap(Opcodes.PERTURB, 0, matrix(8, 29, 4, 6));
        swap(Opcodes.PERTURB, 0, matrix(8, -13, 4, 6));
        swap(Opcodes.PERTURB, 0, matrix(8, 3, 6, 4));
        swap(Opcodes.PERTURB, 1, vector(8, 3, 5));
        swap(Opcodes.PERTURB, 2, matrix(33, 0, 4, 7));
        swap(Opcodes.PERTURB, 2, matrix(32, 0, 4, 6));
        swap(Opcodes.PERTURB, 3, vector(22, 16, 8223));
        swap(Opcodes.PERTURB, 3, vector(22, 16, 8225));
        swap(Opcodes.PERTURB, 3, vector(33, 16, 8224));
        swap(Opcodes.PERTURB, 9, matrix(32, 12, 6, 4));
        swap(Opcodes.CHOOSE, 0, vector(16, 0, 7));
        swap(Opcodes.CHOOSE, 0, vector(16, 0, 4));
        swap(Opcodes.CHOOSE, 0, vector(16, 0, 3));
        swap(Opcodes.CHOOSE, 1, vector(8, 3, 12));
        swap(Opcodes.CHOOSE, 2, matrix(32, 0, 4, 6));
        swap(Opcodes.CHOOSE, 9, vector(31, 0, 4));
        swap(Opcodes.CHOOSE, 9, vector(32, 1, 4));
        swap(Opcodes.CHOOSE, 9, vector(32, 0, 3));
    }

    /// @notice The ends of what exponents an element that is perturbed may have.
    function test_exponentsOfPerturb() public view {
        (Operator memory op, Tensor[] memory inputs) = good(Opcodes.PERTURB);
        op.operands[0].tensorType = matrix(8, 28, 4, 6);
        verifier.recompute(op, 0, context, wholeWindows(inputs));
        op.operands[0].tensorType = matrix(8, -12, 4, 6);
        verifier.recompute(op, 0, context, wholeWindows(inputs));
    }

    /// @notice Sums of masses of 32 bits at most are compared.
    function test_wideMasses() public {
        (Operator memory op, Tensor[] memory inputs) = good(Opcodes.THRESHOLD);
        for (uint256 i = 2; i < 4; ++i) {
            inputs[i] = filled(matrix(33, 24, 4, 2));
            op.operands[i].tensorType = inputs[i].tensorType;
        }
        refuses(op, wholeWindows(inputs));
    }

    /// @notice Sums of 4097 products, each way that an operator has to ask for one.
    function test_longProducts() public {
        Tensor memory long = filled(matrix(8, 3, 1, 4097));
        Tensor memory one = filled(vector(8, 0, 1));
        Tensor[] memory inputs = list(long, long, one, one);
        refuses(operatorOf(Opcodes.SCALED_MAT_MUL, matrix(8, 3, 1, 1), inputs, ints(0, 0)), wholeWindows(inputs));
        inputs = list(long, long);
        refuses(operatorOf(Opcodes.HEAD_SCORES, cube(8, 3, 1, 1, 1), inputs, ints(1, 0)), wholeWindows(inputs));
        inputs = list(filled(cube(8, 3, 1, 1, 4097)), long);
        refuses(operatorOf(Opcodes.HEAD_MIX, matrix(8, 3, 1, 1), inputs, ints(1, 0)), wholeWindows(inputs));
        Tensor memory perColumn = filled(vector(8, 3, 4097));
        inputs = list(long, perColumn, perColumn);
        refuses(operatorOf(Opcodes.NORM, long.tensorType, inputs, ints(1, 1, 0, 0)), wholeWindows(inputs));
    }

    /// @notice A reduction over 4097 elements is none of ours, one over 4096 is (`StepVerifierGas`).
    function test_longReductions() public {
        Tensor memory long = filled(matrix(8, 3, 1, 4097));
        Window[][] memory windows = wholeWindows(list(long, long));
        refuses(operatorOf(Opcodes.MAT_MUL, matrix(8, 3, 1, 1), list(long, long), ints(0)), windows);
        refuses(operatorOf(Opcodes.ROW_MAX, vector(8, 3, 1), list(long), ints(0)), windows);
        refuses(operatorOf(Opcodes.ROW_SUM, vector(8, 3, 1), list(long), ints(0)), windows);
        refuses(operatorOf(Opcodes.ROW_ABS_MAX, vector(8, 3, 1), list(long), ints()), windows);
        refuses(operatorOf(Opcodes.ROW_ARG_MAX, vector(32, 0, 1), list(long), ints()), windows);
        refuses(operatorOf(Opcodes.INVERSE_NORM, vector(32, 0, 1), list(long), ints(0, 1, 0)), windows);
        refuses(operatorOf(Opcodes.GATHER_GRAD, matrix(32, 0, 9, 1), list(long, long), ints(0)), windows);
        // A pick reduces nothing.
        Tensor memory one = filled(vector(8, 3, 1));
        Tensor[] memory inputs = list(long, one);
        Operator memory op = operatorOf(Opcodes.ROW_PICK, vector(8, 3, 1), inputs, ints());
        assertEq(verifier.recompute(op, 0, context, wholeWindows(inputs)), 2);
        inputs = list(long, long, one);
        for (int256 weighted = 0; weighted < 2; ++weighted) {
            op = operatorOf(Opcodes.TAIL_SUM, vector(30, 3, 1), inputs, ints(0, weighted, 0));
            refuses(op, wholeWindows(inputs));
        }
        Tensor memory controls = filled(vector(32, 0, 7));
        inputs = list(one, long, long, long, controls);
        refuses(operatorOf(Opcodes.THRESHOLD, vector(8, 3, 1), inputs, ints(0)), wholeWindows(inputs));
        inputs = list(long, long, controls);
        refuses(operatorOf(Opcodes.CHOOSE, vector(32, 0, 1), inputs, ints(1)), wholeWindows(inputs));
    }
}
