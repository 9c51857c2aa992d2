// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Dot products of int8 and int16 rows in calldata
/// @notice `Σ a[k]·b[k]` exactly, many products per MUL.
///
/// A word is split into lanes, one biased (non-negative) mantissa each, twice or four times as wide as the mantissa. Read as a
/// polynomial in 2^lane, lane i of one word times lane L−1−i of the other falls into lane L−1 of the product; so with the
/// lanes of b reversed, the top lane of `MUL` is the sum of the L products, and what would lie above it is cut off by
/// the word. Lower lanes stay below 2^lane, even summed over the row, so nothing carries into the top lane.
///
/// Mantissas are biased by `2^(w−1)` (XOR of the sign bit), which the end takes back:
/// `Σ ab = Σ a'b' − bias·Σ(a' + b') + bias²·K`.
///
/// @dev The first word of a row whose length is no multiple of a word is read from before the row's start and masked. The
/// biased value of a masked byte is 0 and adds nothing. Positions are offsets in calldata; the caller has checked that the
/// rows lie in what it opened.
library DotProduct {
    uint256 private constant SIGN_8 = 0x8080808080808080808080808080808080808080808080808080808080808080;
    uint256 private constant SIGN_16 = 0x8000800080008000800080008000800080008000800080008000800080008000;
    /// @dev One byte in each 32-bit lane; one 16-bit value in each 64-bit lane.
    uint256 private constant LOW_8_OF_32 = 0x000000ff000000ff000000ff000000ff000000ff000000ff000000ff000000ff;
    uint256 private constant LOW_16_OF_64 = 0x000000000000ffff000000000000ffff000000000000ffff000000000000ffff;
    /// @dev The lower half of each pair of bytes, 32-bit lanes, 64-bit lanes.
    uint256 private constant LOWER_8 = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant LOWER_32 = 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff;
    uint256 private constant LOWER_64 = 0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff;
    /// @dev 1 in each lane: a product with it sums the lanes into the top one.
    uint256 private constant ONES_32 = 0x0000000100000001000000010000000100000001000000010000000100000001;
    uint256 private constant ONES_64 = 0x0000000000000001000000000000000100000000000000010000000000000001;

    /// @notice Dot product of `count` int8 values at `a` and at `b`. `count <= 2^15`.
    function ofInt8(uint256 a, uint256 b, uint256 count) internal pure returns (int256) {
        uint256 products;
        uint256 sums;
        // SAFETY: touches no memory. Lanes of 32 bits: products below 2^15 · 2^16, sums below 2^15 · 2 · 2^8.
        assembly ("memory-safe") {
            let end := add(a, count)
            let behind := sub(b, a)
            // 1 to 31 bytes of the first word, or none, lie before the row.
            let before := and(sub(0, count), 31)
            let mask := shr(shl(3, before), not(0))
            for { a := sub(a, before) } lt(a, end) { a := add(a, 32) } {
                let x := and(xor(calldataload(a), SIGN_8), mask)
                let y := and(xor(calldataload(add(a, behind)), SIGN_8), mask)
                mask := not(0)

                y := or(shl(128, y), shr(128, y))
                y := or(shl(64, and(y, LOWER_64)), and(shr(64, y), LOWER_64))
                y := or(shl(32, and(y, LOWER_32)), and(shr(32, y), LOWER_32))

                let s := and(x, LOW_8_OF_32)
                let t := and(y, LOW_8_OF_32)
                products := add(products, mul(s, t))
                sums := add(sums, add(s, t))
                s := and(shr(8, x), LOW_8_OF_32)
                t := and(shr(8, y), LOW_8_OF_32)
                products := add(products, mul(s, t))
                sums := add(sums, add(s, t))
                s := and(shr(16, x), LOW_8_OF_32)
                t := and(shr(16, y), LOW_8_OF_32)
                products := add(products, mul(s, t))
                sums := add(sums, add(s, t))
                s := and(shr(24, x), LOW_8_OF_32)
                t := and(shr(24, y), LOW_8_OF_32)
                products := add(products, mul(s, t))
                sums := add(sums, add(s, t))
            }
            products := shr(224, products)
            sums := shr(224, mul(sums, ONES_32))
        }
        return _unbias(products, sums, count, 7);
    }

    /// @notice Dot product of `count` little-endian int16 values at `a` and at `b`. `count <= 2^31`.
    function ofInt16(uint256 a, uint256 b, uint256 count) internal pure returns (int256) {
        uint256 products;
        uint256 sums;
        // SAFETY: touches no memory. Lanes of 64 bits: products below 2^31 · 2^32, sums below 2^31 · 2 · 2^16.
        assembly ("memory-safe") {
            let end := add(a, shl(1, count))
            let behind := sub(b, a)
            // 2 to 30 bytes of the first word, or none, lie before the row.
            let before := and(sub(0, shl(1, count)), 31)
            let mask := shr(shl(3, before), not(0))
            for { a := sub(a, before) } lt(a, end) { a := add(a, 32) } {
                let x := calldataload(a)
                let y := calldataload(add(a, behind))
                x := or(shl(8, and(x, LOWER_8)), and(shr(8, x), LOWER_8))
                y := or(shl(8, and(y, LOWER_8)), and(shr(8, y), LOWER_8))
                x := and(xor(x, SIGN_16), mask)
                y := and(xor(y, SIGN_16), mask)
                mask := not(0)

                y := or(shl(128, y), shr(128, y))
                y := or(shl(64, and(y, LOWER_64)), and(shr(64, y), LOWER_64))

                let s := and(x, LOW_16_OF_64)
                let t := and(y, LOW_16_OF_64)
                products := add(products, mul(s, t))
                sums := add(sums, add(s, t))
                s := and(shr(16, x), LOW_16_OF_64)
                t := and(shr(16, y), LOW_16_OF_64)
                products := add(products, mul(s, t))
                sums := add(sums, add(s, t))
                s := and(shr(32, x), LOW_16_OF_64)
                t := and(shr(32, y), LOW_16_OF_64)
                products := add(products, mul(s, t))
                sums := add(sums, add(s, t))
                s := and(shr(48, x), LOW_16_OF_64)
                t := and(shr(48, y), LOW_16_OF_64)
                products := add(products, mul(s, t))
                sums := add(sums, add(s, t))
            }
            products := shr(192, products)
            sums := shr(192, mul(sums, ONES_64))
        }
        return _unbias(products, sums, count, 15);
    }

    /// @dev `products − 2^shift · sums + 2^(2·shift) · count`.
    function _unbias(uint256 products, uint256 sums, uint256 count, uint256 shift) private pure returns (int256) {
        // SAFETY: every term is below 2^64.
        return int256(products + (count << (2 * shift))) - int256(sums << shift);
    }
}
