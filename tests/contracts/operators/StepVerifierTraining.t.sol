// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType} from "../../../contracts/types/Types.sol";
import {Slow} from "../verifier/Slow.sol";
import {SlowTraining} from "../verifier/SlowTraining.sol";
import {Tensor, VerifierTest} from "../verifier/VerifierTest.sol";

/// @notice The operators that training adds against the naive rules, over random shapes, attributes and values.
contract StepVerifierTrainingTest is VerifierTest {
    using TensorTypes for TensorType;

    /// @dev A type with an element for each run of `a`: for the innermost dimensions together, from none of them
    /// to all.
    function _runs(TensorType a, uint256 bits) private returns (TensorType) {
        uint256 kept = pickUint(0, a.rank());
        uint256 count = 1;
        for (uint256 axis = 0; axis < kept; ++axis) {
            count *= a.dim(axis);
        }
        return vector(bits, 0, count);
    }

    function testFuzz_rowCombine(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        Tensor memory b = randomTensor(_runs(shape, pickUint(2, 64)));
        int256[] memory attributes = ints(pick(1 - 2 ** 40, 2 ** 40 - 1), pick(1 - 2 ** 40, 2 ** 40 - 1), pick(-63, 63));
        if (pick(0, 1) == 0) (attributes[0], attributes[1]) = (pick(-3, 3), pick(-3, 3));
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.ROW_COMBINE, output, list(a, b), attributes);
        uint256 i = pickUint(0, a.mantissas.length - 1);
        int256 other = b.mantissas[i * b.mantissas.length / a.mantissas.length];
        int256 sum = attributes[0] * a.mantissas[i] + attributes[1] * other;
        assertEq(recomputed(op, list(a, b), i), Slow.rescale(sum, attributes[2], output.bits()));
    }

    function testFuzz_rowMul(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        Tensor memory b = randomTensor(_runs(shape, pickUint(2, 64)));
        int256 shift = pick(-63, 63);
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.ROW_MUL, output, list(a, b), ints(shift));
        uint256 i = pickUint(0, a.mantissas.length - 1);
        int256 product = a.mantissas[i] * b.mantissas[i * b.mantissas.length / a.mantissas.length];
        assertEq(recomputed(op, list(a, b), i), Slow.rescale(product, shift, output.bits()));
    }

    /// @notice Parts of rows, too; and what Norm makes of the same elements is their deviations times this.
    function testFuzz_inverseNorm(uint256 seed) public {
        seedNoise(seed);
        uint256 length = pickUint(1, 20);
        Tensor memory x = randomTensor(matrix(pickUint(2, 24), 0, pickUint(1, 3), length * pickUint(1, 3)));
        int256[] memory attributes = ints(pick(0, 1), pick(1, int256(2 ** pickUint(1, 60) - 1)), pick(-32, 63));
        if (pick(0, 2) > 0) attributes[2] = pick(0, 30);
        TensorType output = vector(pickUint(2, 64), 0, x.mantissas.length / length);
        Operator memory op = operatorOf(Opcodes.INVERSE_NORM, output, list(x), attributes);
        uint256 i = pickUint(0, output.elements() - 1);
        uint256 places = Slow.normPlaces(x.tensorType.bits());
        (int256 inverse, int256 j,) = Slow.spread(x.mantissas, i * length, length, attributes[0], attributes[1], places);
        assertEq(recomputed(op, list(x), i), Slow.rescale(inverse, attributes[2] - j, output.bits()));
    }

    function testFuzz_gatherGrad(uint256 seed) public {
        seedNoise(seed);
        (uint256 rows, uint256 width, uint256 tokens) = (pickUint(1, 5), pickUint(1, 4), pickUint(1, 300));
        Tensor memory g = randomTensor(matrix(pickUint(2, 64), 3, width, tokens));
        uint256 more = pickUint(0, 3);
        Tensor memory ids = randomTensor(
            pick(0, 1) == 0 ? vector(pickUint(4, 64), 0, tokens + more) : matrix(pickUint(4, 64), 0, tokens + more, 1)
        );
        for (uint256 t = 0; t < tokens; ++t) {
            // Mostly rows that there are, and the first two on either side.
            if (pick(0, 3) > 0) ids.mantissas[t] = pick(-2, int256(rows) + 1);
        }
        int256 shift = pick(-10, 63);
        TensorType output = matrix(pickUint(2, 64), 0, rows, width);
        Operator memory op = operatorOf(Opcodes.GATHER_GRAD, output, list(g, ids), ints(shift));
        uint256 i = pickUint(0, rows * width - 1);
        int256 sum = SlowTraining.gathered(g.mantissas, i % width * tokens, tokens, ids.mantissas, rows, i / width);
        assertEq(recomputed(op, list(g, ids), i), Slow.rescale(sum, shift, output.bits()));
    }

    function testFuzz_ratio(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory m = randomTensor(shape);
        Tensor memory v = randomTensor(withBits(shape, pickUint(2, 64)));
        int256[] memory attributes = ints(pick(0, 40), pick(1, int256(2 ** pickUint(1, 40) - 1)));
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.RATIO, output, list(m, v), attributes);
        uint256 i = pickUint(0, m.mantissas.length - 1);
        // Often a square, or one on either side of it.
        int256 root = pick(1, 2 ** 31 - 1) >> pickUint(0, 30);
        if (pick(0, 1) == 0) v.mantissas[i] = Slow.clamp(root * root + pick(-1, 1), v.tensorType.bits());
        int256 divisor = SlowTraining.rootOf(v.mantissas[i]) + attributes[1];
        int256 quotient = Slow.div(m.mantissas[i] * int256(2 ** uint256(attributes[0])), divisor);
        assertEq(recomputed(op, list(m, v), i), Slow.clamp(quotient, output.bits()));
    }

    function testFuzz_shrink(uint256 seed) public {
        seedNoise(seed);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory s = randomTensor(shape);
        int256[] memory attributes = ints(pick(1, int256(2 ** pickUint(1, 31) - 1)), pick(0, 30));
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.SHRINK, output, list(s), attributes);
        uint256 i = pickUint(0, s.mantissas.length - 1);
        // Often a norm close to the limit.
        int256 close = attributes[0] ** 2 + pick(-2, 2);
        if (pick(0, 1) == 0) s.mantissas[i] = Slow.clamp(close, shape.bits());
        int256 root = SlowTraining.rootOf(s.mantissas[i]);
        int256 one = int256(2 ** uint256(attributes[1]));
        // Of both, the smaller.
        int256 factor = attributes[0] * one / (root == 0 ? int256(1) : root);
        if (factor > one) factor = one;
        assertEq(recomputed(op, list(s), i), Slow.clamp(factor, output.bits()));
    }

    function testFuzz_atStep(uint256 seed, uint32 step) public {
        seedNoise(seed);
        (uint256 rows, uint256 columns) = (pickUint(1, 9), pickUint(1, 5));
        context.step = pick(0, 1) == 0 ? step : uint32(pickUint(0, rows));
        bool flat = pick(0, 2) == 0;
        if (flat) columns = 1;
        uint256 bits = pickUint(2, 64);
        Tensor memory table = randomTensor(flat ? vector(bits, 3, rows) : matrix(bits, 3, rows, columns));
        Operator memory op = operatorOf(Opcodes.AT_STEP, vector(bits, 3, columns), list(table), ints());
        uint256 i = pickUint(0, columns - 1);
        uint256 row = context.step >= rows ? rows - 1 : context.step;
        assertEq(recomputed(op, list(table), i), table.mantissas[row * columns + i]);
    }

    function testFuzz_groupSum(uint256 seed) public {
        seedNoise(seed);
        (uint256 groups, uint256 share) = (pickUint(1, 4), pickUint(1, 6));
        (uint256 tokens, uint256 width) = (pickUint(1, 4), pickUint(1, 5));
        Tensor memory a = randomTensor(matrix(pickUint(2, 64), 3, tokens, groups * share * width));
        int256[] memory attributes = ints(int256(groups * share), pick(-63, 63));
        TensorType output = matrix(pickUint(2, 64), 0, tokens, groups * width);
        Operator memory op = operatorOf(Opcodes.GROUP_SUM, output, list(a), attributes);
        uint256 i = pickUint(0, output.elements() - 1);
        int256 sum = SlowTraining.groupSum(a, groups, groups * share, width, i);
        assertEq(recomputed(op, list(a), i), Slow.rescale(sum, attributes[1], output.bits()));
    }

    function testFuzz_dropout(uint256 seed, bytes32 jobKey, uint32 step, uint32 stream) public {
        seedNoise(seed);
        (context.jobKey, context.step) = (jobKey, step);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory a = randomTensor(shape);
        uint256 i = pickUint(0, a.mantissas.length - 1);
        int256 w = int256(uint256(SlowTraining.word(context, i, stream, 2 ** 16)));
        int256[] memory attributes =
            ints(pick(1, 2 ** 32), int256(uint256(stream)), pick(1 - 2 ** 40, 2 ** 40 - 1), pick(-63, 63));
        // Often just kept, or just not.
        if (pick(0, 1) == 0) attributes[0] = w + pick(0, 1);
        if (attributes[0] == 0) attributes[0] = 1;
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.DROPOUT, output, list(a), attributes);
        int256 expected = 0;
        if (w < attributes[0]) expected = Slow.rescale(attributes[2] * a.mantissas[i], attributes[3], output.bits());
        assertEq(recomputed(op, list(a), i), expected);
    }

    function testFuzz_slice(uint256 seed) public {
        seedNoise(seed);
        (uint256 rows, uint256 width, uint256 offset) = (pickUint(1, 4), pickUint(1, 9), pickUint(0, 9));
        uint256 row = offset + width + pickUint(0, 5);
        uint256 bits = pickUint(2, 64);
        Tensor memory a = randomTensor(matrix(bits, 3, rows, row));
        Operator memory op = operatorOf(Opcodes.SLICE, matrix(bits, 3, rows, width), list(a), ints(int256(offset)));
        (uint256 m, uint256 k) = (pickUint(0, rows - 1), pickUint(0, width - 1));
        assertEq(recomputed(op, list(a), m * width + k), a.mantissas[m * row + offset + k]);
    }

    function testFuzz_dither(uint256 seed, bytes32 jobKey, uint32 step, uint32 stream) public {
        seedNoise(seed);
        (context.jobKey, context.step) = (jobKey, step);
        TensorType shape = randomShape(pickUint(2, 64));
        Tensor memory p = randomTensor(shape);
        Tensor memory z = randomTensor(vector(pickUint(2, 30), 0, shape.rows()));
        int256 bits = pick(0, 32);
        TensorType output = withBits(shape, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.DITHER, output, list(p, z), ints(bits, int256(uint256(stream))));
        uint256 i = pickUint(0, shape.elements() - 1);
        int256 d = z.mantissas[i / shape.row()];
        if (d < 1) d = 1;
        int256 rest = int256(uint256(SlowTraining.word(context, i, stream, 2 ** 17))) * d / 2 ** 32;
        int256 quotient = Slow.floorDiv(p.mantissas[i] * int256(2 ** uint256(bits)) + rest, d);
        assertEq(recomputed(op, list(p, z), i), Slow.clamp(quotient, output.bits()));
    }

    // What training changed of other operators.

    function testFuzz_transposeOfMatrices(uint256 seed) public {
        seedNoise(seed);
        (uint256 batch, uint256 m, uint256 n) = (pickUint(1, 4), pickUint(1, 6), pickUint(1, 6));
        uint256 bits = pickUint(2, 64);
        Tensor memory a = randomTensor(cube(bits, -5, batch, m, n));
        Operator memory op = operatorOf(Opcodes.TRANSPOSE, cube(bits, -5, batch, n, m), list(a), ints());
        (uint256 b, uint256 i, uint256 j) = (pickUint(0, batch - 1), pickUint(0, m - 1), pickUint(0, n - 1));
        assertEq(recomputed(op, list(a), (b * n + j) * m + i), a.mantissas[(b * m + i) * n + j]);
    }

    function testFuzz_parts(uint256 seed) public {
        seedNoise(seed);
        (uint256 rows, uint256 parts, uint256 length) = (pickUint(1, 3), pickUint(1, 4), pickUint(1, 50));
        uint256 bits = pickUint(2, 64);
        Tensor memory a = randomTensor(matrix(bits, 3, rows, parts * length));
        uint256 part = pickUint(0, rows * parts - 1);
        int256 shift = pick(-63, 63);
        int256 best = a.mantissas[part * length + Slow.firstMax(a.mantissas, part * length, length)];
        Operator memory op = operatorOf(Opcodes.ROW_MAX, matrix(bits, 3, rows, parts), list(a), ints(0));
        assertEq(recomputed(op, list(a), part), best);
        TensorType output = matrix(pickUint(2, 64), 0, rows, parts);
        op = operatorOf(Opcodes.ROW_SUM, output, list(a), ints(shift));
        int256 sum = Slow.sumOf(a.mantissas, part * length, length);
        assertEq(recomputed(op, list(a), part), Slow.rescale(sum, shift, output.bits()));
    }
}
