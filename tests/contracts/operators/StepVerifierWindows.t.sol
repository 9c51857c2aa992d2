// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../../contracts/interfaces/IStepVerifier.sol";
import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operand, Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {GoodOperators} from "../verifier/GoodOperators.sol";
import {Tensor} from "../verifier/VerifierTest.sol";

/// @notice What `StepVerifier` reads: windows that do not hold it are refused; and it never fails in another way than
/// its interface says.
contract StepVerifierWindowsTest is GoodOperators {
    using TensorTypes for TensorType;

    /// @notice With any operand's windows gone, the error names the operand and the element that it lacks.
    function test_missingWindows() public view {
        for (uint8 opcode = 1; opcode <= LAST_OPCODE; ++opcode) {
            (Operator memory op, Tensor[] memory inputs) = good(opcode);
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
        (Operator memory op, Tensor[] memory inputs) = good(Opcodes.ROW_SUM);
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
        (Operator memory op, Tensor[] memory inputs) = good(Opcodes.EXP_NEG);
        inputs[0] = filled(matrix(32, 3, 4, 6));
        inputs[1] = filled(vector(32, 3, 4));
        inputs[0].mantissas[0] = -bound(below, 40 << 16, 42 << 16);
        (op.operands[0].tensorType, op.operands[1].tensorType) = (inputs[0].tensorType, inputs[1].tensorType);
        (op.attributes[0], op.attributes[1]) = (1, 0);
        Window[][] memory windows = wholeWindows(inputs);
        windows[2][0].data = slice(windows[2][0].data, 0, 8);
        assertEq(verifier.recompute(op, 0, context, windows), 0);
    }

    /// @notice Whatever an operator says, the answer is a number that its output type allows or one of the
    /// interface's errors.
    function testFuzz_mutatedOperators(uint256 seed) public {
        seedNoise(seed);
        (Operator memory op, Tensor[] memory inputs) = good(uint8(pickUint(1, LAST_OPCODE)));
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
                op.opcode = uint8(pickUint(1, LAST_OPCODE));
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
