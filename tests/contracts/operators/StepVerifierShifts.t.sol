// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType} from "../../../contracts/types/Types.sol";
import {Slow} from "../verifier/Slow.sol";
import {Tensor, VerifierTest} from "../verifier/VerifierTest.sol";

/// @notice The operators of wide rows against the naive rules, over random shapes, attributes and values, and on
/// tensors small enough to work out by hand.
contract StepVerifierShiftsTest is VerifierTest {
    using TensorTypes for TensorType;

    /// @dev Numbers that are shifts, mostly.
    function _shifts(uint256 rows) private returns (Tensor memory s) {
        s = randomTensor(vector(pickUint(7, 64), 0, rows));
        for (uint256 m = 0; m < rows; ++m) {
            if (pick(0, 3) > 0) s.mantissas[m] = pick(0, 32);
        }
    }

    function _limited(int256 shift) private pure returns (int256) {
        if (shift < 0) return 0;
        return shift > 31 ? int256(31) : shift;
    }

    function testFuzz_rowShift(uint256 seed) public {
        seedNoise(seed);
        uint256 length = pickUint(1, 40);
        Tensor memory a = randomTensor(matrix(pickUint(2, 64), 3, pickUint(1, 3), length * pickUint(1, 3)));
        // Rows of all magnitudes.
        uint256 places = pickUint(0, 63);
        uint256 largest = 0;
        TensorType output = vector(pickUint(8, 64), 0, a.mantissas.length / length);
        uint256 i = pickUint(0, output.elements() - 1);
        for (uint256 k = 0; k < a.mantissas.length; ++k) {
            a.mantissas[k] = a.mantissas[k] >> places;
            uint256 magnitude = uint256(a.mantissas[k] < 0 ? -a.mantissas[k] : a.mantissas[k]);
            if (k / length == i && magnitude > largest) largest = magnitude;
        }
        uint256 bits = pickUint(2, 64);
        uint256 length2 = Slow.bitLength(largest);
        Operator memory op = operatorOf(Opcodes.ROW_SHIFT, output, list(a), ints(int256(bits)));
        assertEq(recomputed(op, list(a), i), length2 < bits ? int256(0) : int256(length2 - (bits - 1)));
    }

    function testFuzz_shiftRows(uint256 seed) public {
        seedNoise(seed);
        (uint256 rows, uint256 length) = (pickUint(1, 4), pickUint(1, 20));
        Tensor memory a = randomTensor(matrix(pickUint(2, 62), 3, rows, length));
        Tensor memory s = _shifts(rows);
        TensorType output = matrix(pickUint(2, 64), 3, rows, length);
        uint256 i = pickUint(0, rows * length - 1);
        Operator memory op = operatorOf(Opcodes.SHIFT_ROWS, output, list(a, s), ints());
        int256 expected = Slow.rescale(a.mantissas[i], _limited(s.mantissas[i / length]), output.bits());
        assertEq(recomputed(op, list(a, s), i), expected);
    }

    function testFuzz_shiftedMatMul(uint256 seed) public {
        seedNoise(seed);
        (uint256 m, uint256 n, uint256 k) = (pickUint(1, 4), pickUint(1, 4), pickUint(1, 80));
        (bool wide, bool mixed) = (pick(0, 1) == 0, pick(0, 1) == 0);
        uint256 offset = pickUint(0, 40);
        uint256 row = offset + k + pickUint(0, 20);
        Tensor[] memory inputs = list(
            randomTensor(matrix(wide ? pickUint(9, 16) : pickUint(2, 8), 3, m, row)),
            randomTensor(matrix(wide && !mixed ? pickUint(9, 16) : pickUint(2, 8), 3, n, k)),
            _shifts(m),
            randomTensor(vector(pickUint(2, 64), 5, n))
        );
        int256[] memory attributes = ints(int256(offset), pick(-32, 63));
        _checkProduct(inputs, matrix(pickUint(2, 64), 0, m, n), attributes);
    }

    function _checkProduct(Tensor[] memory inputs, TensorType output, int256[] memory attributes) private {
        uint256 i = pickUint(0, output.elements() - 1);
        (uint256 m, uint256 n, uint256 k) = (i / output.row(), i % output.row(), inputs[1].tensorType.row());
        uint256 first = m * inputs[0].tensorType.row() + uint256(attributes[0]);
        int256 sum = Slow.dot(inputs[0].mantissas, first, inputs[1].mantissas, n * k, k) * inputs[3].mantissas[n];
        int256 shift = attributes[1] - _limited(inputs[2].mantissas[m]);
        Operator memory op = operatorOf(Opcodes.SHIFTED_MAT_MUL, output, inputs, attributes);
        assertEq(recomputed(op, inputs, i), Slow.rescale(sum, shift, output.bits()));
    }

    /// @notice 300 has nine bits and a sign: two more than eight. Shifted by two, (300, 6) is (75, 2).
    function test_byHand() public {
        Tensor memory a = Tensor(matrix(24, 5, 2, 2), ints(300, 6, 127, -127));
        Tensor memory s = Tensor(vector(8, 0, 2), ints(2, 0));
        Operator memory op = operatorOf(Opcodes.ROW_SHIFT, vector(8, 0, 2), list(a), ints(8));
        assertEq(recomputed(op, list(a), 0), 2);
        assertEq(recomputed(op, list(a), 1), 0);
        Tensor memory shifted = Tensor(matrix(8, 5, 2, 2), ints(75, 2, 127, -127));
        op = operatorOf(Opcodes.SHIFT_ROWS, shifted.tensorType, list(a, s), ints());
        for (uint256 i = 0; i < 4; ++i) {
            assertEq(recomputed(op, list(a, s), i), shifted.mantissas[i]);
        }
        // One column: (75·1 + 2·3)·10·2^2 and (127 − 381)·10, over 4: 810 and −635.
        Tensor[] memory inputs =
            list(shifted, Tensor(matrix(8, 0, 1, 2), ints(1, 3)), s, Tensor(vector(8, 0, 1), ints(10)));
        op = operatorOf(Opcodes.SHIFTED_MAT_MUL, matrix(24, 3, 2, 1), inputs, ints(0, 2));
        assertEq(recomputed(op, inputs, 0), 810);
        assertEq(recomputed(op, inputs, 1), -635);
    }
}
