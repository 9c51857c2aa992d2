// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {ByHand} from "../verifier/ByHand.sol";
import {Tensor} from "../verifier/VerifierTest.sol";

/// @notice The operators of transformers on tensors small enough to work out by hand, every element of the output.
contract StepVerifierByHandTest is ByHand {
    /// @notice Two sequences of two tokens that see keys 0, and 0 and 1; then one of three tokens and two keys.
    function test_causalRowMax() public view {
        Tensor memory a = tensorOf(cube(8, 0, 2, 1, 3), six([int256(1), 9, 9, -5, 7, 7]));
        check(Opcodes.ROW_MAX, vector(8, 0, 2), list(a), ints(1), ints(1, -5));
        check(Opcodes.ROW_MAX, vector(8, 0, 2), list(a), ints(0), ints(9, 7));
        a = tensorOf(matrix(8, 0, 2, 3), a.mantissas);
        check(Opcodes.ROW_MAX, vector(8, 0, 2), list(a), ints(1), ints(1, 7));
        a = tensorOf(matrix(8, 0, 3, 2), six([int256(1), 9, 2, 8, 3, 7]));
        check(Opcodes.ROW_MAX, vector(8, 0, 3), list(a), ints(1), ints(1, 8, 7));
    }

    /// @notice The visible part of a row is all that must be opened; for a hidden element of ExpNeg nothing must.
    function test_hiddenElementsAreNotRead() public {
        Tensor memory a = randomTensor(cube(16, 0, 2, 3, 5));
        Operator memory op = operatorOf(Opcodes.ROW_MAX, vector(16, 0, 6), list(a), ints(1));
        Window[][] memory windows = wholeWindows(list(a));
        int256 whole = verifier.recompute(op, 4, context, windows);
        // Row 4 is that of token 1: two elements from 20.
        windows[0][0] = Window({firstByte: 40, data: slice(windows[0][0].data, 40, 44)});
        assertEq(verifier.recompute(op, 4, context, windows), whole);

        Tensor[] memory inputs = list(a, randomTensor(vector(16, 0, 6)), randomTensor(vector(26, 24, 257)));
        op = operatorOf(Opcodes.EXP_NEG, cube(26, 24, 2, 3, 5), inputs, ints(23_637, 0, 1));
        assertEq(verifier.recompute(op, 22, context, new Window[][](0)), 0);
    }

    /// @notice (2·5 + 3·6)·3·10/4 and so on: b goes with columns 1 and 2 of a.
    function test_scaledMatMul() public view {
        Tensor memory a = tensorOf(matrix(8, 0, 1, 4), ints(1, 2, 3, 4));
        Tensor memory b = tensorOf(matrix(8, 0, 2, 2), ints(5, 6, -7, 8));
        Tensor[] memory inputs = list(a, b, tensorOf(vector(8, 0, 1), ints(3)), tensorOf(vector(8, 0, 2), ints(10, 4)));
        check(Opcodes.SCALED_MAT_MUL, matrix(16, 0, 1, 2), inputs, ints(1, 2), ints(210, 30));
    }

    /// @notice Two heads of two elements that share one of keys and values.
    function test_heads() public view {
        Tensor memory q = tensorOf(matrix(8, 0, 1, 4), ints(1, 2, 3, 4));
        Tensor memory k = tensorOf(matrix(8, 0, 2, 2), ints(5, 6, 7, 8));
        check(Opcodes.HEAD_SCORES, cube(16, 0, 2, 1, 2), list(q, k), ints(2, 0), ints(17, 23, 39, 53));
        Tensor memory p = tensorOf(cube(8, 0, 2, 1, 2), ints(1, 2, 3, 4));
        check(Opcodes.HEAD_MIX, matrix(16, 0, 1, 4), list(p, k), ints(2, 0), ints(17, 23, 39, 53));
        // Keys and values for each head.
        k = tensorOf(matrix(8, 0, 1, 4), ints(5, 6, 7, 8));
        check(Opcodes.HEAD_SCORES, cube(16, 0, 2, 1, 1), list(q, k), ints(2, 0), ints(17, 53));
    }

    /// @notice Mean 3, deviations −2, −1, 3; with ε of 1 they stand to √15: as 2^20/√15 = 270,741.
    function test_layerNorm() public view {
        Tensor memory x = tensorOf(vector(16, 0, 3), ints(1, 2, 6));
        Tensor[] memory inputs =
            list(x, tensorOf(vector(8, 0, 3), ints(1, 2, 1)), tensorOf(vector(8, 0, 3), ints(0, 5, -1)));
        int256[] memory expected = ints(-541_482, -541_482 + 40, 812_223 - 8);
        check(Opcodes.NORM, vector(32, 0, 3), inputs, ints(1, 256, 3, 0), expected);
    }

    /// @notice 3 and 4 over 5, but for ε: v = 6401, j = 24, s = 1,342,282,133, R = 13,420,724.
    function test_rmsNorm() public view {
        Tensor memory x = tensorOf(vector(8, 0, 2), ints(3, 4));
        Tensor[] memory inputs = list(x, tensorOf(vector(8, 0, 2), ints(1, 1)), tensorOf(vector(8, 0, 2), ints(0, 0)));
        check(Opcodes.NORM, vector(32, 0, 2), inputs, ints(0, 1, 0, 0), ints(629_096, 838_795));
    }

    /// @notice A row of zeros and the least ε: v = 1, the largest j.
    function test_normOfZeros() public view {
        Tensor memory zeros = tensorOf(vector(8, 0, 2), ints(0, 0));
        Tensor memory ones = tensorOf(vector(8, 0, 2), ints(1, 1));
        check(Opcodes.NORM, vector(32, 0, 2), list(zeros, ones, ones), ints(1, 1, 4, 0), ints(16, 16));
    }

    /// @notice The longest row of the largest squares with the largest ε stays within the bounds of N-28, also where a
    /// malformed row holds −32768.
    function test_normOfExtremes() public view {
        TensorType row = vector(16, 0, 4096);
        Tensor memory x = Tensor(row, new int256[](4096));
        for (uint256 i = 0; i < 4096; ++i) {
            x.mantissas[i] = i % 2 == 0 ? int256(32_767) : int256(-32_768);
        }
        Tensor[] memory inputs = list(x, x, x);
        for (int256 center = 0; center < 2; ++center) {
            Operator memory op = operatorOf(Opcodes.NORM, row, inputs, ints(center, 2 ** 60 - 1, 40, 63));
            // √(2^60 + 2^50) is far above a deviation of 2^19: n = 511, to which the bias adds 2^15·2^40 →
            // 2^55/2^63 → 0.
            assertEq(verifier.recompute(op, 0, context, wholeWindows(inputs)), 0);
            op.attributes[1] = 1;
            op.attributes[2] = 0;
            op.attributes[3] = 20;
            // Every value is a standard deviation from the mean: n = 2^20/√4096 = 2^14, times the gain over
            // 2^20 is 512.
            assertEq(verifier.recompute(op, 0, context, wholeWindows(inputs)), 512);
            assertEq(verifier.recompute(op, 1, context, wholeWindows(inputs)), 512);
        }
    }

    /// @notice Cosine 1/2 and sine 1, one fraction bit; the third element of a head stays as it is.
    function test_rope() public view {
        Tensor memory x = tensorOf(matrix(8, 0, 1, 6), six([int256(3), 5, 7, -1, 2, 4]));
        Tensor memory table = tensorOf(matrix(8, 1, 1, 2), ints(1, 2));
        check(Opcodes.ROPE, x.tensorType, list(x, table), ints(2, 0), six([int256(-7), 11, 14, -5, 0, 8]));
    }

    /// @notice Token t turns by row t of the table.
    function test_ropeOfTokens() public view {
        Tensor memory x = tensorOf(matrix(8, 0, 2, 2), ints(3, 5, 3, 5));
        Tensor memory table = tensorOf(matrix(8, 0, 3, 2), six([int256(1), 0, 0, 1, 9, 9]));
        check(Opcodes.ROPE, x.tensorType, list(x, table), ints(1, 0), ints(3, 5, -5, 3));
    }

    /// @notice Ids beyond the table name its last row, negative ones its first; what follows the tokens is not read.
    function test_gather() public view {
        Tensor memory table = tensorOf(matrix(8, 0, 2, 2), ints(1, 2, 3, 4));
        Tensor memory scale = tensorOf(vector(8, 0, 2), ints(10, 20));
        Tensor memory ids = tensorOf(vector(8, 0, 4), ints(5, -3, 1, 0));
        int256[] memory expected = six([int256(60), 80, 10, 20, 60, 80]);
        check(Opcodes.GATHER, matrix(16, 0, 3, 2), list(table, scale, ids), ints(0), expected);
    }

    function test_rowAbsMax() public view {
        Tensor memory a = tensorOf(matrix(8, 0, 2, 3), six([int256(3), -7, 5, 0, -1, 127]));
        check(Opcodes.ROW_ABS_MAX, vector(8, 0, 2), list(a), ints(), ints(7, 127));
        // −128 is no mantissa of 8 bits: its magnitude is given as the largest there is.
        a.mantissas[4] = -128;
        check(Opcodes.ROW_ABS_MAX, vector(8, 0, 2), list(a), ints(), ints(7, 127));
    }
}
