// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../contracts/interfaces/IStepVerifier.sol";
import {Opcodes} from "../../contracts/libraries/Opcodes.sol";
import {TensorTypes} from "../../contracts/libraries/TensorTypes.sol";
import {Operand, Operator, TensorType, Window} from "../../contracts/types/Types.sol";
import {Tensor, VerifierTest} from "./verifier/VerifierTest.sol";

/// @notice What `StepVerifier` refuses: operators that no checked program holds, elements that do not exist, windows that do
/// not hold what is read. It never gives a number for those, and never fails in another way.
contract StepVerifierFormTest is VerifierTest {
    using TensorTypes for TensorType;

    /// @dev A good operator of each opcode, over tensors of 1 and 2.
    function _good(uint8 opcode) private pure returns (Operator memory op, Tensor[] memory inputs) {
        Tensor memory a = _filled(matrix(8, 3, 4, 6));
        Tensor memory vector4 = _filled(vector(8, 3, 4));
        if (opcode == Opcodes.MAT_MUL) {
            inputs = list(a, _filled(matrix(7, 0, 5, 6)));
            op = operatorOf(opcode, matrix(8, 0, 4, 5), inputs, ints(2));
        } else if (opcode == Opcodes.TRANSPOSE) {
            op = operatorOf(opcode, matrix(8, 3, 6, 4), inputs = list(a), ints());
        } else if (opcode == Opcodes.COMBINE) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a, _filled(vector(8, 3, 6))), ints(1, 2, 3));
        } else if (opcode == Opcodes.SCALE) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a), ints(5, 1));
        } else if (opcode == Opcodes.MUL) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a, _filled(vector(8, 3, 6))), ints(1));
        } else if (opcode == Opcodes.RELU) {
            op = operatorOf(opcode, a.tensorType, inputs = list(a), ints());
        } else if (opcode == Opcodes.RELU_GRAD) {
            op = operatorOf(opcode, a.tensorType, inputs = list(a, _filled(matrix(20, 0, 4, 6))), ints());
        } else if (opcode == Opcodes.LOOKUP) {
            op = operatorOf(opcode, matrix(9, 0, 4, 6), inputs = list(a, _filled(vector(16, 3, 9))), ints(0, -3, 4, 1));
        } else if (opcode == Opcodes.ROW_MAX) {
            op = operatorOf(opcode, vector4.tensorType, inputs = list(a), ints());
        } else if (opcode == Opcodes.EXP_NEG) {
            inputs = list(a, vector4, _filled(vector(26, 24, 257)));
            op = operatorOf(opcode, matrix(26, 24, 4, 6), inputs, ints(23_637, 1));
        } else if (opcode == Opcodes.ROW_SUM) {
            op = operatorOf(opcode, vector4.tensorType, inputs = list(a), ints(0));
        } else if (opcode == Opcodes.NORMALIZE) {
            op = operatorOf(opcode, matrix(16, 0, 4, 6), inputs = list(a, vector4), ints(8));
        } else if (opcode == Opcodes.ONE_HOT_SUB) {
            op = operatorOf(opcode, matrix(16, 0, 4, 6), inputs = list(a, vector4), ints(100, 0));
        } else {
            op = operatorOf(opcode, matrix(8, 3, 3, 6), inputs = list(a), ints(0));
        }
    }

    function _filled(TensorType tensorType) private pure returns (Tensor memory t) {
        t.tensorType = tensorType;
        t.mantissas = new int256[](tensorType.elements());
        for (uint256 i = 0; i < t.mantissas.length; ++i) {
            t.mantissas[i] = int256(i % 2 + 1);
        }
    }

    function _refuses(Operator memory op, Window[][] memory windows) private {
        vm.expectRevert(IStepVerifier.MalformedOperator.selector);
        verifier.recompute(op, 0, context, windows);
    }

    function test_goodOperatorsPass() public view {
        for (uint8 opcode = 1; opcode <= 14; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = _good(opcode);
            verifier.recompute(op, 0, context, wholeWindows(inputs));
        }
    }

    function testFuzz_unknownOpcode(uint8 opcode) public {
        vm.assume(opcode == 0 || opcode > 14);
        (Operator memory op, Tensor[] memory inputs) = _good(1);
        op.opcode = opcode;
        vm.expectRevert(abi.encodeWithSelector(IStepVerifier.UnknownOpcode.selector, opcode));
        verifier.recompute(op, 0, context, wholeWindows(inputs));
    }

    function testFuzz_elementOutOfRange(uint64 element) public {
        for (uint8 opcode = 1; opcode <= 14; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = _good(opcode);
            uint64 beyond = uint64(bound(element, op.output.elements(), type(uint64).max));
            vm.expectRevert(abi.encodeWithSelector(IStepVerifier.ElementOutOfRange.selector, beyond));
            verifier.recompute(op, beyond, context, wholeWindows(inputs));
        }
    }

    function test_wrongCounts() public {
        for (uint8 opcode = 1; opcode <= 14; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = _good(opcode);
            Window[][] memory windows = wholeWindows(inputs);
            (Operand[] memory operands, int64[] memory attributes) = (op.operands, op.attributes);
            for (uint256 count = 0; count < 6; ++count) {
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
        for (uint8 opcode = 1; opcode <= 14; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = _good(opcode);
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

    function _range(uint8 opcode, uint256 attribute, int64 low, int64 high) private {
        (Operator memory op, Tensor[] memory inputs) = _good(opcode);
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
        _swap(Opcodes.EXP_NEG, 1, vector(8, 3, 5));
        _swap(Opcodes.EXP_NEG, 2, vector(26, 24, 256));
        _swap(Opcodes.EXP_NEG, 2, vector(33, 24, 257));
        _swap(Opcodes.EXP_NEG, 9, matrix(27, 24, 4, 6));
        _swap(Opcodes.EXP_NEG, 9, matrix(26, 23, 4, 6));
        _swap(Opcodes.ROW_SUM, 9, vector(8, 3, 6));
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

    /// @dev Operand `place`, or the output for 9, takes a type that does not go with the rest.
    function _swap(uint8 opcode, uint256 place, TensorType tensorType) private {
        (Operator memory op, Tensor[] memory inputs) = _good(opcode);
        if (place == 9) op.output = tensorType;
        else op.operands[place].tensorType = tensorType;
        assertTrue(tensorType.isValid());
        _refuses(op, wholeWindows(inputs));
    }

    /// @notice A reduction over 4097 elements is none of ours, one over 4096 is (`StepVerifierGas`).
    function test_longReductions() public {
        Tensor memory long = _filled(matrix(8, 3, 1, 4097));
        Window[][] memory windows = wholeWindows(list(long, long));
        _refuses(operatorOf(Opcodes.MAT_MUL, matrix(8, 3, 1, 1), list(long, long), ints(0)), windows);
        _refuses(operatorOf(Opcodes.ROW_MAX, vector(8, 3, 1), list(long), ints()), windows);
        _refuses(operatorOf(Opcodes.ROW_SUM, vector(8, 3, 1), list(long), ints(0)), windows);
    }

    // Windows.

    /// @notice With any operand's windows gone, the error names the operand and the element that it lacks.
    function test_missingWindows() public view {
        for (uint8 opcode = 1; opcode <= 14; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = _good(opcode);
            Window[][] memory windows = wholeWindows(inputs);
            for (uint256 i = 0; i < inputs.length; ++i) {
                Window[] memory whole = windows[i];
                windows[i] = new Window[](0);
                _misses(op, windows, i);
                // A window that ends a byte early for some element: it holds one byte.
                windows[i] = new Window[](1);
                windows[i][0].firstByte = uint64(whole[0].data.length);
                windows[i][0].data = hex"01";
                _misses(op, windows, i);
                windows[i] = whole;
            }
            // No list of windows at all.
            _misses(op, new Window[][](0), type(uint256).max);
        }
    }

    function _misses(Operator memory op, Window[][] memory windows, uint256 operand) private view {
        try verifier.recompute(op, 0, context, windows) {
            assertTrue(false, "read what was not opened");
        } catch (bytes memory reason) {
            assertEq(bytes4(reason), IStepVerifier.MissingElement.selector);
            (uint256 named,) = abi.decode(slice(reason, 4, reason.length), (uint256, uint64));
            if (operand != type(uint256).max) assertEq(named, operand);
        }
    }

    /// @notice A row is read from one window: two halves do not make a whole, nor does a window at an absurd offset.
    function testFuzz_rowInPieces(uint256 cut, uint64 offset) public {
        (Operator memory op, Tensor[] memory inputs) = _good(Opcodes.ROW_SUM);
        bytes memory data = encode(inputs[0]);
        cut = bound(cut, 1, 5);
        offset = uint64(bound(offset, 1, type(uint64).max));
        Window[][] memory windows = new Window[][](1);
        windows[0] = new Window[](3);
        windows[0][0].data = slice(data, 0, cut);
        windows[0][1] = Window({firstByte: uint64(cut), data: slice(data, cut, data.length)});
        windows[0][2] = Window({firstByte: offset, data: data});
        vm.expectRevert(abi.encodeWithSelector(IStepVerifier.MissingElement.selector, 0, 0));
        verifier.recompute(op, 0, context, windows);
    }

    /// @notice However far a value lies below its row's maximum, ExpNeg reads no further than 2^−40: entries 0 and 1.
    function testFuzz_expNegFarBelow(int256 below) public view {
        (Operator memory op, Tensor[] memory inputs) = _good(Opcodes.EXP_NEG);
        inputs[0] = _filled(matrix(32, 3, 4, 6));
        inputs[1] = _filled(vector(32, 3, 4));
        inputs[0].mantissas[0] = -bound(below, 40 << 16, 42 << 16);
        (op.operands[0].tensorType, op.operands[1].tensorType) = (inputs[0].tensorType, inputs[1].tensorType);
        (op.attributes[0], op.attributes[1]) = (1, 0);
        Window[][] memory windows = wholeWindows(inputs);
        windows[2][0].data = slice(windows[2][0].data, 0, 8);
        assertEq(verifier.recompute(op, 0, context, windows), 0);
    }

    /// @notice Whatever an operator says, the answer is a number that its output type allows or one of the interface's errors.
    function testFuzz_mutatedOperators(uint256 seed) public {
        seedNoise(seed);
        (Operator memory op, Tensor[] memory inputs) = _good(uint8(pickUint(1, 14)));
        Window[][] memory windows = wholeWindows(inputs);
        for (uint256 times = pickUint(1, 4); times > 0; --times) {
            uint256 kind = pickUint(0, 3);
            if (kind == 0 && op.attributes.length > 0) {
                op.attributes[pickUint(0, op.attributes.length - 1)] =
                    int64(pick(type(int64).min, type(int64).max) >> pickUint(0, 63));
            } else if (kind == 1) {
                op.output = _mutated(op.output);
            } else if (kind == 2) {
                Operand memory operand = op.operands[pickUint(0, op.operands.length - 1)];
                operand.tensorType = _mutated(operand.tensorType);
            } else {
                op.opcode = uint8(pickUint(1, 14));
            }
        }
        uint256 count = op.output.elements();
        uint64 element = uint64(pickUint(0, count > 0 && count < 1000 ? count - 1 : 1000));
        try verifier.recompute(op, element, context, windows) returns (int256 mantissa) {
            // Mantissas are 1 and 2, and no tensor has fewer than 3 bits unless by mutation.
            int256 limit = op.output.limit();
            assertTrue(op.output.bits() == 2 || (-limit <= mantissa && mantissa <= limit));
        } catch (bytes memory reason) {
            bytes4 selector = bytes4(reason);
            assertTrue(
                selector == IStepVerifier.MalformedOperator.selector
                    || selector == IStepVerifier.MissingElement.selector
                    || selector == IStepVerifier.ElementOutOfRange.selector
            );
        }
    }

    /// @dev Another number in one field, or any bit turned.
    function _mutated(TensorType t) private returns (TensorType) {
        uint256 word = TensorType.unwrap(t);
        uint256 kind = pickUint(0, 5);
        if (kind == 0) return TensorType.wrap((word & (type(uint256).max >> 8)) | (pickUint(2, 64) << 248));
        if (kind == 1) return TensorType.wrap(word ^ (1 << pickUint(0, 255)));
        uint256 place = 32 * pickUint(0, 3);
        uint256 length = kind == 2 ? pickUint(0, type(uint32).max) : pickUint(0, 40);
        return TensorType.wrap((word & ~(uint256(type(uint32).max) << place)) | (length << place));
    }
}
