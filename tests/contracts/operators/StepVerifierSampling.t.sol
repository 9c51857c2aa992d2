// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {Opcodes} from "../../../contracts/libraries/operators/Opcodes.sol";
import {Operator, TensorType} from "../../../contracts/types/Types.sol";
import {Slow} from "../verifier/Slow.sol";
import {Tensor, VerifierTest} from "../verifier/VerifierTest.sol";

/// @notice The operators that choose a token against the naive rules, over random shapes, attributes and values.
contract StepVerifierSamplingTest is VerifierTest {
    using TensorTypes for TensorType;

    /// @dev `rows` rows of `parts` parts of `length` elements; an element of the output stands for part `part`, that of
    /// row `m`.
    struct Shape {
        uint256 rows;
        uint256 parts;
        uint256 length;
        uint256 part;
        uint256 m;
    }

    function _pickShape(uint256 maxLength) private returns (Shape memory s) {
        (s.rows, s.parts, s.length) = (pickUint(1, 3), pickUint(1, 3), pickUint(1, maxLength));
        s.part = pickUint(0, s.rows * s.parts - 1);
        s.m = s.part / s.parts;
    }

    /// @dev The rows, of any rank.
    function _rowsOf(Shape memory s, uint256 bits) private returns (TensorType) {
        uint256 row = s.parts * s.length;
        if (pick(0, 2) == 0) return cube(bits, 5, 1, s.rows, row);
        return matrix(bits, 5, s.rows, row);
    }

    /// @dev A tensor of few values, so that many are equal.
    function _fewValues(TensorType tensorType) private returns (Tensor memory t) {
        t = randomTensor(tensorType);
        if (pick(0, 1) == 0) return t;
        for (uint256 i = 0; i < t.mantissas.length; ++i) {
            t.mantissas[i] = pick(-1, 1);
        }
    }

    function testFuzz_rowArgMax(uint256 seed) public {
        seedNoise(seed);
        Shape memory s = _pickShape(80);
        Tensor memory a = _fewValues(_rowsOf(s, pickUint(2, 64)));
        Operator memory op = operatorOf(Opcodes.ROW_ARG_MAX, vector(32, 0, s.rows * s.parts), list(a), ints());
        uint256 place = Slow.firstMax(a.mantissas, s.part * s.length, s.length);
        assertEq(recomputed(op, list(a), s.part), int256(place));
    }

    function testFuzz_rowPick(uint256 seed) public {
        seedNoise(seed);
        Shape memory s = _pickShape(20);
        Tensor memory a = randomTensor(_rowsOf(s, pickUint(2, 64)));
        Tensor memory places = randomTensor(vector(pickUint(2, 64), 0, s.rows * s.parts));
        if (pick(0, 1) == 0) places.mantissas[s.part] = pick(-1, int256(s.length));
        int256 place = Slow.clamp(places.mantissas[s.part], places.tensorType.bits());
        places.mantissas[s.part] = place;
        TensorType output = vector(a.tensorType.bits(), 5, s.rows * s.parts);
        Operator memory op = operatorOf(Opcodes.ROW_PICK, output, list(a, places), ints());
        if (place >= int256(s.length)) place = int256(s.length) - 1;
        if (place < 0) place = 0;
        assertEq(recomputed(op, list(a, places), s.part), a.mantissas[s.part * s.length + uint256(place)]);
    }

    function testFuzz_tailSum(uint256 seed) public {
        seedNoise(seed);
        Shape memory s = _pickShape(80);
        Tensor memory a = _fewValues(_rowsOf(s, pickUint(2, 64)));
        Tensor memory w = randomTensor(withBits(a.tensorType, pickUint(2, 32)));
        Tensor memory t = _fewValues(vector(pickUint(2, 64), 5, s.rows));
        int256[] memory attributes = ints(pick(1 - 2 ** 40, 2 ** 40 - 1), pick(0, 1), pick(-10, 63));
        if (pick(0, 3) > 0) attributes[0] = pick(-2, 2);
        // Often a threshold that one of the elements is.
        int256 some = a.mantissas[s.part * s.length + pickUint(0, s.length - 1)];
        if (Slow.clamp(some, t.tensorType.bits()) == some) t.mantissas[s.m] = some;

        TensorType output = vector(pickUint(2, 64), 0, s.rows * s.parts);
        Operator memory op = operatorOf(Opcodes.TAIL_SUM, output, list(a, w, t), attributes);
        int256 sum = Slow.tailSum(
            a.mantissas, w.mantissas, s.part * s.length, s.length, t.mantissas[s.m] + attributes[0], attributes[1]
        );
        assertEq(recomputed(op, list(a, w, t), s.part), Slow.rescale(sum, attributes[2], output.bits()));
    }

    function testFuzz_threshold(uint256 seed) public {
        seedNoise(seed);
        (uint256 rows, uint256 parts) = (pickUint(1, 4), pickUint(1, 9));
        Tensor memory t = randomTensor(vector(pickUint(2, 64), 5, rows));
        Tensor memory counts = randomTensor(matrix(pickUint(2, 64), 0, rows, parts));
        uint256 bits = pickUint(2, 32);
        Tensor memory masses = randomTensor(matrix(bits, 24, rows, parts));
        Tensor memory totals = randomTensor(matrix(bits, 24, rows, parts));
        Tensor memory controls = randomTensor(matrix(pickUint(18, 64), 0, rows, 7));
        uint256 m = pickUint(0, rows - 1);
        // Mostly close to where it turns.
        int256 k = Slow.sumOf(counts.mantissas, m * parts, parts) + pick(-1, 1);
        if (pick(0, 3) > 0) controls.mantissas[m * 7 + 3] = Slow.clamp(k, controls.tensorType.bits());
        if (pick(0, 3) > 0) controls.mantissas[m * 7 + 4] = pick(-2, 2 ** 16 + 2);
        if (pick(0, 3) == 0) masses.mantissas = totals.mantissas;
        int256 step = pick(0, 2 ** 40 - 1) >> pickUint(0, 39);
        Tensor[] memory inputs = list(t, counts, masses, totals, controls);
        Operator memory op = operatorOf(Opcodes.THRESHOLD, t.tensorType, inputs, ints(step));
        bool moves = Slow.isEnough(inputs, m, parts);
        int256 expected = moves ? Slow.clamp(t.mantissas[m] + step, t.tensorType.bits()) : t.mantissas[m];
        assertEq(recomputed(op, inputs, m), expected);
    }

    /// @notice With a table of any entries: the verifier takes what it is given.
    /// @dev Fewer runs, for each has to write a table.
    /// forge-config: default.fuzz.runs = 64
    function testFuzz_perturb(uint256 seed) public {
        seedNoise(seed);
        uint256 rows = pickUint(1, 3);
        Tensor memory a = randomTensor(matrix(pickUint(2, 32), pick(-12, 28), rows, pickUint(1, 9)));
        Tensor memory t = randomTensor(vector(pickUint(2, 64), 5, rows));
        Tensor memory controls = randomTensor(matrix(pickUint(2, 32), 0, rows, 7));
        int256[] memory attributes = ints(pick(1 - 2 ** 40, 2 ** 40 - 1), pick(-10, 63));
        uint256 i = pickUint(0, a.mantissas.length - 1);
        uint256 m = i / a.tensorType.row();
        // Mostly above the threshold, or just on one side of it.
        if (pick(0, 3) > 0) attributes[0] = pick(-1, 1);
        int256 near = a.mantissas[i] - pick(0, 1) * pick(0, 2 ** 31);
        if (pick(0, 3) > 0 && Slow.clamp(near, t.tensorType.bits()) == near) t.mantissas[m] = near;

        TensorType output = withBits(a.tensorType, pickUint(2, 64));
        Tensor[] memory inputs = list(a, t, controls, _logarithms());
        Operator memory op = operatorOf(Opcodes.PERTURB, output, inputs, attributes);
        assertEq(recomputed(op, inputs, i), Slow.perturbed(inputs, i, attributes, output.bits()));
    }

    /// @dev 8224 entries by a generator that costs little.
    function _logarithms() private returns (Tensor memory t) {
        t.tensorType = vector(32, 16, 8224);
        t.mantissas = new int256[](8224);
        uint256 noise = uint256(pick(0, type(int128).max));
        for (uint256 i = 0; i < 8224; ++i) {
            unchecked {
                noise = noise * 0x5851f42d4c957f2d14057b7ef767814f + 0x14057b7ef767814f;
            }
            t.mantissas[i] = int256(noise >> 224) % (2 ** 31 - 1);
        }
    }

    function testFuzz_choose(uint256 seed) public {
        seedNoise(seed);
        (uint256 rows, uint256 parts) = (pickUint(1, 4), pickUint(1, 40));
        Tensor memory places = randomTensor(matrix(pickUint(2, 64), 0, rows, parts));
        Tensor memory best = _fewValues(matrix(pickUint(2, 64), 7, rows, parts));
        Tensor memory controls = randomTensor(matrix(pickUint(2, 64), 0, rows, 7));
        uint256 m = pickUint(0, rows - 1);
        if (pick(0, 3) == 0) controls.mantissas[m * 7] = 0;
        int256 length = pick(1, 4096);
        Tensor[] memory inputs = list(places, best, controls);
        Operator memory op = operatorOf(Opcodes.CHOOSE, vector(32, 0, rows), inputs, ints(length));
        uint256 j = Slow.firstMax(best.mantissas, m * parts, parts);
        int256 place = Slow.clamp(int256(j) * length + places.mantissas[m * parts + j], 32);
        assertEq(recomputed(op, inputs, m), controls.mantissas[m * 7] == 0 ? int256(0) : place);
    }
}
