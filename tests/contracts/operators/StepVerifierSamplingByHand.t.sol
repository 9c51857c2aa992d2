// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IStepVerifier} from "../../../contracts/interfaces/IStepVerifier.sol";
import {Gumbel} from "../../../contracts/libraries/operators/Gumbel.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {ByHand} from "../verifier/ByHand.sol";
import {Tensor} from "../verifier/VerifierTest.sol";

/// @notice The operators that choose a token on tensors small enough to work out by hand, every element of the output.
contract StepVerifierSamplingByHandTest is ByHand {
    function _ints(int256[8] memory values) private pure returns (int256[] memory l) {
        l = new int256[](8);
        for (uint256 i = 0; i < 8; ++i) {
            l[i] = values[i];
        }
    }

    /// @dev One row of controls.
    function _controls(int256 isChosen, int256 temperature, int256 k, int256 q) private pure returns (Tensor memory t) {
        t.tensorType = vector(32, 0, 7);
        t.mantissas = new int256[](7);
        (t.mantissas[0], t.mantissas[1], t.mantissas[3], t.mantissas[4]) = (isChosen, temperature, k, q);
    }

    /// @notice The first of equal ones; of the row, of its halves, and of its elements.
    function test_rowArgMax() public view {
        Tensor memory a = tensorOf(matrix(8, 0, 2, 4), _ints([int256(3), 7, 7, 1, -5, -5, -9, -4]));
        check(Opcodes.ROW_ARG_MAX, vector(32, 0, 2), list(a), ints(), ints(1, 3));
        check(Opcodes.ROW_ARG_MAX, matrix(32, 0, 2, 2), list(a), ints(), ints(1, 0, 0, 1));
        check(Opcodes.ROW_ARG_MAX, matrix(32, 0, 2, 4), list(a), ints(), new int256[](8));
    }

    /// @notice Places beyond a half name its last element, negative ones its first.
    function test_rowPick() public view {
        Tensor memory a = tensorOf(matrix(8, 0, 2, 4), _ints([int256(3), 7, 6, 1, -5, -2, -9, -4]));
        Tensor memory places = tensorOf(vector(8, 0, 4), ints(1, 9, -3, 0));
        check(Opcodes.ROW_PICK, vector(8, 0, 4), list(a, places), ints(), ints(7, 1, -5, -9));
        places = tensorOf(vector(8, 0, 2), ints(2, 9));
        check(Opcodes.ROW_PICK, vector(8, 0, 2), list(a, places), ints(), ints(6, -4));
    }

    /// @notice Thresholds 3 and −3: 3, 7, 6 reach the first, −2 the second. Weights 1 to 8.
    function test_tailSum() public view {
        Tensor memory a = tensorOf(matrix(8, 0, 2, 4), _ints([int256(3), 7, 6, 1, -5, -2, -9, -4]));
        Tensor memory w = tensorOf(matrix(32, 5, 2, 4), _ints([int256(1), 2, 3, 4, 5, 6, 7, 8]));
        Tensor[] memory inputs = list(a, w, tensorOf(vector(8, 0, 2), ints(4, -2)));
        check(Opcodes.TAIL_SUM, vector(32, 0, 2), inputs, ints(-1, 0, 0), ints(3, 1));
        check(Opcodes.TAIL_SUM, vector(32, 5, 2), inputs, ints(-1, 1, 0), ints(6, 6));
        check(Opcodes.TAIL_SUM, matrix(32, 4, 2, 2), inputs, ints(-1, 1, 1), ints(2, 2, 3, 0));
        check(Opcodes.TAIL_SUM, vector(32, 0, 2), inputs, ints(2 ** 40 - 1, 0, 0), ints(0, 0));
        check(Opcodes.TAIL_SUM, vector(32, 0, 2), inputs, ints(1 - 2 ** 40, 0, -1), ints(8, 8));
    }

    /// @notice Where elements are counted, weights need not be opened.
    function test_countsReadNoWeights() public view {
        Tensor memory a = tensorOf(vector(8, 0, 2), ints(1, 2));
        Tensor[] memory inputs = list(a, a, tensorOf(vector(8, 0, 1), ints(2)));
        Operator memory op = operatorOf(Opcodes.TAIL_SUM, vector(32, 0, 1), inputs, ints(0, 0, 0));
        Window[][] memory windows = wholeWindows(inputs);
        windows[1] = new Window[](0);
        assertEq(verifier.recompute(op, 0, context, windows), 1);
    }

    /// @dev Threshold 10 of 8 bits and step 4, two parts.
    function _moved(int256[] memory counts, int256[] memory masses, int256 k, int256 q) private returns (bool) {
        Tensor[] memory inputs = list(
            tensorOf(vector(8, 0, 1), ints(10)),
            tensorOf(vector(16, 0, 2), counts),
            tensorOf(vector(16, 9, 2), masses),
            tensorOf(vector(16, 9, 2), ints(5, 3)),
            _controls(0, 0, k, q)
        );
        Operator memory op = operatorOf(Opcodes.THRESHOLD, vector(8, 0, 1), inputs, ints(4));
        int256 t = recomputed(op, inputs, 0);
        assertTrue(t == 10 || t == 14);
        return t == 14;
    }

    function test_threshold() public {
        // As many as asked for, and no fewer; none asked for is one.
        assertTrue(_moved(ints(1, 1), ints(0, 0), 2, 65_536));
        assertFalse(_moved(ints(1, 1), ints(0, 0), 3, 65_536));
        assertFalse(_moved(ints(0, 0), ints(0, 0), 0, 65_536));
        assertTrue(_moved(ints(1, 0), ints(0, 0), -7, 65_536));
        // Half of 8, and no less.
        assertTrue(_moved(ints(0, 0), ints(3, 1), 9, 32_768));
        assertFalse(_moved(ints(0, 0), ints(3, 1), 9, 32_769));
        // More than all is all; no share is the least there is.
        assertTrue(_moved(ints(0, 0), ints(4, 4), 9, 1 << 20));
        assertFalse(_moved(ints(0, 0), ints(0, 0), 9, 0));
        assertTrue(_moved(ints(0, 0), ints(0, 1), 9, -5));
    }

    function test_thresholdIsCutOff() public view {
        Tensor memory t = tensorOf(vector(8, 0, 1), ints(120));
        Tensor memory one = tensorOf(vector(8, 0, 1), ints(1));
        check(Opcodes.THRESHOLD, t.tensorType, list(t, one, one, one, _controls(0, 0, 1, 0)), ints(64), ints(127));
    }

    /// @dev Seed, position and column 0: the first of the known answers of Philox, 0x6627e8d5. One leading zero, then
    /// 0x98 and 0x9f after the leading one.
    function _table() private pure returns (Tensor memory table) {
        table.tensorType = vector(32, 16, 8224);
        table.mantissas = new int256[](8224);
        (table.mantissas[257 + 0x98], table.mantissas[257 + 0x99]) = (1000, 2000);
    }

    /// @notice `g = (1000·(256 − 159) + 2000·159)/256` = 1621; `(3·2^20 + 2·1621)/2^4`.
    function test_perturb() public view {
        Tensor memory a = tensorOf(vector(8, 8, 1), ints(3));
        Tensor[] memory inputs = list(a, a, _controls(1, 2, 0, 0), _table());
        TensorType output = vector(32, 24, 1);
        check(Opcodes.PERTURB, output, inputs, ints(0, 4), ints(196_811));
        // Just below the threshold: the least mantissa.
        check(Opcodes.PERTURB, output, inputs, ints(1, 4), ints(1 - 2 ** 31));
        inputs[2] = _controls(1, 0, 0, 0);
        check(Opcodes.PERTURB, output, inputs, ints(-1, 4), ints(196_608));
    }

    /// @notice Columns, positions and either word of the seed all change the draw.
    function test_drawsDiffer() public view {
        Tensor memory a = tensorOf(vector(8, 8, 2), ints(3, 3));
        Tensor memory table = _table();
        for (uint256 i = 0; i < 8224; ++i) {
            table.mantissas[i] = int256(i);
        }
        Tensor[] memory inputs = list(a, tensorOf(vector(8, 8, 1), ints(3)), _controls(1, 1, 0, 0), table);
        int256[] memory seen = new int256[](5);
        Operator memory op = operatorOf(Opcodes.PERTURB, vector(32, 28, 2), inputs, ints(0, 0));
        for (uint256 i = 0; i < 5; ++i) {
            inputs[2] = _controls(1, 1, 0, 0);
            // Column 0, column 1; then the position and the words of the seed.
            if (i > 1) inputs[2].mantissas[i == 2 ? 2 : i + 2] = 1;
            seen[i] = verifier.recompute(op, i == 1 ? 1 : 0, context, wholeWindows(inputs));
            for (uint256 j = 0; j < i; ++j) {
                assertNotEq(seen[i], seen[j]);
            }
        }
    }

    /// @notice Where no noise counts, no entry of the table need be opened; controls must be.
    function test_perturbWithoutNoise() public {
        Tensor memory a = tensorOf(vector(8, 8, 1), ints(3));
        Tensor[] memory inputs = list(a, a, _controls(1, -4, 0, 0), _table());
        Window[][] memory windows = wholeWindows(inputs);
        windows[3] = new Window[](0);
        Operator memory op = operatorOf(Opcodes.PERTURB, vector(32, 24, 1), inputs, ints(0, 4));
        assertEq(verifier.recompute(op, 0, context, windows), 196_608);
        op.attributes[0] = 1;
        assertEq(verifier.recompute(op, 0, context, windows), 1 - 2 ** 31);
        windows[2] = new Window[](0);
        vm.expectRevert(abi.encodeWithSelector(IStepVerifier.MissingElement.selector, 2, 0));
        verifier.recompute(op, 0, context, windows);
    }

    function _isCell(uint256 word, uint256 entry, uint256 rest) private pure {
        (uint256 j, uint256 r) = Gumbel.cell(word);
        assertEq(j, entry);
        assertEq(r, rest);
    }

    /// @notice Octaves from their first word to their last.
    function test_cells() public pure {
        _isCell(0, 31 * 257, 0);
        _isCell(1, 31 * 257, 0);
        _isCell(2, 30 * 257, 0);
        _isCell(3, 30 * 257 + 128, 0);
        _isCell(0x7fffffff, 257 + 255, 255);
        _isCell(0x80000000, 0, 0);
        _isCell(0x80ff0000, 1, 0xfe);
        _isCell(0xffffffff, 255, 255);
    }

    /// @notice The second part is the first of the best; nothing is chosen in the second row.
    function test_choose() public view {
        Tensor memory places = tensorOf(matrix(64, 0, 2, 2), ints(4, 6, 3, 2));
        Tensor memory best = tensorOf(matrix(8, 3, 2, 2), ints(5, 9, 1, 1));
        Tensor memory controls = Tensor(matrix(8, 0, 2, 7), new int256[](14));
        controls.mantissas[0] = 1;
        check(Opcodes.CHOOSE, vector(32, 0, 2), list(places, best, controls), ints(10), ints(16, 0));
        // Of equals the first; whatever is not 0 asks for a token.
        controls.mantissas[7] = -1;
        check(Opcodes.CHOOSE, vector(32, 0, 2), list(places, best, controls), ints(10), ints(16, 3));
        // What an output of 32 bits cannot hold is cut off.
        (places.mantissas[1], places.mantissas[2]) = (2 ** 40, -(2 ** 40));
        check(Opcodes.CHOOSE, vector(32, 0, 2), list(places, best, controls), ints(10), ints(2 ** 31 - 1, 1 - 2 ** 31));
    }
}
