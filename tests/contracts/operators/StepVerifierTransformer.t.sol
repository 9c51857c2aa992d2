// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType} from "../../../contracts/types/Types.sol";
import {Slow} from "../verifier/Slow.sol";
import {Tensor, VerifierTest} from "../verifier/VerifierTest.sol";

/// @notice The operators of transformers against the naive rules, over random shapes, attributes and values.
contract StepVerifierTransformerTest is VerifierTest {
    using TensorTypes for TensorType;

    /// @dev Bits of int8 or of int16 mantissas, so that both factors of a product are stored alike.
    function _pickFactorBits(bool narrow) private returns (uint256) {
        return narrow ? pickUint(2, 8) : pickUint(9, 16);
    }

    function testFuzz_scaledMatMul(uint256 seed) public {
        seedNoise(seed);
        (bool narrow, bool mixed) = (pick(0, 1) == 0, pick(0, 1) == 0);
        (uint256 m, uint256 n, uint256 k) = (pickUint(1, 4), pickUint(1, 4), pickUint(1, 80));
        uint256 offset = pickUint(0, 40);
        uint256 row = offset + k + pickUint(0, 20);
        Tensor[] memory inputs = list(
            randomTensor(matrix(_pickFactorBits(narrow), 3, m, row)),
            randomTensor(matrix(_pickFactorBits(narrow || mixed), 3, n, k)),
            randomTensor(vector(pickUint(2, 64), 5, m)),
            randomTensor(vector(pickUint(2, 64), 5, n))
        );
        int256 shift = pick(-63, 63);
        TensorType output = matrix(pickUint(2, 64), 0, m, n);
        Operator memory op = operatorOf(Opcodes.SCALED_MAT_MUL, output, inputs, ints(int256(offset), shift));
        uint256 i = pickUint(0, m * n - 1);
        int256 sum = Slow.dot(inputs[0].mantissas, i / n * row + offset, inputs[1].mantissas, i % n * k, k);
        sum *= inputs[2].mantissas[i / n] * inputs[3].mantissas[i % n];
        assertEq(recomputed(op, inputs, i), Slow.rescale(sum, shift, output.bits()));
    }

    /// @dev Head h of token t, key s of the key/value head that it uses, element d of a head.
    struct Place {
        uint256 heads;
        uint256 kvHeads;
        uint256 width;
        uint256 tokens;
        uint256 keys;
        uint256 h;
        uint256 t;
        uint256 s;
        uint256 d;
        uint256 kvHead;
    }

    function _pickPlace(uint256 maxWidth, uint256 maxKeys) private returns (Place memory p) {
        p.kvHeads = pickUint(1, 3);
        uint256 sharing = pickUint(1, 4);
        (p.heads, p.width) = (p.kvHeads * sharing, pickUint(1, maxWidth));
        (p.tokens, p.keys) = (pickUint(1, 4), pickUint(1, maxKeys));
        (p.h, p.t) = (pickUint(0, p.heads - 1), pickUint(0, p.tokens - 1));
        (p.s, p.d) = (pickUint(0, p.keys - 1), pickUint(0, p.width - 1));
        p.kvHead = p.h / sharing;
    }

    function _checkSum(Operator memory op, Tensor[] memory inputs, uint256 element, int256 sum) private {
        assertEq(recomputed(op, inputs, element), Slow.rescale(sum, op.attributes[1], op.output.bits()));
    }

    function testFuzz_headScores(uint256 seed) public {
        seedNoise(seed);
        Place memory p = _pickPlace(40, 5);
        bool narrow = pick(0, 1) == 0;
        Tensor memory q = randomTensor(matrix(_pickFactorBits(narrow), 0, p.tokens, p.heads * p.width));
        Tensor memory k = randomTensor(matrix(_pickFactorBits(narrow), 0, p.keys, p.kvHeads * p.width));
        int256[] memory attributes = ints(int256(p.heads), pick(-63, 63));
        TensorType output = cube(pickUint(2, 64), 0, p.heads, p.tokens, p.keys);
        Operator memory op = operatorOf(Opcodes.HEAD_SCORES, output, list(q, k), attributes);
        uint256 i = (p.t * p.heads + p.h) * p.width;
        int256 sum = Slow.dot(q.mantissas, i, k.mantissas, (p.s * p.kvHeads + p.kvHead) * p.width, p.width);
        _checkSum(op, list(q, k), (p.h * p.tokens + p.t) * p.keys + p.s, sum);
    }

    function testFuzz_headMix(uint256 seed) public {
        seedNoise(seed);
        Place memory p = _pickPlace(9, 40);
        bool narrow = pick(0, 1) == 0;
        Tensor memory weights = randomTensor(cube(_pickFactorBits(narrow), 0, p.heads, p.tokens, p.keys));
        Tensor memory v = randomTensor(matrix(_pickFactorBits(narrow), 0, p.kvHeads * p.width, p.keys));
        int256[] memory attributes = ints(int256(p.heads), pick(-63, 63));
        TensorType output = matrix(pickUint(2, 64), 0, p.tokens, p.heads * p.width);
        Operator memory op = operatorOf(Opcodes.HEAD_MIX, output, list(weights, v), attributes);
        uint256 i = (p.h * p.tokens + p.t) * p.keys;
        int256 sum = Slow.dot(weights.mantissas, i, v.mantissas, (p.kvHead * p.width + p.d) * p.keys, p.keys);
        _checkSum(op, list(weights, v), (p.t * p.heads + p.h) * p.width + p.d, sum);
    }

    /// @dev Rows of one or more runs, each normalised by itself.
    function testFuzz_norm(uint256 seed) public {
        seedNoise(seed);
        uint256 length = pickUint(1, 20);
        Tensor memory x = randomTensor(matrix(pickUint(2, 24), 0, pickUint(1, 3), length * pickUint(1, 3)));
        Tensor memory gain = randomTensor(vector(pickUint(2, 16), 0, length));
        Tensor memory bias = randomTensor(vector(pickUint(2, 16), 0, length));
        int256 epsilon = pick(1, int256(2 ** pickUint(1, 60) - 1));
        int256[] memory attributes = ints(pick(0, 1), epsilon, pick(0, 40), pick(-10, 63));
        TensorType output = withBits(x.tensorType, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.NORM, output, list(x, gain, bias), attributes);
        uint256 i = pickUint(0, output.elements() - 1);
        uint256 k = i % length;
        uint256 places = Slow.normPlaces(x.tensorType.bits());
        int256 sum = Slow.normalised(x.mantissas, i - k, length, k, attributes[0], epsilon, places) * gain.mantissas[k];
        sum += bias.mantissas[k] * int256(2 ** uint256(attributes[2]));
        assertEq(recomputed(op, list(x, gain, bias), i), Slow.rescale(sum, attributes[3], output.bits()));
    }

    function testFuzz_rope(uint256 seed) public {
        seedNoise(seed);
        (uint256 heads, uint256 tokens) = (pickUint(1, 3), pickUint(1, 4));
        TensorType angles = matrix(pickUint(2, 16), pick(0, 15), tokens + pickUint(0, 2), 2 * pickUint(1, 4));
        Tensor memory table = randomTensor(angles);
        uint256 width = angles.row() + pickUint(0, 3);
        Tensor memory x = randomTensor(matrix(pickUint(2, 16), 0, tokens, heads * width));
        TensorType output = withBits(x.tensorType, pickUint(2, 64));
        Operator memory op = operatorOf(Opcodes.ROPE, output, list(x, table), ints(int256(heads), pick(-63, 63)));
        uint256 element = pickUint(0, tokens * heads * width - 1);
        _checkSum(op, list(x, table), element, _turned(x, table, element % width, element));
    }

    /// @dev Element `element` of x, which is element `i` of its head, turned.
    function _turned(Tensor memory x, Tensor memory table, uint256 i, uint256 element) private pure returns (int256) {
        uint256 t = element / x.tensorType.row();
        return Slow.rope(x.mantissas, element - i, i, t, table.mantissas, table.tensorType);
    }

    function testFuzz_gather(uint256 seed) public {
        seedNoise(seed);
        (uint256 rows, uint256 width, uint256 tokens) = (pickUint(1, 9), pickUint(1, 6), pickUint(1, 5));
        Tensor memory table = randomTensor(matrix(pickUint(2, 64), 3, rows, width));
        Tensor memory scale = randomTensor(vector(pickUint(2, 64), 3, rows + pickUint(0, 2)));
        Tensor memory ids = randomTensor(vector(pickUint(5, 64), 0, tokens + pickUint(0, 2)));
        for (uint256 t = 0; t < tokens; ++t) {
            // Mostly rows that there are, and the first two on either side.
            if (pick(0, 3) > 0) ids.mantissas[t] = pick(-2, int256(rows) + 1);
        }
        int256 shift = pick(-63, 63);
        TensorType output = matrix(pickUint(2, 64), 0, tokens, width);
        Operator memory op = operatorOf(Opcodes.GATHER, output, list(table, scale, ids), ints(shift));
        uint256 i = pickUint(0, tokens * width - 1);
        int256 id = ids.mantissas[i / width];
        if (id >= int256(rows)) id = int256(rows) - 1;
        uint256 row = id < 0 ? 0 : uint256(id);
        int256 product = table.mantissas[row * width + i % width] * scale.mantissas[row];
        assertEq(recomputed(op, list(table, scale, ids), i), Slow.rescale(product, shift, output.bits()));
    }
}
