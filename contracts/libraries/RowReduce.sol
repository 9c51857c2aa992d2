// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Sum and maximum of a row in calldata
/// @notice Mantissas of `width` (1, 2, 4 or 8) bytes are biased (XOR of the sign bit) and spread over lanes twice as wide, every
/// other one in one word and the rest in a second; sums and comparisons then act on all lanes at once.
/// @dev As in `DotProduct`, bytes of the first word before the row are masked: their biased value 0 adds nothing and
/// exceeds nothing. `0 < count <= 4096`. Positions are offsets in calldata; the caller has checked that the row lies in what
/// it opened.
library RowReduce {
    uint256 private constant LOWER_8 = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant LOWER_16 = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;
    uint256 private constant LOWER_32 = 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff;
    uint256 private constant LOWER_64 = 0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff;

    /// @notice `Σ_k x[k]` of the `count` mantissas of `width` bytes at `position`.
    function sum(uint256 position, uint256 count, uint256 width) internal pure returns (int256) {
        uint256 lower = _lower(width);
        uint256 half = 8 * width;
        uint256 total = 0;
        // SAFETY: a lane takes two mantissas of each of at most 128·w words: 65,280 of 65,535 for w = 1, and ever less of
        // wider lanes. Positions are far below 2^256, and a row's position is above 31, behind selector and head.
        unchecked {
            uint256 end = position + count * width;
            (uint256 p, uint256 mask) = _start(position, count * width);
            for (; p < end; p += 32) {
                uint256 x = _biased(p, width) & mask;
                mask = type(uint256).max;
                total += (x & lower) + ((x >> half) & lower);
            }
            uint256 biased = 0;
            for (uint256 i = 0; i < 256; i += 2 * half) {
                biased += (total >> i) & ((1 << (2 * half)) - 1);
            }
            return int256(biased) - int256(count << (half - 1));
        }
    }

    /// @notice `max_k x[k]` of the `count` mantissas of `width` bytes at `position`.
    function max(uint256 position, uint256 count, uint256 width) internal pure returns (int256) {
        uint256 lower = _lower(width);
        uint256 half = 8 * width;
        uint256 best = 0;
        // SAFETY: values keep to the lower half of their lane; the comparison borrows from its upper half only.
        unchecked {
            uint256 end = position + count * width;
            (uint256 p, uint256 mask) = _start(position, count * width);
            for (; p < end; p += 32) {
                uint256 x = _biased(p, width) & mask;
                mask = type(uint256).max;
                best = _laneMax(best, x & lower, lower, half);
                best = _laneMax(best, (x >> half) & lower, lower, half);
            }
            uint256 biased = 0;
            for (uint256 i = 0; i < 256; i += 2 * half) {
                uint256 lane = (best >> i) & ((1 << half) - 1);
                if (lane > biased) biased = lane;
            }
            return int256(biased) - int256(1 << (half - 1));
        }
    }

    /// @dev Where the first word begins, so that the last ends with the row, and the mask of its bytes that belong to the row.
    function _start(uint256 position, uint256 length) private pure returns (uint256 first, uint256 mask) {
        unchecked {
            uint256 before = (0 - length) & 31;
            return (position - before, type(uint256).max >> (8 * before));
        }
    }

    /// @dev The lower half of every lane.
    function _lower(uint256 width) private pure returns (uint256) {
        if (width == 1) return LOWER_8;
        if (width == 2) return LOWER_16;
        return width == 4 ? LOWER_32 : LOWER_64;
    }

    /// @dev The word at `position` with each mantissa's bytes in big-endian order and its sign bit flipped.
    function _biased(uint256 position, uint256 width) private pure returns (uint256 x) {
        // SAFETY: reads calldata only; beyond its end the EVM gives zeros, and the caller masks what lies before the row.
        assembly ("memory-safe") {
            x := calldataload(position)
        }
        if (width == 1) return x ^ 0x8080808080808080808080808080808080808080808080808080808080808080;
        x = ((x & LOWER_8) << 8) | ((x >> 8) & LOWER_8);
        if (width == 2) return x ^ 0x8000800080008000800080008000800080008000800080008000800080008000;
        x = ((x & LOWER_16) << 16) | ((x >> 16) & LOWER_16);
        if (width == 4) return x ^ 0x8000000080000000800000008000000080000000800000008000000080000000;
        x = ((x & LOWER_32) << 32) | ((x >> 32) & LOWER_32);
        return x ^ 0x8000000000000000800000000000000080000000000000008000000000000000;
    }

    /// @dev The larger of `a` and `b` in every lane; both keep to the lower halves.
    function _laneMax(uint256 a, uint256 b, uint256 lower, uint256 half) private pure returns (uint256) {
        unchecked {
            // The lowest bit of every upper half: set before the subtraction, it is left standing where a >= b.
            uint256 guard = (lower << half) & ~(lower << (half + 1));
            uint256 kept = ((a | guard) - b) & guard;
            uint256 mask = kept - (kept >> half);
            return b ^ ((a ^ b) & mask);
        }
    }
}
