// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../../contracts/interfaces/IStepVerifier.sol";
import {Philox} from "../../../contracts/libraries/arithmetic/Philox.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {ByHand} from "../verifier/ByHand.sol";
import {Tensor} from "../verifier/VerifierTest.sol";

/// @notice The operators that training adds on tensors small enough to work out by hand, every element of the output.
contract StepVerifierTrainingByHandTest is ByHand {
    /// @dev Two rows of three.
    function _rows() private pure returns (Tensor memory) {
        return tensorOf(matrix(8, 3, 2, 3), six([int256(1), 2, 3, 4, 5, 6]));
    }

    /// @notice 10 goes with the first row, 20 with the second; one element with all, an element each.
    function test_rowCombine() public view {
        Tensor memory b = tensorOf(vector(8, 3, 2), ints(10, 20));
        int256[] memory expected = six([int256(12), 14, 16, 28, 30, 32]);
        check(Opcodes.ROW_COMBINE, matrix(9, 3, 2, 3), list(_rows(), b), ints(2, 1, 0), expected);
        // 10 to 15 halved, ties to even.
        b = tensorOf(vector(8, 3, 1), ints(9));
        expected = six([int256(5), 6, 6, 6, 7, 8]);
        check(Opcodes.ROW_COMBINE, matrix(9, 2, 2, 3), list(_rows(), b), ints(1, 1, 1), expected);
        b = _rows();
        expected = six([int256(0), 0, 0, 0, 0, 0]);
        check(Opcodes.ROW_COMBINE, matrix(9, 3, 2, 3), list(_rows(), b), ints(2, -2, 0), expected);
    }

    function test_rowMul() public view {
        Tensor memory b = tensorOf(vector(8, 0, 2), ints(10, -1));
        int256[] memory expected = six([int256(10), 20, 30, -4, -5, -6]);
        check(Opcodes.ROW_MUL, matrix(9, 3, 2, 3), list(_rows(), b), ints(0), expected);
        // 10/4, 20/4, 30/4, −1, −5/4, −6/4: ties to even, and the limit of 3 bits.
        expected = six([int256(2), 3, 3, -1, -1, -2]);
        check(Opcodes.ROW_MUL, matrix(3, 1, 2, 3), list(_rows(), b), ints(2), expected);
    }

    /// @notice Σ16²x² + ε = 2^12: 13 bits, so j = 24; the root is 2^30, R = 2^24. Then 2^24·2^(24 − 32).
    function test_inverseNorm() public view {
        Tensor memory x = tensorOf(matrix(8, 0, 1, 4), ints(2, -2, 2, 0));
        check(Opcodes.INVERSE_NORM, vector(32, 18, 1), list(x), ints(0, 4096 - 12 * 256, 32), ints(2 ** 16));
        // Parts: 8·256 + 2048 = 2^12, and 4·256 + 2048 = 3072 with the root ⌊√(3072·4^25)⌋ and R =
        // ⌊2^54/1859775393⌋ = 9686330.
        check(Opcodes.INVERSE_NORM, vector(32, 18, 2), list(x), ints(0, 2048, 32), ints(65_536, 75_674));
        // Around the mean nothing is left but ε = 1: j = 30, R = 2^24.
        x = tensorOf(matrix(8, 0, 1, 4), ints(7, 7, 7, 7));
        check(Opcodes.INVERSE_NORM, vector(32, 18, 1), list(x), ints(1, 1, 34), ints(2 ** 20));
        // Shifts from −62 on.
        check(Opcodes.INVERSE_NORM, vector(64, 18, 1), list(x), ints(1, 1, -32), ints(2 ** 63 - 1));
    }

    /// @notice Ids 0, 1, 5, −1 of three rows: the first has columns 0 and 3 of g, the last column 2.
    function test_gatherGrad() public view {
        Tensor memory g = tensorOf(matrix(8, 3, 1, 4), ints(1, 20, 100, -4));
        Tensor memory ids = tensorOf(vector(8, 0, 4), ints(0, 1, 5, -1));
        check(Opcodes.GATHER_GRAD, matrix(16, 3, 3, 1), list(g, ids), ints(0), ints(-3, 20, 100));
        // A row of its own for each of eight, of which two are named; and one for all, id or not.
        Operator memory op = operatorOf(Opcodes.GATHER_GRAD, matrix(16, 4, 8, 1), list(g, ids), ints(-1));
        assertEq(verifier.recompute(op, 5, context, wholeWindows(list(g, ids))), 200);
        assertEq(verifier.recompute(op, 4, context, wholeWindows(list(g, ids))), 0);
        check(Opcodes.GATHER_GRAD, matrix(16, 3, 1, 1), list(g, ids), ints(0), ints(117));
        // Two rows of g: elements of the output are columns of one row.
        g = tensorOf(matrix(8, 3, 2, 2), ints(1, 2, 30, 40));
        ids = tensorOf(vector(8, 0, 2), ints(1, 0));
        check(Opcodes.GATHER_GRAD, matrix(16, 3, 2, 2), list(g, ids), ints(0), ints(2, 40, 1, 30));
    }

    /// @notice Ids beyond what their width could reach name the ends.
    function test_gatherGradOfManyRows() public view {
        Tensor memory g = tensorOf(matrix(8, 3, 1, 2), ints(3, 5));
        Tensor memory ids = tensorOf(vector(8, 0, 2), ints(127, -127));
        Operator memory op = operatorOf(Opcodes.GATHER_GRAD, matrix(8, 3, 1000, 1), list(g, ids), ints(0));
        Window[][] memory windows = wholeWindows(list(g, ids));
        assertEq(verifier.recompute(op, 0, context, windows), 5);
        assertEq(verifier.recompute(op, 127, context, windows), 3);
        assertEq(verifier.recompute(op, 128, context, windows), 0);
        assertEq(verifier.recompute(op, 999, context, windows), 0);
    }

    /// @notice 8/(2 + 2) = 2, 6/4 and −6/4 half up, −1 under the root is 0: 7·4/2; and √8 is 2.
    function test_ratio() public view {
        Tensor memory m = tensorOf(vector(8, 0, 4), ints(8, 6, -6, 7));
        Tensor memory v = tensorOf(vector(16, 0, 4), ints(4, 8, 4, -1));
        check(Opcodes.RATIO, vector(8, 0, 4), list(m, v), ints(0, 2), ints(2, 2, -1, 4));
        check(Opcodes.RATIO, vector(6, 2, 4), list(m, v), ints(2, 2), ints(8, 6, -6, 14));
        check(Opcodes.RATIO, vector(4, 2, 4), list(m, v), ints(2, 2), ints(7, 6, -6, 7));
    }

    /// @notice Norms of 3, 4, 8, nothing against a limit of 4: 16, 16, 8, 16 sixteenths. Then 3.
    function test_shrink() public view {
        Tensor memory s = tensorOf(vector(16, 0, 4), ints(9, 16, 64, -5));
        check(Opcodes.SHRINK, vector(8, 4, 4), list(s), ints(4, 4), ints(16, 16, 8, 16));
        check(Opcodes.SHRINK, vector(8, 4, 4), list(s), ints(3, 4), ints(16, 12, 6, 16));
        check(Opcodes.SHRINK, vector(4, 4, 4), list(s), ints(3, 4), ints(7, 7, 6, 7));
    }

    function test_atStep() public {
        Tensor memory table = tensorOf(matrix(8, 3, 3, 2), six([int256(1), 2, 3, 4, 5, 6]));
        uint32[4] memory steps = [uint32(0), 1, 2, type(uint32).max];
        for (uint256 i = 0; i < 4; ++i) {
            context.step = steps[i];
            int256 first = i < 2 ? int256(2 * i + 1) : int256(5);
            check(Opcodes.AT_STEP, vector(8, 3, 2), list(table), ints(), ints(first, first + 1));
        }
        context.step = 4;
        table.tensorType = vector(8, 3, 6);
        check(Opcodes.AT_STEP, vector(8, 3, 1), list(table), ints(), ints(5));
    }

    /// @notice Two heads of three elements; three of two, in one group; six of one, in three.
    function test_groupSum() public view {
        Tensor memory a = tensorOf(matrix(8, 3, 1, 6), six([int256(1), 20, 3, 40, 5, 60]));
        check(Opcodes.GROUP_SUM, matrix(9, 3, 1, 3), list(a), ints(2, 0), ints(41, 25, 63));
        check(Opcodes.GROUP_SUM, matrix(9, 3, 1, 2), list(a), ints(3, 0), ints(9, 120));
        check(Opcodes.GROUP_SUM, matrix(9, 3, 1, 3), list(a), ints(6, 0), ints(21, 43, 65));
        // Tokens do not mix; 21, 43, 65 halved.
        a = tensorOf(matrix(8, 3, 3, 2), six([int256(1), 20, 3, 40, 5, 60]));
        check(Opcodes.GROUP_SUM, matrix(9, 2, 3, 1), list(a), ints(2, 1), ints(10, 22, 32));
    }

    /// @notice Elements from windows in any order; one that is in none, or no windows at all, is missed.
    function test_groupSumOfWindows() public {
        Tensor memory a = tensorOf(matrix(8, 3, 1, 6), six([int256(1), 20, 3, 40, 5, 60]));
        Operator memory op = operatorOf(Opcodes.GROUP_SUM, matrix(9, 3, 1, 2), list(a), ints(3, 0));
        Window[][] memory windows = new Window[][](1);
        windows[0] = new Window[](3);
        (windows[0][0].firstByte, windows[0][0].data) = (5, hex"3c");
        (windows[0][1].firstByte, windows[0][1].data) = (1, hex"14");
        (windows[0][2].firstByte, windows[0][2].data) = (2, hex"0328");
        assertEq(verifier.recompute(op, 1, context, windows), 120);
        vm.expectRevert(abi.encodeWithSelector(IStepVerifier.MissingElement.selector, 0, 0));
        verifier.recompute(op, 0, context, windows);
        windows[0][1].data = "";
        vm.expectRevert(abi.encodeWithSelector(IStepVerifier.MissingElement.selector, 0, 1));
        verifier.recompute(op, 1, context, windows);
        vm.expectRevert(abi.encodeWithSelector(IStepVerifier.MissingElement.selector, 0, 1));
        verifier.recompute(op, 1, context, new Window[][](0));
    }

    /// @notice The draw is that of the element, the step, the stream and the kind; it has to be below `keep`.
    function test_dropout() public {
        Tensor memory a = tensorOf(vector(8, 3, 2), ints(7, 9));
        uint256 word = Philox.drawElement(context.jobKey, 1, 7, 5, 2 ** 16);
        Operator memory op = operatorOf(Opcodes.DROPOUT, vector(8, 3, 2), list(a), ints(int256(word), 5, 2, 0));
        Window[][] memory windows = wholeWindows(list(a));
        assertEq(verifier.recompute(op, 1, context, windows), 0);
        op.attributes[0] += 1;
        assertEq(verifier.recompute(op, 1, context, windows), 18);
        // What is kept has to be opened.
        vm.expectRevert(abi.encodeWithSelector(IStepVerifier.MissingElement.selector, 0, 1));
        verifier.recompute(op, 1, context, new Window[][](0));
    }

    /// @notice Beyond 2^34 elements the counter's last word goes on, for either kind.
    function test_elementsBeyondAWord() public view {
        uint64 far = uint64(3 * 2 ** 34 + 17);
        TensorType large = matrix(8, 3, 2 ** 18, 2 ** 18);
        Tensor[] memory inputs = new Tensor[](1);
        inputs[0].tensorType = large;
        uint256 word = Philox.drawElement(context.jobKey, 17, 7, 5, 2 ** 16 + 3);
        Operator memory op = operatorOf(Opcodes.DROPOUT, large, inputs, ints(int256(word + 1), 5, 2, 0));
        Window[][] memory windows = new Window[][](1);
        windows[0] = new Window[](1);
        windows[0][0] = Window({firstByte: far, data: hex"07"});
        assertEq(verifier.recompute(op, far, context, windows), 14);
        op.attributes[0] -= 1;
        assertEq(verifier.recompute(op, far, context, windows), 0);

        // 7/16 goes up just where the draw's first half byte is 9 or more.
        inputs = new Tensor[](2);
        (inputs[0].tensorType, inputs[1].tensorType) = (large, vector(8, 3, 2 ** 18));
        word = Philox.drawElement(context.jobKey, 17, 7, 5, 2 ** 17 + 3);
        op = operatorOf(Opcodes.DITHER, large, inputs, ints(0, 5));
        Window[][] memory both = new Window[][](2);
        (both[0], both[1]) = (windows[0], new Window[](1));
        both[1][0] = Window({firstByte: far / 2 ** 18, data: hex"10"});
        assertEq(verifier.recompute(op, far, context, both), word >> 28 >= 9 ? int256(1) : int256(0));
    }

    function test_slice() public view {
        check(Opcodes.SLICE, matrix(8, 3, 2, 2), list(_rows()), ints(0), ints(1, 2, 4, 5));
        check(Opcodes.SLICE, matrix(8, 3, 2, 2), list(_rows()), ints(1), ints(2, 3, 5, 6));
        check(Opcodes.SLICE, matrix(8, 3, 2, 1), list(_rows()), ints(2), ints(3, 6));
    }

    /// @notice 4/2 and −4/2 are whole, whatever is drawn; 1/4 and −1/4 go up in one and three of four draws.
    function test_dither() public view {
        Tensor memory p = tensorOf(matrix(8, 0, 2, 2), ints(4, -4, 1, -1));
        Tensor memory z = tensorOf(vector(8, 0, 2), ints(2, 4));
        (int256 up, int256 down) = (int256(0), int256(-1));
        if (Philox.drawElement(context.jobKey, 2, 7, 9, 2 ** 17) >= 3 << 30) up = 1;
        if (Philox.drawElement(context.jobKey, 3, 7, 9, 2 ** 17) >= 1 << 30) down = 0;
        check(Opcodes.DITHER, matrix(8, 0, 2, 2), list(p, z), ints(0, 9), ints(2, -2, up, down));
        // Sums that are not positive count as one; two places, and the limit of 4 bits.
        z = tensorOf(vector(8, 0, 2), ints(0, -3));
        check(Opcodes.DITHER, matrix(4, 2, 2, 2), list(p, z), ints(2, 9), ints(7, -7, 4, -4));
    }

    // What training changed of other operators.

    function test_transposeOfMatrices() public view {
        Tensor memory a = tensorOf(cube(8, 3, 2, 1, 2), ints(1, 2, 3, 4));
        check(Opcodes.TRANSPOSE, cube(8, 3, 2, 2, 1), list(a), ints(), ints(1, 2, 3, 4));
        a = tensorOf(cube(8, 3, 1, 2, 2), ints(1, 2, 3, 4));
        check(Opcodes.TRANSPOSE, cube(8, 3, 1, 2, 2), list(a), ints(), ints(1, 3, 2, 4));
        a = tensorOf(cube(8, 3, 1, 3, 2), six([int256(1), 2, 3, 4, 5, 6]));
        check(Opcodes.TRANSPOSE, cube(8, 3, 1, 2, 3), list(a), ints(), six([int256(1), 3, 5, 2, 4, 6]));
    }

    function test_parts() public view {
        Tensor memory a = tensorOf(matrix(8, 3, 1, 6), six([int256(1), -2, 3, -4, -5, -6]));
        check(Opcodes.ROW_MAX, matrix(8, 3, 1, 3), list(a), ints(0), ints(1, 3, -5));
        check(Opcodes.ROW_MAX, matrix(8, 3, 1, 2), list(a), ints(0), ints(3, -4));
        check(Opcodes.ROW_SUM, vector(8, 3, 3), list(a), ints(0), ints(-1, -1, -11));
        check(Opcodes.ROW_SUM, vector(8, 2, 3), list(a), ints(1), ints(0, 0, -6));
    }

    /// @notice Ids of a batch, in order.
    function test_gatherOfBatches() public view {
        Tensor memory table = tensorOf(matrix(8, 3, 3, 1), ints(10, 20, 30));
        Tensor memory scale = tensorOf(vector(8, 0, 3), ints(1, 1, 1));
        Tensor memory ids = tensorOf(matrix(8, 0, 2, 2), ints(2, 0, 1, 2));
        check(Opcodes.GATHER, matrix(8, 3, 4, 1), list(table, scale, ids), ints(0), ints(30, 10, 20, 30));
    }
}
