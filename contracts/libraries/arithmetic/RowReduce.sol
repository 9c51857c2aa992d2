// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Sum, maximum and largest magnitude of a row in calldata
/// @notice Rows of mantissas of `width` (1, 2, 4 or 8) bytes, biased (XOR of the sign bit) or made positive, a word of
/// them at a time.
/// @dev As in `DotProduct`, the first word of a row may begin before it; the value of those bytes is masked to 0, which
/// adds nothing and exceeds nothing. `0 < count <= 4096`. Positions are offsets in calldata; the caller has checked
/// that the row lies in what it opened.
library RowReduce {
    uint256 private constant LOWER_8 = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant LOWER_16 = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;
    uint256 private constant LOWER_32 = 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff;
    uint256 private constant LOWER_64 = 0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff;
    /// @dev One byte in each lane of 32 bits.
    uint256 private constant LANES = 0x000000ff000000ff000000ff000000ff000000ff000000ff000000ff000000ff;

    /// @notice `Σ_k x[k]` of the `count` mantissas of `width` bytes at `position`.
    /// @dev Adds up each of the 32 byte positions of a word on its own and weighs the totals at the end, so that no
    /// word needs its bytes in order.
    function sum(uint256 position, uint256 count, uint256 width) internal pure returns (int256) {
        return weighed(_byteTotals(position, count * width, _signs(width)), count, width);
    }

    /// @notice The sum of `count` mantissas of `width` bytes, biased, of which lane i of total j has the sum of all
    /// bytes that are byte 4·i + j of their word, from the lowest.
    function weighed(uint256[4] memory totals, uint256 count, uint256 width) internal pure returns (int256) {
        uint256 biased = 0;
        // SAFETY: a total is at most 1024 · 255 and a weight below 2^64. The mantissa's last byte in memory, its most
        // significant, is the lowest of its bytes in the word.
        unchecked {
            for (uint256 i = 0; i < 32; ++i) {
                uint256 total = (totals[i & 3] >> (8 * (i & 28))) & type(uint32).max;
                biased += total << (8 * (width - 1 - (i & (width - 1))));
            }
            // forge-lint: disable-next-line(unsafe-typecast)
            return int256(biased) - int256(count << (8 * width - 1));
        }
    }

    /// @dev Lane i of total j: the sum of bytes 4·i + j, from the lowest, of all words.
    function _byteTotals(uint256 position, uint256 length, uint256 signs)
        private
        pure
        returns (uint256[4] memory totals)
    {
        // SAFETY: writes `totals` only; lanes of 32 bits take at most 1024 bytes.
        assembly ("memory-safe") {
            let end := add(position, length)
            let before := and(sub(0, length), 31)
            let p := sub(position, before)
            let x := and(xor(calldataload(p), signs), shr(shl(3, before), not(0)))
            let t0 := 0
            let t1 := 0
            let t2 := 0
            let t3 := 0
            for {} lt(p, end) {} {
                t0 := add(t0, and(x, LANES))
                t1 := add(t1, and(shr(8, x), LANES))
                t2 := add(t2, and(shr(16, x), LANES))
                t3 := add(t3, and(shr(24, x), LANES))
                p := add(p, 32)
                x := xor(calldataload(p), signs)
            }
            mstore(totals, t0)
            mstore(add(totals, 32), t1)
            mstore(add(totals, 64), t2)
            mstore(add(totals, 96), t3)
        }
    }

    /// @notice `max_k x[k]` of the `count` mantissas of `width` bytes at `position`.
    /// @dev Spreads the mantissas over lanes twice as wide, every other one in one word and the rest in a second, and
    /// compares all lanes at once.
    function max(uint256 position, uint256 count, uint256 width) internal pure returns (int256) {
        uint256 biased = _largest(_laneMaxima(position, count * width, width), 8 * width);
        // SAFETY: below 2^64.
        unchecked {
            // forge-lint: disable-next-line(unsafe-typecast)
            return int256(biased) - int256(1 << (8 * width - 1));
        }
    }

    /// @notice `max_k |x[k]|` of the `count` mantissas of `width` bytes at `position`: up to `2^(8·width − 1)`.
    /// @dev As `max`, but mantissas are made positive instead of biased.
    function maxMagnitude(uint256 position, uint256 count, uint256 width) internal pure returns (int256) {
        // SAFETY of the cast: at most 2^63.
        // forge-lint: disable-next-line(unsafe-typecast)
        return int256(_largest(_laneMagnitudes(position, count * width, width), 8 * width));
    }

    /// @dev The largest of the lanes of `2·half` bits, whose values keep to the lower half.
    function _largest(uint256 lanes, uint256 half) private pure returns (uint256 best) {
        // SAFETY: nothing here exceeds 256 but the lanes, which are only compared.
        unchecked {
            for (uint256 i = 0; i < 256; i += 2 * half) {
                uint256 lane = (lanes >> i) & ((1 << half) - 1);
                if (lane > best) best = lane;
            }
        }
    }

    function _laneMaxima(uint256 position, uint256 length, uint256 width) private pure returns (uint256 best) {
        uint256 signs = _signs(width);
        uint256 lower = _lower(width);
        // SAFETY: touches no memory. Values keep to the lower half of their lane, so the guard, the lowest bit of the
        // upper half, is left standing by a subtraction where the minuend is not the smaller, and nothing borrows
        // beyond it. `best` has it set throughout.
        assembly ("memory-safe") {
            let half := shl(3, width)
            let guard := and(shl(half, lower), not(shl(add(half, 1), lower)))
            best := guard
            let end := add(position, length)
            let before := and(sub(0, length), 31)
            position := sub(position, before)
            let x := and(xor(calldataload(position), signs), shr(shl(3, before), not(0)))
            for {} lt(position, end) {} {
                // Bytes in order.
                if gt(width, 1) {
                    x := or(shl(8, and(x, LOWER_8)), and(shr(8, x), LOWER_8))
                    if gt(width, 2) {
                        x := or(shl(16, and(x, LOWER_16)), and(shr(16, x), LOWER_16))
                        if gt(width, 4) { x := or(shl(32, and(x, LOWER_32)), and(shr(32, x), LOWER_32)) }
                    }
                }
                // The larger of the two mantissas of each lane, then of that and the best.
                let y := and(x, lower)
                x := and(shr(half, x), lower)
                let smaller := and(not(sub(or(x, guard), y)), guard)
                x := xor(x, and(xor(x, y), sub(smaller, shr(half, smaller))))
                smaller := and(not(sub(best, x)), guard)
                best := xor(best, and(xor(best, x), sub(smaller, shr(half, smaller))))
                position := add(position, 32)
                x := xor(calldataload(position), signs)
            }
        }
    }

    function _laneMagnitudes(uint256 position, uint256 length, uint256 width) private pure returns (uint256 best) {
        uint256 lower = _lower(width);
        // SAFETY: touches no memory. Lanes and guards as in `_laneMaxima`. A negative mantissa's bits are inverted and
        // 1 is added, which cannot carry: the inverse has no sign bit.
        assembly ("memory-safe") {
            let half := shl(3, width)
            let guard := and(shl(half, lower), not(shl(add(half, 1), lower)))
            best := guard
            // The highest bit of every mantissa, once the bytes are in order.
            let signs := and(lower, not(shr(1, lower)))
            signs := or(signs, shl(half, signs))
            let end := add(position, length)
            let before := and(sub(0, length), 31)
            position := sub(position, before)
            let x := and(calldataload(position), shr(shl(3, before), not(0)))
            for {} lt(position, end) {} {
                // Bytes in order.
                if gt(width, 1) {
                    x := or(shl(8, and(x, LOWER_8)), and(shr(8, x), LOWER_8))
                    if gt(width, 2) {
                        x := or(shl(16, and(x, LOWER_16)), and(shr(16, x), LOWER_16))
                        if gt(width, 4) { x := or(shl(32, and(x, LOWER_32)), and(shr(32, x), LOWER_32)) }
                    }
                }
                let negative := and(x, signs)
                let one := shr(sub(half, 1), negative)
                // Each sign bit doubled less one in the lowest place: every bit of that mantissa.
                x := add(xor(x, sub(shl(1, negative), one)), one)
                // The larger of the two mantissas of each lane, then of that and the best.
                let y := and(x, lower)
                x := and(shr(half, x), lower)
                let smaller := and(not(sub(or(x, guard), y)), guard)
                x := xor(x, and(xor(x, y), sub(smaller, shr(half, smaller))))
                smaller := and(not(sub(best, x)), guard)
                best := xor(best, and(xor(best, x), sub(smaller, shr(half, smaller))))
                position := add(position, 32)
                x := calldataload(position)
            }
        }
    }

    /// @dev The sign bits of a word of mantissas as calldata has them: little-endian.
    function _signs(uint256 width) private pure returns (uint256) {
        if (width == 1) return 0x8080808080808080808080808080808080808080808080808080808080808080;
        if (width == 2) return 0x0080008000800080008000800080008000800080008000800080008000800080;
        if (width == 4) return 0x0000008000000080000000800000008000000080000000800000008000000080;
        return 0x0000000000000080000000000000008000000000000000800000000000000080;
    }

    /// @dev The lower half of every lane.
    function _lower(uint256 width) private pure returns (uint256) {
        if (width == 1) return LOWER_8;
        if (width == 2) return LOWER_16;
        return width == 4 ? LOWER_32 : LOWER_64;
    }
}
