// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {TensorType} from "../../../contracts/types/Types.sol";
import {Tensor} from "./VerifierTest.sol";

/// @title The arithmetic rules once more, naively
/// @notice Written from `agents/num/SPEC.md` alone, over arrays of int256 and with checked arithmetic, to hold the
/// contracts' fast code against. `M × K` operands come as flat arrays with their row length.
library Slow {
    using TensorTypes for TensorType;

    function floorDiv(int256 a, int256 b) internal pure returns (int256 q) {
        q = a / b;
        if (a % b != 0 && (a < 0) != (b < 0)) q -= 1;
    }

    function clamp(int256 x, uint256 bits) internal pure returns (int256) {
        int256 limit = int256(2 ** (bits - 1)) - 1;
        return x > limit ? limit : (x < -limit ? -limit : x);
    }

    /// @dev N-2 by the distance to the two neighbours.
    function rescale(int256 x, int256 shift, uint256 bits) internal pure returns (int256) {
        if (shift <= 0) return clamp(x * int256(2 ** uint256(-shift)), bits);
        int256 unit = int256(2 ** uint256(shift));
        int256 below = floorDiv(x, unit);
        int256 toBelow = x - below * unit;
        int256 toAbove = unit - toBelow;
        if (toAbove < toBelow) return clamp(below + 1, bits);
        if (toAbove == toBelow && below % 2 != 0) return clamp(below + 1, bits);
        return clamp(below, bits);
    }

    /// @dev N-3.
    function div(int256 a, int256 b) internal pure returns (int256) {
        return floorDiv(2 * a + b, 2 * b);
    }

    function dot(int256[] memory a, uint256 i, int256[] memory b, uint256 j, uint256 count)
        internal
        pure
        returns (int256 sum)
    {
        for (uint256 k = 0; k < count; ++k) {
            sum += a[i + k] * b[j + k];
        }
    }

    /// @dev N-8.
    function visible(TensorType a, int256 causal, uint256 m, uint256 k) internal pure returns (bool) {
        return causal == 0 || k <= m % a.dim(a.rank() - 2);
    }

    /// @dev `n` of N-28 for element `k` of the row of `count` mantissas from `first`; the variance by its definition.
    function normalised(
        int256[] memory x,
        uint256 first,
        uint256 count,
        uint256 k,
        int256 center,
        int256 epsilon,
        uint256 places
    ) internal pure returns (int256) {
        (int256 inverse, int256 j, int256 mean) = spread(x, first, count, center, epsilon, places);
        int256 deviation = int256(2 ** places) * x[first + k] - mean;
        return rescale(deviation * inverse, 30 + int256(places) - j, 26 - places);
    }

    /// @dev f of N-28 for a row of so many bits.
    function normPlaces(uint256 bits) internal pure returns (uint256) {
        return 24 - bits < 4 ? 24 - bits : 4;
    }

    /// @dev R and j of N-28, and the mean times `2^places`.
    function spread(int256[] memory x, uint256 first, uint256 count, int256 center, int256 epsilon, uint256 places)
        internal
        pure
        returns (int256, int256, int256)
    {
        int256 unit = int256(2 ** places);
        int256 mean = 0;
        for (uint256 i = 0; i < count; ++i) {
            mean += unit * center * x[first + i];
        }
        mean = div(mean, int256(count));
        int256 v = epsilon;
        for (uint256 i = 0; i < count; ++i) {
            v += (unit * x[first + i] - mean) ** 2;
        }
        uint256 j = (62 - bitLength(uint256(v))) / 2;
        return (2 ** 54 / int256(root(uint256(v) * 4 ** j)), int256(j), mean);
    }

    function bitLength(uint256 v) internal pure returns (uint256 count) {
        for (; v > 0; v /= 2) {
            ++count;
        }
    }

    /// @dev The floor of the square root of a number below 2^64, bit by bit.
    function root(uint256 v) internal pure returns (uint256 s) {
        for (uint256 bit = 2 ** 31; bit > 0; bit /= 2) {
            if ((s + bit) * (s + bit) <= v) s += bit;
        }
    }

    /// @dev N-29 for element `i` of the head `x[first ..]` of token `t`, before the rescaling.
    function rope(int256[] memory x, uint256 first, uint256 i, uint256 t, int256[] memory table, TensorType tableType)
        internal
        pure
        returns (int256)
    {
        uint256 half = tableType.row() / 2;
        uint256 angles = t * 2 * half;
        if (i >= 2 * half) return x[first + i] * int256(2 ** uint256(tableType.exponent()));
        if (i < half) return x[first + i] * table[angles + i] - x[first + i + half] * table[angles + half + i];
        return x[first + i] * table[angles + i - half] + x[first + i - half] * table[angles + i];
    }

    function lookup(int256 x, int256[] memory table, int256[] memory attributes, uint256 bits)
        internal
        pure
        returns (int256)
    {
        int256 scale = int256(2 ** uint256(attributes[2]));
        int256 steps = int256(table.length) - 1;
        int256 u = rescale(x, attributes[0], 63) - attributes[1];
        if (u < 0) u = 0;
        if (u > steps * scale) u = steps * scale;
        int256 j = u / scale;
        if (j > steps - 1) j = steps - 1;
        int256 r = u - j * scale;
        return rescale(table[uint256(j)] * (scale - r) + table[uint256(j) + 1] * r, attributes[3], bits);
    }

    function expNeg(int256 a, int256 max, int256[] memory table, int256 c, int256 shift)
        internal
        pure
        returns (int256)
    {
        int256 z = max - a;
        if (z < 0) z = 0;
        int256 u = rescale(z * c, shift, 63);
        if (u > 40 * 65_536) u = 40 * 65_536;
        int256 n = u / 65_536;
        int256 j = (u % 65_536) / 256;
        int256 r = u % 256;
        return rescale(table[uint256(j)] * (256 - r) + table[uint256(j) + 1] * r, n + 8, 26);
    }

    /// @dev The place, from 0, of the first of the largest of `x[first .. first + count]`.
    function firstMax(int256[] memory x, uint256 first, uint256 count) internal pure returns (uint256 place) {
        for (uint256 k = 1; k < count; ++k) {
            if (x[first + k] > x[first + place]) place = k;
        }
    }

    function sumOf(int256[] memory x, uint256 first, uint256 count) internal pure returns (int256 sum) {
        for (uint256 k = 0; k < count; ++k) {
            sum += x[first + k];
        }
    }

    /// @dev N-34 before the rescaling, of `count` elements from `first`.
    function tailSum(int256[] memory a, int256[] memory w, uint256 first, uint256 count, int256 least, int256 weighted)
        internal
        pure
        returns (int256 sum)
    {
        for (uint256 k = 0; k < count; ++k) {
            if (a[first + k] >= least) sum += weighted == 1 ? w[first + k] : int256(1);
        }
    }

    /// @dev The condition of N-35 for row `m`; operands t, counts, masses, totals, controls.
    function isEnough(Tensor[] memory inputs, uint256 m, uint256 parts) internal pure returns (bool) {
        int256[] memory controls = inputs[4].mantissas;
        (int256 k, int256 q) = (controls[m * 7 + 3], controls[m * 7 + 4]);
        if (sumOf(inputs[1].mantissas, m * parts, parts) >= (k > 1 ? k : int256(1))) return true;
        q = q < 1 ? int256(1) : (q > 65_536 ? int256(65_536) : q);
        int256 mass = sumOf(inputs[2].mantissas, m * parts, parts);
        return 65_536 * mass >= q * sumOf(inputs[3].mantissas, m * parts, parts);
    }

    /// @dev N-36 for element `i`; operands a, t, controls, table.
    function perturbed(Tensor[] memory inputs, uint256 i, int256[] memory attributes, uint256 bits)
        internal
        pure
        returns (int256)
    {
        TensorType a = inputs[0].tensorType;
        uint256 m = i / a.row();
        int256 mantissa = inputs[0].mantissas[i];
        if (mantissa < inputs[1].mantissas[m] + attributes[0]) return 1 - int256(2 ** (bits - 1));
        int256[] memory controls = inputs[2].mantissas;
        mantissa *= int256(2 ** uint256(28 - a.exponent()));
        if (controls[m * 7 + 1] > 0) {
            uint32[2] memory key = [low32(controls[m * 7 + 5]), low32(controls[m * 7 + 6])];
            uint32 w = philox(key, [uint32(i % a.row()), low32(controls[m * 7 + 2]), 0, 0])[0];
            mantissa += controls[m * 7 + 1] * gumbel(w, inputs[3].mantissas);
        }
        return rescale(mantissa, attributes[1], bits);
    }

    /// @dev `g` of N-36 for draw `w`, its leading zeros counted one by one.
    function gumbel(uint32 w, int256[] memory table) internal pure returns (int256) {
        uint256 n = 0;
        while (n < 31 && uint256(w) < 2 ** (31 - n)) ++n;
        // What follows the leading one, of 16 bits.
        uint256 place = ((uint256(w) * 2 ** (n + 1)) % 2 ** 32) / 2 ** 16;
        (uint256 j, int256 r) = (257 * n + place / 256, int256(place % 256));
        return rescale(table[j] * (256 - r) + table[j + 1] * r, 8, 63);
    }

    /// @dev `x` modulo 2^32.
    function low32(int256 x) internal pure returns (uint32) {
        return uint32(uint256(x - floorDiv(x, 2 ** 32) * 2 ** 32));
    }

    /// @dev The draw of N-4 in stream 0.
    function philox(bytes32 key, uint32 row, uint32 step) internal pure returns (uint32) {
        uint32[2] memory k;
        for (uint256 i = 0; i < 8; ++i) {
            k[i / 4] |= uint32(uint8(key[i])) << uint32(8 * (i % 4));
        }
        return philox(k, [row, step, 0, 0])[0];
    }

    /// @dev Round by round on 32-bit types.
    function philox(uint32[2] memory k, uint32[4] memory x) internal pure returns (uint32[4] memory) {
        for (uint256 round = 0; round < 10; ++round) {
            uint64 p = uint64(x[0]) * 0xD2511F53;
            uint64 q = uint64(x[2]) * 0xCD9E8D57;
            x = [uint32(q >> 32) ^ x[1] ^ k[0], uint32(q), uint32(p >> 32) ^ x[3] ^ k[1], uint32(p)];
            unchecked {
                k[0] += 0x9E3779B9;
                k[1] += 0xBB67AE85;
            }
        }
        return x;
    }
}
