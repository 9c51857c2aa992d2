// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType} from "../../../contracts/types/Types.sol";
import {OperatorTest} from "../verifier/OperatorTest.sol";
import {Slow} from "../verifier/Slow.sol";
import {Tensor} from "../verifier/VerifierTest.sol";

/// @notice Clip (rule N-52).
contract ClipTest is OperatorTest {
    using TensorTypes for TensorType;

    /// @dev Largest coefficient.
    int64 private constant LARGEST = 2 ** 40 - 1;

    function testFuzz_clip(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        // Ranges of every size.
        int256 low = pick(-LARGEST, LARGEST) >> pickUint(0, 40);
        int256 high = pick(-LARGEST, LARGEST) >> pickUint(0, 40);
        if (low > high) (low, high) = (high, low);
        Operator memory op = operatorOf(Opcodes.CLIP, shape, list(a), ints(low, high));
        uint256 i = pickUint(0, shape.elements() - 1);
        int256 expected = a.mantissas[i];
        if (expected > high) expected = high;
        if (expected < low) expected = low;
        assertEq(recomputed(op, list(a), i), Slow.rescale(expected, 0, shape.bits()));
    }

    function _check(int256 low, int256 high, int256[] memory expected) private {
        Tensor memory a = Tensor(vector(8, 3, 4), ints(-127, -5, 8, 10));
        Operator memory op = operatorOf(Opcodes.CLIP, a.tensorType, list(a), ints(low, high));
        for (uint256 i = 0; i < 4; ++i) {
            assertEq(recomputed(op, list(a), i), expected[i]);
        }
    }

    /// @notice A range within the bits, of one number, around all elements, and beyond the bits on either side.
    function test_byHand() public {
        _check(-5, 9, ints(-5, -5, 8, 9));
        _check(4, 4, ints(4, 4, 4, 4));
        _check(-LARGEST, LARGEST, ints(-127, -5, 8, 10));
        _check(128, 300, ints(127, 127, 127, 127));
        _check(-300, -128, ints(-127, -127, -127, -127));
    }

    /// @notice The good one clips to −1 and 1: neither end passes the other.
    function test_form() public {
        range(Opcodes.CLIP, 0, -LARGEST, 1);
        range(Opcodes.CLIP, 1, -1, LARGEST);
        swap(Opcodes.CLIP, 0, matrix(8, 3, 6, 4));
        swap(Opcodes.CLIP, 9, matrix(8, 3, 6, 4));
        swap(Opcodes.CLIP, 9, matrix(7, 3, 4, 6));
        swap(Opcodes.CLIP, 9, matrix(9, 3, 4, 6));
        swap(Opcodes.CLIP, 9, matrix(8, 2, 4, 6));
    }

    /// @notice An element of the widest type, below the range.
    function test_gas() public {
        TensorType wide = matrix(64, 0, 8, 8);
        measure("Clip", Opcodes.CLIP, wide, list(extremes(wide)), ints(-LARGEST, LARGEST));
    }
}
