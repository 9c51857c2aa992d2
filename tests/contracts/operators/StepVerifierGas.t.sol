// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Merkle} from "../../../contracts/libraries/proofs/Merkle.sol";
import {Operator, TensorType, Window} from "../../../contracts/types/Types.sol";
import {DotProductHarness} from "../libraries/arithmetic/DotProduct.t.sol";
import {MerkleHarness} from "../libraries/proofs/Merkle.t.sol";
import {Noise} from "../verifier/Noise.sol";
import {OperatorTest} from "../verifier/OperatorTest.sol";
import {Tensor} from "../verifier/VerifierTest.sol";

/// @notice Gas of every operator at its largest: reductions over 4096 elements, the widest types, the longest tables.
/// Compared with `snapshots`. Execution only, without the transaction's calldata.
contract StepVerifierGasTest is OperatorTest {
    using TensorTypes for TensorType;

    uint256 private constant K = 4096;
    /// @dev Nor one of two rows of which one is looked through twice, both of int64.
    uint256 private constant LIMIT_OF_GATHER_GRAD = 1_200_000;

    function test_matMul() public {
        Tensor memory a = extremes(matrix(8, 7, 1, K));
        assertLt(measure("MatMul int8", Opcodes.MAT_MUL, matrix(8, 7, 1, 1), list(a, a), ints(20)), 70_000);
        a = extremes(matrix(16, 7, 1, K));
        assertLt(measure("MatMul int16", Opcodes.MAT_MUL, matrix(16, 7, 1, 1), list(a, a), ints(30)), 125_000);
    }

    function test_reductions() public {
        for (uint256 bits = 8; bits <= 64; bits *= 2) {
            Tensor memory a = extremes(matrix(bits, 0, 1, K));
            string memory suffix = string.concat(" int", vm.toString(bits));
            measure(string.concat("RowMax", suffix), Opcodes.ROW_MAX, vector(bits, 0, 1), list(a), ints(0));
            measure(string.concat("RowAbsMax", suffix), Opcodes.ROW_ABS_MAX, vector(bits, 0, 1), list(a), ints());
            measure(string.concat("RowSum", suffix), Opcodes.ROW_SUM, vector(bits, 0, 1), list(a), ints(12));
        }
    }

    function test_attention() public {
        // One head 4096 wide, 4096 keys: the longest products.
        for (uint256 bits = 8; bits <= 16; bits *= 2) {
            string memory suffix = string.concat(" int", vm.toString(bits));
            Tensor memory row = extremes(matrix(bits, 7, 1, K));
            Tensor memory long = extremes(matrix(bits, 7, 1, 2 * K));
            Tensor memory scale = extremes(vector(16, 7, 1));
            Tensor[] memory inputs = list(long, row, scale, scale);
            TensorType one = matrix(16, 7, 1, 1);
            measure(string.concat("ScaledMatMul", suffix), Opcodes.SCALED_MAT_MUL, one, inputs, ints(int256(K), 50));
            TensorType score = cube(16, 7, 1, 1, 1);
            measure(string.concat("HeadScores", suffix), Opcodes.HEAD_SCORES, score, list(row, row), ints(1, 30));
            Tensor memory p = extremes(cube(bits, 7, 1, 1, K));
            measure(string.concat("HeadMix", suffix), Opcodes.HEAD_MIX, one, list(p, row), ints(1, 30));
        }
    }

    function test_norms() public {
        Tensor memory small = extremes(vector(16, 0, K));
        for (uint256 bits = 8; bits <= 24; bits += 8) {
            Tensor memory x = extremes(matrix(bits, 7, 1, K));
            string memory suffix = string.concat(" int", vm.toString(bits));
            Tensor[] memory inputs = list(x, small, small);
            measure(string.concat("Norm centered", suffix), Opcodes.NORM, x.tensorType, inputs, ints(1, 9, 20, 20));
            measure(string.concat("Norm", suffix), Opcodes.NORM, x.tensorType, inputs, ints(0, 9, 20, 20));
        }
    }

    function test_shiftedRows() public {
        Tensor memory wide = extremes(matrix(24, 7, 1, 2 * K));
        measure("RowShift int24", Opcodes.ROW_SHIFT, vector(8, 0, 2), list(wide), ints(16));
        Tensor memory shift = extremes(vector(8, 0, 1));
        measure("ShiftRows", Opcodes.SHIFT_ROWS, matrix(16, 7, 1, 2 * K), list(wide, shift), ints());
        Tensor memory a = extremes(matrix(16, 7, 1, 2 * K));
        for (uint256 bits = 8; bits <= 16; bits *= 2) {
            Tensor[] memory inputs = list(a, extremes(matrix(bits, 7, 1, K)), shift, extremes(vector(18, 7, 1)));
            string memory name = string.concat("ShiftedMatMul int16 by int", vm.toString(bits));
            measure(name, Opcodes.SHIFTED_MAT_MUL, matrix(24, 0, 1, 1), inputs, ints(int256(K), 21));
        }
    }

    function test_positionsAndEmbeddings() public {
        Tensor memory x = extremes(matrix(16, 0, 4, 128));
        Tensor memory table = extremes(matrix(16, 14, 4, 64));
        measure("Rope", Opcodes.ROPE, x.tensorType, list(x, table), ints(2, 14));
        table = extremes(matrix(64, 0, 8, 8));
        Tensor memory ids = extremes(vector(32, 0, 8));
        ids.mantissas[7] = 5;
        Tensor[] memory inputs = list(table, extremes(vector(64, 0, 8)), ids);
        measure("Gather", Opcodes.GATHER, table.tensorType, inputs, ints(63));
    }

    function test_elementwise() public {
        TensorType wide = matrix(64, 0, 8, 8);
        Tensor memory a = extremes(wide);
        measure("Transpose", Opcodes.TRANSPOSE, wide, list(a), ints());
        measure("Combine", Opcodes.COMBINE, wide, list(a, a), ints(2 ** 39, -(2 ** 39), 40));
        measure("Scale", Opcodes.SCALE, wide, list(a), ints(-(2 ** 39), 40));
        measure("Mul", Opcodes.MUL, wide, list(a, a), ints(63));
        measure("Relu", Opcodes.RELU, wide, list(a), ints());
        // Positive in the last place, so that both operands are read.
        Tensor memory x = extremes(wide);
        x.mantissas[63] = 1;
        measure("ReluGrad", Opcodes.RELU_GRAD, wide, list(a, x), ints());
    }

    function test_tables() public {
        Tensor memory x = extremes(matrix(32, 0, 8, 8));
        Tensor memory table = extremes(vector(32, 0, 4097));
        measure("Lookup", Opcodes.LOOKUP, matrix(32, 0, 8, 8), list(x, table), ints(4, -(2 ** 27), 15, 15));
        Tensor memory max = extremes(vector(32, 0, 8));
        max.mantissas[7] = -x.tensorType.limit() + 1000;
        table = extremes(vector(26, 24, 257));
        measure("ExpNeg", Opcodes.EXP_NEG, matrix(26, 24, 8, 8), list(x, max, table), ints(23_637, 8, 0));
    }

    function test_softmax() public {
        Tensor memory p = extremes(matrix(64, 0, 8, 8));
        Tensor memory z = extremes(vector(64, 0, 8));
        z.mantissas[7] = 12_345;
        measure("Normalize", Opcodes.NORMALIZE, matrix(64, 0, 8, 8), list(p, z), ints(32));
        z.mantissas[7] = 7;
        measure("OneHotSub", Opcodes.ONE_HOT_SUB, matrix(64, 0, 8, 8), list(p, z), ints(2 ** 39, 40));
    }

    function test_sample() public {
        Tensor memory data = extremes(matrix(64, 0, 16, 16));
        measure("Sample", Opcodes.SAMPLE, matrix(64, 0, 8, 16), list(data), ints(99));
    }

    /// @notice The largest comes last.
    function test_places() public {
        for (uint256 bits = 8; bits <= 64; bits *= 2) {
            Tensor memory a = Tensor(matrix(bits, 0, 1, K), new int256[](K));
            a.mantissas[K - 1] = a.tensorType.limit();
            string memory name = string.concat("RowArgMax int", vm.toString(bits));
            measure(name, Opcodes.ROW_ARG_MAX, vector(32, 0, 1), list(a), ints());
        }
    }

    function test_tails() public {
        Tensor memory t = Tensor(vector(64, 0, 1), ints(0));
        for (uint256 bits = 8; bits <= 64; bits *= 2) {
            Tensor memory a = extremes(matrix(bits, 0, 1, K));
            string memory suffix = string.concat(" int", vm.toString(bits));
            // Weights as ExpNeg gives them.
            Tensor[] memory inputs = list(a, extremes(matrix(26, 24, 1, K)), t);
            measure(
                string.concat("TailSum", suffix), Opcodes.TAIL_SUM, vector(40, 24, 1), inputs, ints(-(2 ** 39), 1, 0)
            );
            inputs[1] = extremes(matrix(32, 24, 1, K));
            measure(
                string.concat("TailSum of 32 bits,", suffix), Opcodes.TAIL_SUM, vector(64, 24, 1), inputs, ints(0, 1, 0)
            );
            measure(string.concat("TailSum, count,", suffix), Opcodes.TAIL_SUM, vector(14, 0, 1), inputs, ints(0, 0, 0));
        }
    }

    function test_sampling() public {
        // The largest sums: 4096 parts.
        Tensor memory t = extremes(vector(32, 0, 1));
        Tensor memory controls = Tensor(vector(32, 0, 7), new int256[](7));
        (controls.mantissas[0], controls.mantissas[1]) = (1, 1 << 12);
        Tensor memory counts = extremes(matrix(32, 0, 1, K));
        Tensor memory masses = extremes(matrix(32, 24, 1, K));
        measure("Threshold", Opcodes.THRESHOLD, t.tensorType, list(t, counts, masses, masses, controls), ints(1 << 30));
        Tensor memory best = extremes(matrix(32, 0, 1, K));
        measure("Choose", Opcodes.CHOOSE, vector(32, 0, 1), list(counts, best, controls), ints(4096));
        Tensor memory a = extremes(matrix(32, 0, 1, 63));
        Tensor memory table = extremes(vector(22, 16, 8224));
        measure("Perturb", Opcodes.PERTURB, matrix(32, 12, 1, 63), list(a, t, controls, table), ints(-4, 16));
        measure("RowPick", Opcodes.ROW_PICK, vector(32, 0, 63), list(a, a), ints());
    }

    /// @notice Operators of training: sums over 4096, and of as many heads as there may be, each from a window of
    /// its own.
    function test_gradients() public {
        for (uint256 bits = 8; bits <= 64; bits *= 2) {
            string memory suffix = string.concat(" int", vm.toString(bits));
            Tensor memory g = extremes(matrix(bits, 0, 1, K));
            // Rows as many as the widest ids can name; the one before the last.
            Tensor memory ids = Tensor(vector(bits, 0, K), new int256[](K));
            for (uint256 t = 0; t < K; ++t) {
                ids.mantissas[t] = int256(62 + t % 3);
            }
            TensorType y = matrix(64, 0, 64, 1);
            Operator memory op = operatorOf(Opcodes.GATHER_GRAD, y, list(g, ids), ints(0));
            verifier.recompute(op, 62, context, wholeWindows(list(g, ids)));
            assertLt(vm.snapshotGasLastCall("StepVerifier", string.concat("GatherGrad", suffix)), LIMIT_OF_GATHER_GRAD);
            if (bits > 16) continue;
            Tensor[] memory x = list(extremes(matrix(bits, 7, 1, K)));
            measure(string.concat("InverseNorm", suffix), Opcodes.INVERSE_NORM, vector(32, 0, 1), x, ints(1, 9, 20));
        }
    }

    function test_groups() public {
        Tensor memory a = extremes(matrix(64, 0, 1, 128 * 32));
        Operator memory op = operatorOf(Opcodes.GROUP_SUM, matrix(64, 0, 1, 32), list(a), ints(128, 7));
        verifier.recompute(op, 31, context, wholeWindows(list(a)));
        assertLt(vm.snapshotGasLastCall("StepVerifier", "GroupSum of 128"), LIMIT);
        Window[][] memory windows = new Window[][](1);
        windows[0] = new Window[](128);
        bytes memory data = encode(a);
        for (uint256 h = 0; h < 128; ++h) {
            windows[0][h] = Window({firstByte: uint64(h * 256), data: slice(data, h * 256, h * 256 + 256)});
        }
        verifier.recompute(op, 31, context, windows);
        assertLt(vm.snapshotGasLastCall("StepVerifier", "GroupSum of 128, apart"), 3_000_000);
    }

    function test_training() public {
        TensorType wide = matrix(64, 0, 8, 8);
        Tensor memory a = extremes(wide);
        a.mantissas[63] = a.tensorType.limit();
        Tensor memory b = extremes(vector(64, 0, 8));
        measure("RowCombine", Opcodes.ROW_COMBINE, wide, list(a, b), ints(2 ** 39, -(2 ** 39), 40));
        measure("RowMul", Opcodes.ROW_MUL, wide, list(a, b), ints(63));
        measure("Ratio", Opcodes.RATIO, wide, list(a, a), ints(40, 2 ** 40 - 1));
        measure("Shrink", Opcodes.SHRINK, wide, list(a), ints(2 ** 31 - 1, 30));
        measure("AtStep", Opcodes.AT_STEP, vector(64, 0, 8), list(a), ints());
        measure("Dropout", Opcodes.DROPOUT, wide, list(a), ints(2 ** 32, 9, -(2 ** 39), 40));
        measure("Slice", Opcodes.SLICE, matrix(64, 0, 8, 7), list(a), ints(1));
        b = extremes(vector(30, 0, 8));
        b.mantissas[7] = 12_345;
        measure("Dither", Opcodes.DITHER, wide, list(a, b), ints(32, 9));
    }

    function test_dotProduct() public {
        DotProductHarness harness = new DotProductHarness();
        bytes memory row = Noise.fill(2 * K, "row", 0);
        harness.fast(row, 0, row, 0, K, 1);
        assertLt(vm.snapshotGasLastCall("DotProduct", "int8, 4096"), 60_000);
        harness.fast(row, 1, row, 2, K - 1, 1);
        assertLt(vm.snapshotGasLastCall("DotProduct", "int8, 4095, unaligned"), 60_000);
        harness.fast(row, 0, row, 0, K, 2);
        assertLt(vm.snapshotGasLastCall("DotProduct", "int16, 4096"), 112_000);
        harness.fastMixed(row, 0, row, 0, K);
        assertLt(vm.snapshotGasLastCall("DotProduct", "int16 by int8, 4096"), 112_000);
    }

    /// @notice A row of 4096 bytes in a tensor of 2^16 leaves; a digest in a list of 4096.
    function test_openings() public {
        MerkleHarness harness = new MerkleHarness();
        bytes32[] memory siblings = new bytes32[](12);
        harness.isRange(keccak256("root"), 2 ** 16, 16, Noise.fill(16 * 256, "row", 0), siblings);
        vm.snapshotGasLastCall("Merkle", "16 leaves of 65536");
        harness.isMember(keccak256("root"), keccak256("digest"), 4095, 4096, siblings);
        vm.snapshotGasLastCall("Merkle", "one digest of 4096");
        assertEq(Merkle.depth(4096), siblings.length);
    }
}
