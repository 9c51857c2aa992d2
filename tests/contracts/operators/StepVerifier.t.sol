// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType} from "../../../contracts/types/Types.sol";
import {Slow} from "../verifier/Slow.sol";
import {Tensor, VerifierTest} from "../verifier/VerifierTest.sol";

/// @notice Operators against the naive rules, over random types, attributes and values; those of transformers in
/// `StepVerifierTransformer`.
contract StepVerifierTest is VerifierTest {
    using TensorTypes for TensorType;

    /// @dev A type whose element count divides that of `a`, as a broadcast operand has it.
    function _divisor(TensorType a, uint256 bits) private returns (TensorType) {
        uint256 kind = pickUint(0, 2);
        if (kind == 0) return withBits(a, bits);
        return vector(bits, 0, kind == 1 ? a.row() : 1);
    }

    function testFuzz_matMul(uint256 seed) public {
        seedNoise(seed);
        bool narrow = pick(0, 1) == 0;
        uint256 m = pickUint(1, 4);
        uint256 n = pickUint(1, 4);
        uint256 k = pickUint(1, 150);
        Tensor memory a = randomTensor(matrix(narrow ? pickUint(2, 8) : pickUint(9, 16), 3, m, k));
        Tensor memory b = randomTensor(matrix(narrow ? pickUint(2, 8) : pickUint(9, 16), 3, n, k));
        int256 shift = pick(-63, 63);
        TensorType output = matrix(pickUint(2, 64), 0, m, n);
        Operator memory op = operatorOf(Opcodes.MAT_MUL, output, list(a, b), ints(shift));
        uint256 element = pickUint(0, m * n - 1);
        int256 sum = Slow.dot(a.mantissas, (element / n) * k, b.mantissas, (element % n) * k, k);
        assertEq(recomputed(op, list(a, b), element), Slow.rescale(sum, shift, output.bits()));
    }

    function testFuzz_transpose(uint256 seed) public {
        seedNoise(seed);
        (uint256 m, uint256 n) = (pickUint(1, 9), pickUint(1, 9));
        uint256 bits = pickUint(2, 64);
        Tensor memory a = randomTensor(matrix(bits, -5, m, n));
        Operator memory op = operatorOf(Opcodes.TRANSPOSE, matrix(bits, -5, n, m), list(a), ints());
        for (uint256 i = 0; i < m; ++i) {
            uint256 j = pickUint(0, n - 1);
            assertEq(recomputed(op, list(a), j * m + i), a.mantissas[i * n + j]);
        }
    }

    function testFuzz_combine(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        Tensor memory b = randomTensor(_divisor(shape, pickUint(2, 64)));
        int256[] memory attributes = ints(pick(1 - 2 ** 40, 2 ** 40 - 1), pick(1 - 2 ** 40, 2 ** 40 - 1), pick(-63, 63));
        if (pick(0, 1) == 0) (attributes[0], attributes[1]) = (pick(-3, 3), pick(-3, 3));
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.COMBINE, output, list(a, b), attributes);
        uint256 i = pickUint(0, shape.elements() - 1);
        int256 sum = attributes[0] * a.mantissas[i] + attributes[1] * b.mantissas[i % b.mantissas.length];
        assertEq(recomputed(op, list(a, b), i), Slow.rescale(sum, attributes[2], output.bits()));
    }

    function testFuzz_scale(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        int256[] memory attributes = ints(pick(1 - 2 ** 40, 2 ** 40 - 1), pick(-63, 63));
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.SCALE, output, list(a), attributes);
        uint256 i = pickUint(0, shape.elements() - 1);
        int256 expected = Slow.rescale(attributes[0] * a.mantissas[i], attributes[1], output.bits());
        assertEq(recomputed(op, list(a), i), expected);
    }

    function testFuzz_mul(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        Tensor memory b = randomTensor(_divisor(shape, pickUint(2, 64)));
        int256 shift = pick(-63, 63);
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.MUL, output, list(a, b), ints(shift));
        uint256 i = pickUint(0, shape.elements() - 1);
        int256 product = a.mantissas[i] * b.mantissas[i % b.mantissas.length];
        assertEq(recomputed(op, list(a, b), i), Slow.rescale(product, shift, output.bits()));
    }

    function testFuzz_relu(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        Operator memory op = operatorOf(Opcodes.RELU, shape, list(a), ints());
        uint256 i = pickUint(0, shape.elements() - 1);
        assertEq(recomputed(op, list(a), i), a.mantissas[i] < 0 ? int256(0) : a.mantissas[i]);
    }

    function testFuzz_reluGrad(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory dy = randomTensor(shape);
        Tensor memory x = randomTensor(withBits(shape, pickUint(2, 64)));
        Operator memory op = operatorOf(Opcodes.RELU_GRAD, shape, list(dy, x), ints());
        uint256 i = pickUint(0, shape.elements() - 1);
        assertEq(recomputed(op, list(dy, x), i), x.mantissas[i] > 0 ? dy.mantissas[i] : int256(0));
    }

    function testFuzz_lookup(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory x = randomTensor(shape);
        Tensor memory table = randomTensor(vector(pickUint(2, 32), 0, 2 ** pickUint(0, 6) + 1));
        int256[] memory attributes = ints(pick(-63, 63), pick(1 - 2 ** 40, 2 ** 40 - 1), pick(1, 16), pick(-63, 63));
        if (pick(0, 3) > 0) {
            // Bring the argument into the table.
            (attributes[0], attributes[1]) = (int256(x.tensorType.bits()) - pick(8, 20), pick(-(2 ** 18), 2 ** 10));
            if (attributes[0] > 63) attributes[0] = 63;
        }
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.LOOKUP, output, list(x, table), attributes);
        uint256 i = pickUint(0, shape.elements() - 1);
        int256 expected = Slow.lookup(x.mantissas[i], table.mantissas, attributes, output.bits());
        assertEq(recomputed(op, list(x, table), i), expected);
    }

    function testFuzz_rowMax(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        TensorType output = vector(shape.bits(), shape.exponent(), shape.rows());
        int256 causal = shape.rank() == 1 ? int256(0) : pick(0, 1);
        Operator memory op = operatorOf(Opcodes.ROW_MAX, output, list(a), ints(causal));
        uint256 m = pickUint(0, shape.rows() - 1);
        int256 best = type(int256).min;
        for (uint256 k = 0; k < shape.row(); ++k) {
            int256 value = a.mantissas[m * shape.row() + k];
            if (Slow.visible(shape, causal, m, k) && value > best) best = value;
        }
        assertEq(recomputed(op, list(a), m), best);
    }

    function testFuzz_expNeg(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        Tensor memory max = randomTensor(vector(shape.bits(), shape.exponent(), shape.rows()));
        Tensor memory table = randomTensor(vector(pickUint(2, 32), 24, 257));
        int256[] memory attributes =
            ints(pick(1, 2 ** 24 - 1), pick(-63, 63), shape.rank() == 1 ? int256(0) : pick(0, 1));
        if (pick(0, 3) > 0) attributes[1] = int256(shape.bits()) - pick(0, 10);
        if (attributes[1] > 63) attributes[1] = 63;
        Operator memory op = operatorOf(Opcodes.EXP_NEG, _withPrecision(shape, 26, 24), list(a, max, table), attributes);
        uint256 i = pickUint(0, shape.elements() - 1);
        int256 expected =
            Slow.expNeg(a.mantissas[i], max.mantissas[i / shape.row()], table.mantissas, attributes[0], attributes[1]);
        if (!Slow.visible(shape, attributes[2], i / shape.row(), i % shape.row())) expected = 0;
        assertEq(recomputed(op, list(a, max, table), i), expected);
    }

    function _withPrecision(TensorType shape, uint256 bits, uint256 exponent) private pure returns (TensorType) {
        return
            TensorType.wrap((TensorType.unwrap(shape) & (type(uint256).max >> 24)) | (bits << 248) | (exponent << 232));
    }

    function testFuzz_rowSum(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        int256 shift = pick(-63, 63);
        TensorType output = vector(pickUint(2, 64), 0, shape.rows());
        Operator memory op = operatorOf(Opcodes.ROW_SUM, output, list(a), ints(shift));
        uint256 m = pickUint(0, shape.rows() - 1);
        int256 sum = 0;
        for (uint256 k = 0; k < shape.row(); ++k) {
            sum += a.mantissas[m * shape.row() + k];
        }
        assertEq(recomputed(op, list(a), m), Slow.rescale(sum, shift, output.bits()));
    }

    function testFuzz_rowAbsMax(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        TensorType output = vector(shape.bits(), shape.exponent(), shape.rows());
        Operator memory op = operatorOf(Opcodes.ROW_ABS_MAX, output, list(a), ints());
        uint256 m = pickUint(0, shape.rows() - 1);
        int256 best = 0;
        for (uint256 k = 0; k < shape.row(); ++k) {
            int256 value = a.mantissas[m * shape.row() + k];
            if (value < 0) value = -value;
            if (value > best) best = value;
        }
        assertEq(recomputed(op, list(a), m), best);
    }

    function testFuzz_normalize(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory p = randomTensor(shape);
        Tensor memory z = randomTensor(vector(pickUint(2, 64), 0, shape.rows()));
        int256 bits = pick(0, 32);
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.NORMALIZE, output, list(p, z), ints(bits));
        uint256 i = pickUint(0, shape.elements() - 1);
        int256 divisor = z.mantissas[i / shape.row()];
        if (divisor < 1) divisor = 1;
        int256 quotient = Slow.div(p.mantissas[i] * int256(2 ** uint256(bits)), divisor);
        assertEq(recomputed(op, list(p, z), i), Slow.clamp(quotient, output.bits()));
    }

    function testFuzz_oneHotSub(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory p = randomTensor(shape);
        Tensor memory label = randomTensor(vector(pickUint(2, 64), 0, shape.rows()));
        int256[] memory attributes = ints(pick(0, 2 ** 40 - 1), pick(-63, 63));
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.ONE_HOT_SUB, output, list(p, label), attributes);
        uint256 i = pickUint(0, shape.elements() - 1);
        // Half of the time the label is this column.
        if (pick(0, 1) == 0 && int256(i % shape.row()) <= label.tensorType.limit()) {
            label.mantissas[i / shape.row()] = int256(i % shape.row());
        }
        int256 value = p.mantissas[i];
        if (label.mantissas[i / shape.row()] == int256(i % shape.row())) value -= attributes[0];
        assertEq(recomputed(op, list(p, label), i), Slow.rescale(value, attributes[1], output.bits()));
    }

    function testFuzz_sample(uint256 seed, bytes32 jobKey, uint32 step) public {
        seedNoise(seed);
        (context.jobKey, context.step) = (jobKey, step);
        bool scalars = pick(0, 1) == 0;
        uint256 rows = pickUint(1, 40);
        uint256 columns = scalars ? 1 : pickUint(1, 6);
        uint256 batch = pickUint(1, 10);
        Tensor memory data = randomTensor(scalars ? vector(13, 0, rows) : matrix(13, 0, rows, columns));
        TensorType output = scalars ? vector(13, 0, batch) : matrix(13, 0, batch, columns);
        int256 firstRow = pick(0, int256(2 ** 32 - batch));
        Operator memory op = operatorOf(Opcodes.SAMPLE, output, list(data), ints(firstRow));
        uint256 i = pickUint(0, batch * columns - 1);
        uint256 drawn = _drawn(uint256(firstRow) + i / columns, rows);
        assertEq(recomputed(op, list(data), i), data.mantissas[drawn * columns + i % columns]);
    }

    function _drawn(uint256 counter, uint256 rows) private view returns (uint256) {
        return uint256(Slow.philox(context.jobKey, uint32(counter), context.step)) * rows / 2 ** 32;
    }
}
