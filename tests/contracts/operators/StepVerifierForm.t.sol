// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../../contracts/interfaces/IStepVerifier.sol";
import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operand, Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {GoodOperators} from "../verifier/GoodOperators.sol";
import {Tensor} from "../verifier/VerifierTest.sol";

/// @notice What `StepVerifier` refuses: operators that no checked program holds, elements that do not exist. It never
/// gives a number for those; `StepVerifierWindows` is about what it reads.
contract StepVerifierFormTest is GoodOperators {
    using TensorTypes for TensorType;

    function _refuses(Operator memory op, Window[][] memory windows) private {
        vm.expectRevert(IStepVerifier.MalformedOperator.selector);
        verifier.recompute(op, 0, context, windows);
    }

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
                _refuses(op, windows);
            }
            op.operands = operands;
            for (uint256 count = 0; count < 6; ++count) {
                if (count == attributes.length) continue;
                op.attributes = new int64[](count);
                _refuses(op, windows);
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
                _refuses(op, windows);
                // A stray bit in the gap.
                op.operands[i].tensorType = TensorType.wrap(TensorType.unwrap(inputs[i].tensorType) | (1 << 130));
                _refuses(op, windows);
                op.operands[i].tensorType = inputs[i].tensorType;
            }
            op.output = bad;
            _refuses(op, windows);
        }
    }

    /// @notice Every attribute has a range; both neighbours of it are refused, its ends are not.
    function test_attributeRanges() public {
        int64 c = 2 ** 40;
        _range(Opcodes.MAT_MUL, 0, -63, 63);
        _range(Opcodes.COMBINE, 0, 1 - c, c - 1);
        _range(Opcodes.COMBINE, 1, 1 - c, c - 1);
        _range(Opcodes.COMBINE, 2, -63, 63);
        _range(Opcodes.SCALE, 0, 1 - c, c - 1);
        _range(Opcodes.SCALE, 1, -63, 63);
        _range(Opcodes.MUL, 0, -63, 63);
        _range(Opcodes.LOOKUP, 0, -63, 63);
        _range(Opcodes.LOOKUP, 1, 1 - c, c - 1);
        _range(Opcodes.LOOKUP, 2, 1, 16);
        _range(Opcodes.LOOKUP, 3, -63, 63);
        _range(Opcodes.EXP_NEG, 0, 1, 2 ** 24 - 1);
        _range(Opcodes.EXP_NEG, 1, -63, 63);
        _range(Opcodes.ROW_SUM, 0, -63, 63);
        _range(Opcodes.NORMALIZE, 0, 0, 32);
        _range(Opcodes.ONE_HOT_SUB, 0, 0, c - 1);
        _range(Opcodes.ONE_HOT_SUB, 1, -63, 63);
        _range(Opcodes.SAMPLE, 0, 0, 2 ** 32 - 3);
    }

    function test_attributeRangesOfTransformers() public {
        _range(Opcodes.ROW_MAX, 0, 0, 1);
        _range(Opcodes.EXP_NEG, 2, 0, 1);
        // Row of 6, of which b takes 4.
        _range(Opcodes.SCALED_MAT_MUL, 0, 0, 2);
        _range(Opcodes.SCALED_MAT_MUL, 1, -63, 63);
        _range(Opcodes.HEAD_SCORES, 1, -63, 63);
        _range(Opcodes.HEAD_MIX, 1, -63, 63);
        _range(Opcodes.NORM, 0, 0, 1);
        _range(Opcodes.NORM, 1, 1, 2 ** 60 - 1);
        _range(Opcodes.NORM, 2, 0, 40);
        _range(Opcodes.NORM, 3, -63, 63);
        _range(Opcodes.ROPE, 1, -63, 63);
        _range(Opcodes.GATHER, 0, -63, 63);
    }

    function test_attributeRangesOfSampling() public {
        int64 c = 2 ** 40;
        _range(Opcodes.TAIL_SUM, 0, 1 - c, c - 1);
        _range(Opcodes.TAIL_SUM, 1, 0, 1);
        _range(Opcodes.TAIL_SUM, 2, -63, 63);
        _range(Opcodes.THRESHOLD, 0, 0, c - 1);
        _range(Opcodes.PERTURB, 0, 1 - c, c - 1);
        _range(Opcodes.PERTURB, 1, -63, 63);
        _range(Opcodes.CHOOSE, 0, 1, 4096);
    }

    /// @notice Heads that do not divide what they are heads of.
    function test_heads() public {
        int64[6] memory refused = [int64(0), -1, -2, 3, 5, 2 ** 32];
        for (uint256 i = 0; i < refused.length; ++i) {
            _refusesAttribute(Opcodes.HEAD_SCORES, 0, refused[i]);
            _refusesAttribute(Opcodes.HEAD_MIX, 0, refused[i]);
            _refusesAttribute(Opcodes.ROPE, 0, refused[i]);
        }
        // Queries divide, but not into so many heads; heads are too narrow for the table.
        _refusesAttribute(Opcodes.HEAD_SCORES, 0, 1);
        _refusesAttribute(Opcodes.HEAD_MIX, 0, 8);
        _refusesAttribute(Opcodes.ROPE, 0, 4);
    }

    function _refusesAttribute(uint8 opcode, uint256 attribute, int64 value) private {
        (Operator memory op, Tensor[] memory inputs) = good(opcode);
        op.attributes[attribute] = value;
        _refuses(op, wholeWindows(inputs));
    }

    /// @notice A vector has no second-to-last dimension that tokens could be counted in.
    function test_causalVectors() public {
        Tensor memory a = filled(vector(8, 3, 6));
        Operator memory op = operatorOf(Opcodes.ROW_MAX, vector(8, 3, 1), list(a), ints(1));
        _refuses(op, wholeWindows(list(a)));
        Tensor[] memory inputs = list(a, filled(vector(8, 3, 1)), filled(vector(26, 24, 257)));
        _refuses(operatorOf(Opcodes.EXP_NEG, vector(26, 24, 6), inputs, ints(23_637, 1, 1)), wholeWindows(inputs));
    }

    function _range(uint8 opcode, uint256 attribute, int64 low, int64 high) private {
        (Operator memory op, Tensor[] memory inputs) = good(opcode);
        Window[][] memory windows = wholeWindows(inputs);
        op.attributes[attribute] = low;
        verifier.recompute(op, 0, context, windows);
        op.attributes[attribute] = high;
        verifier.recompute(op, 0, context, windows);
        int64[4] memory refused = [low - 1, high + 1, type(int64).min, type(int64).max];
        for (uint256 i = 0; i < refused.length; ++i) {
            op.attributes[attribute] = refused[i];
            _refuses(op, windows);
        }
    }

    /// @notice Operand or output types that do not go with each other.
    function test_shapesAndWidths() public {
        _swap(Opcodes.MAT_MUL, 0, matrix(8, 3, 4, 7));
        _swap(Opcodes.MAT_MUL, 0, matrix(9, 3, 4, 6));
        _swap(Opcodes.MAT_MUL, 0, vector(8, 3, 6));
        _swap(Opcodes.MAT_MUL, 1, cube(7, 0, 1, 5, 6));
        _swap(Opcodes.MAT_MUL, 9, matrix(8, 0, 5, 4));
        _swap(Opcodes.TRANSPOSE, 9, matrix(8, 3, 4, 6));
        _swap(Opcodes.TRANSPOSE, 9, matrix(8, 4, 6, 4));
        _swap(Opcodes.TRANSPOSE, 9, matrix(9, 3, 6, 4));
        _swap(Opcodes.TRANSPOSE, 9, vector(8, 3, 24));
        _swap(Opcodes.TRANSPOSE, 9, cube(8, 3, 1, 6, 4));
        _swap(Opcodes.TRANSPOSE, 0, cube(8, 3, 1, 4, 6));
        _swap(Opcodes.COMBINE, 0, matrix(8, 3, 6, 4));
        _swap(Opcodes.COMBINE, 1, vector(8, 3, 5));
        _swap(Opcodes.COMBINE, 1, vector(8, 3, 48));
        _swap(Opcodes.SCALE, 9, matrix(9, 0, 6, 4));
        _swap(Opcodes.MUL, 1, vector(8, 3, 7));
        _swap(Opcodes.RELU, 9, matrix(7, 3, 4, 6));
        _swap(Opcodes.RELU, 9, matrix(8, 2, 4, 6));
        _swap(Opcodes.RELU_GRAD, 1, matrix(20, 0, 6, 4));
        _swap(Opcodes.RELU_GRAD, 9, matrix(7, 3, 4, 6));
        _swap(Opcodes.LOOKUP, 1, vector(16, 3, 8));
        _swap(Opcodes.LOOKUP, 1, vector(16, 3, 1));
        _swap(Opcodes.LOOKUP, 1, vector(16, 3, 8193));
        _swap(Opcodes.LOOKUP, 1, vector(33, 3, 9));
        _swap(Opcodes.ROW_MAX, 9, vector(8, 3, 5));
        _swap(Opcodes.ROW_MAX, 9, vector(9, 3, 4));
        _swap(Opcodes.ROW_MAX, 9, vector(8, 2, 4));
        // 24 elements in 3 parts of 8 from rows of 6, in 48.
        _swap(Opcodes.ROW_MAX, 9, vector(8, 3, 3));
        _swap(Opcodes.ROW_MAX, 9, vector(8, 3, 48));
        _swap(Opcodes.ROW_SUM, 9, vector(8, 3, 5));
        _swap(Opcodes.ROW_SUM, 9, vector(8, 3, 48));
        _swap(Opcodes.EXP_NEG, 1, vector(8, 3, 5));
        _swap(Opcodes.EXP_NEG, 2, vector(26, 24, 256));
        _swap(Opcodes.EXP_NEG, 2, vector(33, 24, 257));
        _swap(Opcodes.EXP_NEG, 9, matrix(27, 24, 4, 6));
        _swap(Opcodes.EXP_NEG, 9, matrix(26, 23, 4, 6));
        _swap(Opcodes.ROW_SUM, 9, vector(8, 3, 3));
        _swap(Opcodes.NORMALIZE, 1, vector(8, 3, 6));
        _swap(Opcodes.ONE_HOT_SUB, 1, vector(8, 3, 24));
        _swap(Opcodes.ONE_HOT_SUB, 9, matrix(16, 0, 6, 4));
        _swap(Opcodes.SAMPLE, 9, matrix(8, 3, 6, 3));
        _swap(Opcodes.SAMPLE, 9, vector(8, 3, 6));
        _swap(Opcodes.SAMPLE, 9, matrix(9, 3, 3, 6));
        _swap(Opcodes.SAMPLE, 0, vector(8, 3, 24));
        // 2^31 + 1 rows.
        _swap(Opcodes.SAMPLE, 0, matrix(8, 3, 2 ** 31 + 1, 6));
    }

    function test_shapesAndWidthsOfTransformers() public {
        _swap(Opcodes.SCALED_MAT_MUL, 1, matrix(16, 0, 5, 4));
        _swap(Opcodes.SCALED_MAT_MUL, 0, matrix(8, 3, 4, 3));
        _swap(Opcodes.SCALED_MAT_MUL, 0, cube(8, 3, 1, 4, 6));
        _swap(Opcodes.SCALED_MAT_MUL, 1, matrix(7, 0, 5, 7));
        _swap(Opcodes.SCALED_MAT_MUL, 1, vector(7, 0, 4));
        _swap(Opcodes.SCALED_MAT_MUL, 2, vector(16, 4, 5));
        _swap(Opcodes.SCALED_MAT_MUL, 3, vector(16, 4, 4));
        _swap(Opcodes.SCALED_MAT_MUL, 9, matrix(16, 0, 5, 4));
        _swap(Opcodes.SCALED_MAT_MUL, 9, vector(16, 0, 20));
        _swap(Opcodes.HEAD_SCORES, 0, matrix(16, 0, 3, 8));
        _swap(Opcodes.HEAD_SCORES, 0, matrix(8, 0, 4, 8));
        _swap(Opcodes.HEAD_SCORES, 0, matrix(8, 0, 3, 6));
        _swap(Opcodes.HEAD_SCORES, 0, cube(8, 0, 1, 3, 8));
        _swap(Opcodes.HEAD_SCORES, 1, matrix(8, 0, 6, 4));
        _swap(Opcodes.HEAD_SCORES, 1, matrix(8, 0, 5, 3));
        _swap(Opcodes.HEAD_SCORES, 1, matrix(8, 0, 5, 1));
        _swap(Opcodes.HEAD_SCORES, 1, matrix(8, 0, 5, 6));
        _swap(Opcodes.HEAD_SCORES, 9, cube(16, 0, 4, 5, 3));
        _swap(Opcodes.HEAD_SCORES, 9, cube(16, 0, 2, 3, 5));
        _swap(Opcodes.HEAD_SCORES, 9, matrix(16, 0, 12, 5));
        _swap(Opcodes.HEAD_MIX, 0, cube(8, 0, 4, 5, 3));
        _swap(Opcodes.HEAD_MIX, 0, cube(16, 0, 4, 3, 5));
        _swap(Opcodes.HEAD_MIX, 0, cube(8, 0, 2, 3, 5));
        _swap(Opcodes.HEAD_MIX, 0, matrix(8, 0, 12, 5));
        _swap(Opcodes.HEAD_MIX, 1, matrix(8, 0, 4, 6));
        _swap(Opcodes.HEAD_MIX, 1, matrix(8, 0, 3, 5));
        _swap(Opcodes.HEAD_MIX, 1, matrix(8, 0, 1, 5));
        _swap(Opcodes.HEAD_MIX, 1, matrix(8, 0, 6, 5));
        _swap(Opcodes.HEAD_MIX, 9, matrix(16, 0, 4, 8));
        _swap(Opcodes.HEAD_MIX, 9, matrix(16, 0, 3, 12));
        _swap(Opcodes.HEAD_MIX, 9, cube(16, 0, 1, 3, 8));
        _swap(Opcodes.NORM, 0, matrix(25, 3, 4, 6));
        _swap(Opcodes.NORM, 1, vector(8, 3, 5));
        _swap(Opcodes.NORM, 1, vector(8, 3, 12));
        _swap(Opcodes.NORM, 1, vector(17, 3, 6));
        _swap(Opcodes.NORM, 2, vector(8, 3, 24));
        _swap(Opcodes.NORM, 2, vector(17, 3, 6));
        _swap(Opcodes.NORM, 9, matrix(16, 0, 6, 4));
        _swap(Opcodes.ROPE, 0, matrix(17, 0, 3, 8));
        _swap(Opcodes.ROPE, 1, matrix(16, 14, 2, 2));
        _swap(Opcodes.ROPE, 1, matrix(16, 14, 4, 1));
        _swap(Opcodes.ROPE, 1, matrix(16, 14, 4, 3));
        _swap(Opcodes.ROPE, 1, matrix(16, 14, 4, 6));
        _swap(Opcodes.ROPE, 1, matrix(17, 14, 4, 4));
        _swap(Opcodes.ROPE, 1, matrix(16, 16, 4, 4));
        _swap(Opcodes.ROPE, 1, matrix(16, -1, 4, 4));
        _swap(Opcodes.ROPE, 9, matrix(16, 0, 4, 8));
        _swap(Opcodes.GATHER, 0, vector(8, 3, 6));
        _swap(Opcodes.GATHER, 0, matrix(8, 3, 5, 6));
        _swap(Opcodes.GATHER, 1, vector(8, 3, 3));
        _swap(Opcodes.GATHER, 2, vector(8, 0, 2));
        _swap(Opcodes.GATHER, 2, matrix(8, 0, 1, 2));
        _swap(Opcodes.GATHER, 9, matrix(16, 0, 3, 5));
        _swap(Opcodes.GATHER, 9, cube(16, 0, 1, 3, 6));
        _swap(Opcodes.ROW_ABS_MAX, 9, vector(8, 3, 5));
        _swap(Opcodes.ROW_ABS_MAX, 9, vector(9, 3, 4));
        _swap(Opcodes.ROW_ABS_MAX, 9, vector(8, 2, 4));
    }

    function test_shapesAndWidthsOfSampling() public {
        // 24 elements in 5 parts, in 3 of 8 from rows of 6, in 48; places of other types.
        _swap(Opcodes.ROW_ARG_MAX, 9, vector(32, 0, 5));
        _swap(Opcodes.ROW_ARG_MAX, 9, vector(32, 0, 3));
        _swap(Opcodes.ROW_ARG_MAX, 9, vector(32, 0, 48));
        _swap(Opcodes.ROW_ARG_MAX, 9, matrix(31, 0, 4, 2));
        _swap(Opcodes.ROW_ARG_MAX, 9, matrix(33, 0, 4, 2));
        _swap(Opcodes.ROW_ARG_MAX, 9, matrix(32, 1, 4, 2));
        _swap(Opcodes.ROW_PICK, 1, vector(16, 0, 4));
        _swap(Opcodes.ROW_PICK, 1, vector(16, 0, 24));
        _swap(Opcodes.ROW_PICK, 9, vector(8, 3, 4));
        _swap(Opcodes.ROW_PICK, 9, vector(9, 3, 8));
        _swap(Opcodes.ROW_PICK, 9, vector(8, 2, 8));
        _swap(Opcodes.ROW_PICK, 0, matrix(8, 3, 4, 5));
        _swap(Opcodes.ROW_PICK, 0, matrix(8, 3, 6, 4));
        _swap(Opcodes.TAIL_SUM, 1, matrix(26, 24, 4, 5));
        _swap(Opcodes.TAIL_SUM, 2, vector(8, 3, 8));
        _swap(Opcodes.TAIL_SUM, 9, vector(30, 24, 5));
        _swap(Opcodes.TAIL_SUM, 9, vector(30, 24, 3));
        _swap(Opcodes.TAIL_SUM, 9, vector(30, 24, 48));
        _swap(Opcodes.THRESHOLD, 0, vector(9, 3, 4));
        _swap(Opcodes.THRESHOLD, 0, vector(8, 2, 4));
        _swap(Opcodes.THRESHOLD, 0, matrix(8, 3, 4, 1));
        _swap(Opcodes.THRESHOLD, 1, vector(16, 0, 4));
        _swap(Opcodes.THRESHOLD, 1, vector(16, 0, 9));
        _swap(Opcodes.THRESHOLD, 1, vector(16, 0, 3));
        _swap(Opcodes.THRESHOLD, 2, vector(30, 24, 12));
        _swap(Opcodes.THRESHOLD, 2, matrix(29, 24, 4, 2));
        _swap(Opcodes.THRESHOLD, 2, matrix(30, 23, 4, 2));
        _swap(Opcodes.THRESHOLD, 3, vector(30, 24, 4));
        _swap(Opcodes.THRESHOLD, 4, vector(32, 0, 7));
        _swap(Opcodes.THRESHOLD, 4, matrix(32, 0, 7, 5));
        _swap(Opcodes.PERTURB, 0, matrix(33, 3, 4, 6));
        _swap(Opcodes.PERTURB, 0, matrix(8, 29, 4, 6));
        _swap(Opcodes.PERTURB, 0, matrix(8, -13, 4, 6));
        _swap(Opcodes.PERTURB, 0, matrix(8, 3, 6, 4));
        _swap(Opcodes.PERTURB, 1, vector(8, 3, 5));
        _swap(Opcodes.PERTURB, 2, matrix(33, 0, 4, 7));
        _swap(Opcodes.PERTURB, 2, matrix(32, 0, 4, 6));
        _swap(Opcodes.PERTURB, 3, vector(22, 16, 8223));
        _swap(Opcodes.PERTURB, 3, vector(22, 16, 8225));
        _swap(Opcodes.PERTURB, 3, vector(33, 16, 8224));
        _swap(Opcodes.PERTURB, 9, matrix(32, 12, 6, 4));
        _swap(Opcodes.CHOOSE, 0, vector(16, 0, 7));
        _swap(Opcodes.CHOOSE, 0, vector(16, 0, 4));
        _swap(Opcodes.CHOOSE, 0, vector(16, 0, 3));
        _swap(Opcodes.CHOOSE, 1, vector(8, 3, 12));
        _swap(Opcodes.CHOOSE, 2, matrix(32, 0, 4, 6));
        _swap(Opcodes.CHOOSE, 9, vector(31, 0, 4));
        _swap(Opcodes.CHOOSE, 9, vector(32, 1, 4));
        _swap(Opcodes.CHOOSE, 9, vector(32, 0, 3));
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
        _refuses(op, wholeWindows(inputs));
    }

    /// @notice Sums of 4097 products, each way that an operator has to ask for one.
    function test_longProducts() public {
        Tensor memory long = filled(matrix(8, 3, 1, 4097));
        Tensor memory one = filled(vector(8, 0, 1));
        Tensor[] memory inputs = list(long, long, one, one);
        _refuses(operatorOf(Opcodes.SCALED_MAT_MUL, matrix(8, 3, 1, 1), inputs, ints(0, 0)), wholeWindows(inputs));
        inputs = list(long, long);
        _refuses(operatorOf(Opcodes.HEAD_SCORES, cube(8, 3, 1, 1, 1), inputs, ints(1, 0)), wholeWindows(inputs));
        inputs = list(filled(cube(8, 3, 1, 1, 4097)), long);
        _refuses(operatorOf(Opcodes.HEAD_MIX, matrix(8, 3, 1, 1), inputs, ints(1, 0)), wholeWindows(inputs));
        Tensor memory perColumn = filled(vector(8, 3, 4097));
        inputs = list(long, perColumn, perColumn);
        _refuses(operatorOf(Opcodes.NORM, long.tensorType, inputs, ints(1, 1, 0, 0)), wholeWindows(inputs));
    }

    /// @dev Operand `place`, or the output for 9, takes a type that does not go with the rest.
    function _swap(uint8 opcode, uint256 place, TensorType tensorType) private {
        (Operator memory op, Tensor[] memory inputs) = good(opcode);
        if (place == 9) op.output = tensorType;
        else op.operands[place].tensorType = tensorType;
        assertTrue(tensorType.isValid());
        _refuses(op, wholeWindows(inputs));
    }

    /// @notice A reduction over 4097 elements is none of ours, one over 4096 is (`StepVerifierGas`).
    function test_longReductions() public {
        Tensor memory long = filled(matrix(8, 3, 1, 4097));
        Window[][] memory windows = wholeWindows(list(long, long));
        _refuses(operatorOf(Opcodes.MAT_MUL, matrix(8, 3, 1, 1), list(long, long), ints(0)), windows);
        _refuses(operatorOf(Opcodes.ROW_MAX, vector(8, 3, 1), list(long), ints(0)), windows);
        _refuses(operatorOf(Opcodes.ROW_SUM, vector(8, 3, 1), list(long), ints(0)), windows);
        _refuses(operatorOf(Opcodes.ROW_ABS_MAX, vector(8, 3, 1), list(long), ints()), windows);
        _refuses(operatorOf(Opcodes.ROW_ARG_MAX, vector(32, 0, 1), list(long), ints()), windows);
        _refuses(operatorOf(Opcodes.INVERSE_NORM, vector(32, 0, 1), list(long), ints(0, 1, 0)), windows);
        _refuses(operatorOf(Opcodes.GATHER_GRAD, matrix(32, 0, 9, 1), list(long, long), ints(0)), windows);
        // A pick reduces nothing.
        Tensor memory one = filled(vector(8, 3, 1));
        Tensor[] memory inputs = list(long, one);
        Operator memory op = operatorOf(Opcodes.ROW_PICK, vector(8, 3, 1), inputs, ints());
        assertEq(verifier.recompute(op, 0, context, wholeWindows(inputs)), 2);
        inputs = list(long, long, one);
        for (int256 weighted = 0; weighted < 2; ++weighted) {
            op = operatorOf(Opcodes.TAIL_SUM, vector(30, 3, 1), inputs, ints(0, weighted, 0));
            _refuses(op, wholeWindows(inputs));
        }
        Tensor memory controls = filled(vector(32, 0, 7));
        inputs = list(one, long, long, long, controls);
        _refuses(operatorOf(Opcodes.THRESHOLD, vector(8, 3, 1), inputs, ints(0)), wholeWindows(inputs));
        inputs = list(long, long, controls);
        _refuses(operatorOf(Opcodes.CHOOSE, vector(32, 0, 1), inputs, ints(1)), wholeWindows(inputs));
    }
}
