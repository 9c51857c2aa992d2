// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {LibBit} from "solady/utils/LibBit.sol";

import {RowReduce} from "./RowReduce.sol";

/// @title Which mantissas of a row in calldata reach a threshold, how many, and the sum of as many weights
/// @notice The answer to the first is a bitmap, so that mantissas and weights may differ in width: a bit for each
/// mantissa, the first lowest; the last mantissa is the highest bit of the last word.
/// @dev A word is looked at as n lanes of b bits, one mantissa each, of which the first in calldata is the highest.
/// Bytes are widened to 16 bits, so n is 16, 8 or 4 and b·n = 256. Times a diagonal, 1 at every (b + 1)-th bit, n bits
/// come to stand in reverse at every b-th, and n bits at every b-th in reverse next to each other: between lanes and
/// bitmap it takes one product. Positions are offsets in calldata; the caller has checked that the row lies in what it
/// opened. `0 < length <= 4096`.
library RowTails {
    uint256 private constant LOWER_8 = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant LOWER_16 = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;
    uint256 private constant LOWER_32 = 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff;
    uint256 private constant LOWER_64 = 0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff;

    /// @notice The bitmap of those of the `length` mantissas of `width` (1, 2, 4 or 8) bytes at `position` that are at
    /// least `least`.
    function reaching(uint256 position, uint256 length, uint256 width, int256 least)
        internal
        pure
        returns (uint256[] memory bitmap)
    {
        bitmap = new uint256[]((length + 255) / 256);
        int256 half = int256(1 << (8 * width - 1));
        if (least >= half) return bitmap;
        if (least < -half) least = -half;
        (uint256 ones, uint256 diagonal) = _lanes(width);
        // As a lane has it: biased if it was widened, in two's complement else.
        // SAFETY of the casts: the threshold is one that `width` bytes can hold.
        // forge-lint: disable-next-line(unsafe-typecast)
        uint256 threshold = width == 1 ? uint256(least + half) : uint256(least) & ((1 << (8 * width)) - 1);
        threshold *= ones;
        // SAFETY: what is read before the row, or before the calldata, is taken out of the bitmap.
        unchecked {
            uint256 before = 256 * bitmap.length - length;
            uint256 p = position - before * width;
            for (uint256 i = 0; i < bitmap.length; ++i) {
                bitmap[i] = _reaching256(p, width, threshold, ones, diagonal);
                p += 256 * width;
            }
            bitmap[0] &= type(uint256).max << before;
        }
    }

    /// @notice How many mantissas are in the bitmap.
    function count(uint256[] memory bitmap) internal pure returns (uint256 total) {
        for (uint256 i = 0; i < bitmap.length; ++i) {
            total += LibBit.popCount(bitmap[i]);
        }
    }

    /// @notice The sum of those of the `length` mantissas of `width` (1, 2, 4 or 8) bytes at `position` that are in
    /// the bitmap.
    function sum(uint256[] memory bitmap, uint256 position, uint256 length, uint256 width)
        internal
        pure
        returns (int256)
    {
        uint256[4] memory totals;
        (uint256 ones, uint256 diagonal) = _lanes(width);
        // SAFETY: what is read before the row, or before the calldata, is not in the bitmap. A word of it stands for
        // at most 64 words of mantissas, so lanes of 16 bits take the sum of their bytes, and lanes of 32 bits the sum
        // of all.
        unchecked {
            uint256 p = position + (length - 256 * bitmap.length) * width;
            for (uint256 i = 0; i < bitmap.length; ++i) {
                (uint256 even, uint256 odd) = _sums256(bitmap[i], p, width, ones, diagonal);
                totals[0] += even & LOWER_16;
                totals[1] += odd & LOWER_16;
                totals[2] += (even >> 16) & LOWER_16;
                totals[3] += (odd >> 16) & LOWER_16;
                p += 256 * width;
            }
        }
        return RowReduce.weighed(totals, count(bitmap), width);
    }

    /// @dev The bitmap of the 256 mantissas at `start`. `threshold` has one in every lane.
    function _reaching256(uint256 start, uint256 width, uint256 threshold, uint256 ones, uint256 diagonal)
        private
        pure
        returns (uint256 bitmap)
    {
        // SAFETY: touches no memory. A lane with its top bit set, less a number without, borrows from no other: the top
        // bit is left where the rest of the lane is not the smaller. No two bits of the product of lanes and diagonal
        // fall together, and none is above those that are taken.
        assembly ("memory-safe") {
            let bits := shl(3, add(width, eq(width, 1)))
            let lanes := div(256, bits)
            let top := shl(sub(bits, 1), ones)
            let rest := and(threshold, not(top))
            // From the last, so that the first becomes the lowest.
            let p := add(start, shl(8, width))
            for {} sub(p, start) {} {
                let x
                switch width
                case 1 {
                    p := sub(p, 16)
                    x := shr(128, calldataload(p))
                    x := and(or(shl(64, x), x), LOWER_64)
                    x := and(or(shl(32, x), x), LOWER_32)
                    x := and(or(shl(16, x), x), LOWER_16)
                    x := xor(and(or(shl(8, x), x), LOWER_8), shl(7, ones))
                }
                default {
                    p := sub(p, 32)
                    x := calldataload(p)
                    // Bytes in order.
                    x := or(shl(8, and(x, LOWER_8)), and(shr(8, x), LOWER_8))
                    if gt(width, 2) {
                        x := or(shl(16, and(x, LOWER_16)), and(shr(16, x), LOWER_16))
                        if gt(width, 4) { x := or(shl(32, and(x, LOWER_32)), and(shr(32, x), LOWER_32)) }
                    }
                }
                // In the top bits: where signs differ, whether the threshold is negative; else whether the rest is not
                // the smaller.
                x := xor(and(xor(sub(or(x, top), rest), threshold), not(xor(x, threshold))), threshold)
                x := mul(and(shr(sub(bits, 1), x), ones), diagonal)
                bitmap := or(shl(lanes, bitmap), shr(sub(256, bits), x))
            }
        }
    }

    /// @dev Of the 256 mantissas at `p`, those in `bitmap`: the sums of every byte of a word of them, from the lowest,
    /// in two words of lanes of 16 bits.
    function _sums256(uint256 bitmap, uint256 p, uint256 width, uint256 ones, uint256 diagonal)
        private
        pure
        returns (uint256 even, uint256 odd)
    {
        // SAFETY: touches no memory. The n bits that are taken of the bitmap do not meet themselves a diagonal's
        // step further.
        assembly ("memory-safe") {
            let bits := shl(3, add(width, eq(width, 1)))
            let lanes := div(256, bits)
            // 2^lanes is meant.
            // slither-disable-next-line incorrect-shift
            let some := sub(shl(lanes, 1), 1)
            // The sign bits as calldata has them: of the last byte of a mantissa, the lowest of a lane.
            let signs := shl(7, ones)
            let end := add(p, shl(8, width))
            for {} sub(end, p) {} {
                let x := calldataload(p)
                if eq(width, 1) {
                    x := shr(128, x)
                    x := and(or(shl(64, x), x), LOWER_64)
                    x := and(or(shl(32, x), x), LOWER_32)
                    x := and(or(shl(16, x), x), LOWER_16)
                    x := and(or(shl(8, x), x), LOWER_8)
                    p := sub(p, 16)
                }
                p := add(p, 32)
                // The next bits of the bitmap, one to a lane; then every bit of those lanes.
                let mask := and(shr(sub(lanes, 1), mul(and(bitmap, some), diagonal)), ones)
                mask := sub(shl(bits, mask), mask)
                bitmap := shr(lanes, bitmap)
                x := and(xor(x, signs), mask)
                even := add(even, and(x, LOWER_8))
                odd := add(odd, and(shr(8, x), LOWER_8))
            }
        }
    }

    /// @dev 1 in every lane, and the diagonal.
    function _lanes(uint256 width) private pure returns (uint256 ones, uint256 diagonal) {
        if (width <= 2) {
            ones = 0x0001000100010001000100010001000100010001000100010001000100010001;
            diagonal = 0x8000400020001000080004000200010000800040002000100008000400020001;
        } else if (width == 4) {
            ones = 0x0000000100000001000000010000000100000001000000010000000100000001;
            diagonal = 0x0000008000000040000000200000001000000008000000040000000200000001;
        } else {
            ones = 0x0000000000000001000000000000000100000000000000010000000000000001;
            diagonal = 0x0000000000000008000000000000000400000000000000020000000000000001;
        }
    }
}
