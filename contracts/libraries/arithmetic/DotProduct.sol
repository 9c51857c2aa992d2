// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Dot products of int8 and int16 rows in calldata, and of one with the other
/// @notice `Σ a[k]·b[k]` exactly, many products per MUL.
///
/// A word is split into lanes, one mantissa each, four times as wide as the mantissa. Read as a polynomial in 2^lane,
/// lane i of one word times lane L−1−i of the other falls into lane L−1 of the product; so with the lanes of b
/// reversed, the top lane of `MUL` is the sum of the L products, and what would lie above it is cut off by the word.
/// Products add up in place, over the whole row.
///
/// Mantissas are biased (XOR of the sign bit), masked out, and freed of the bias by one SUB for all lanes: a word is
/// then the polynomial with the signed coefficients, modulo 2^256. Lower lanes of the sum are small against their
/// width, so together they could borrow 1 from the top lane but not more; an offset of half a unit of the top lane
/// prevents it.
///
/// @dev When a row is no multiple of a word long, its first word is read from before its start; those bytes of b are
/// set to 0, which makes their products 0. Positions are offsets in calldata; the caller has checked that the rows lie
/// in what it opened.
library DotProduct {
    uint256 private constant SIGN_8 = 0x8080808080808080808080808080808080808080808080808080808080808080;
    uint256 private constant SIGN_16 = 0x8000800080008000800080008000800080008000800080008000800080008000;
    /// @dev One byte in each 32-bit lane, and the bias; one 16-bit value in each 64-bit lane, and the bias.
    uint256 private constant LANES_8 = 0x000000ff000000ff000000ff000000ff000000ff000000ff000000ff000000ff;
    uint256 private constant BIAS_8 = 0x0000008000000080000000800000008000000080000000800000008000000080;
    uint256 private constant LANES_16 = 0x000000000000ffff000000000000ffff000000000000ffff000000000000ffff;
    uint256 private constant BIAS_16 = 0x0000000000008000000000000000800000000000000080000000000000008000;
    /// @dev One byte in each 64-bit lane, and the bias of each byte in the lower half of one.
    uint256 private constant BYTE_64 = 0x00000000000000ff00000000000000ff00000000000000ff00000000000000ff;
    uint256 private constant BIAS_64 = 0x0000000000000080000000000000008000000000000000800000000000000080;
    uint256 private constant SIGN_64 = 0x0000000080808080000000008080808000000000808080800000000080808080;
    /// @dev The lower quarter of each half.
    uint256 private constant LOWER_128 = 0x000000000000000000000000ffffffff000000000000000000000000ffffffff;
    /// @dev The lower half of each pair of bytes, 32-bit lanes, 64-bit lanes.
    uint256 private constant LOWER_8 = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant LOWER_32 = 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff;
    uint256 private constant LOWER_64 = 0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff;

    /// @notice Dot product of `count` mantissas of `widthA` (1 or 2) bytes at `a` and of `widthB` (no more) at
    /// `b`. `count <= 2^15`.
    function ofWidths(uint256 a, uint256 b, uint256 count, uint256 widthA, uint256 widthB)
        internal
        pure
        returns (int256)
    {
        if (widthA == 1) return ofInt8(a, b, count);
        return widthB == 1 ? ofInt16ByInt8(a, b, count) : ofInt16(a, b, count);
    }

    /// @notice Dot product of `count` int8 values at `a` and at `b`. `count <= 2^15`.
    function ofInt8(uint256 a, uint256 b, uint256 count) internal pure returns (int256 sum) {
        if (count == 0) return 0;
        // SAFETY: touches no memory. A lane of 32 bits takes at most 2^15 products of magnitude 2^14.
        assembly ("memory-safe") {
            let end := add(a, count)
            let behind := sub(b, a)
            // 1 to 31 bytes of the first word, or none, lie before the row.
            let before := and(sub(0, count), 31)
            a := sub(a, before)
            let y := and(calldataload(add(a, behind)), shr(shl(3, before), not(0)))
            // Half of the top lane's unit.
            sum := shl(223, 1)
            for {} lt(a, end) {} {
                let x := xor(calldataload(a), SIGN_8)
                y := xor(y, SIGN_8)
                let halves := or(shl(128, y), shr(128, y))
                let quarters := or(shl(64, and(halves, LOWER_64)), and(shr(64, halves), LOWER_64))
                let z := or(shl(32, and(quarters, LOWER_32)), and(shr(32, quarters), LOWER_32))
                sum := add(
                    add(
                        mul(sub(and(shr(24, x), LANES_8), BIAS_8), sub(and(shr(24, z), LANES_8), BIAS_8)),
                        mul(sub(and(shr(16, x), LANES_8), BIAS_8), sub(and(shr(16, z), LANES_8), BIAS_8))
                    ),
                    add(
                        add(
                            mul(sub(and(shr(8, x), LANES_8), BIAS_8), sub(and(shr(8, z), LANES_8), BIAS_8)),
                            mul(sub(and(x, LANES_8), BIAS_8), sub(and(z, LANES_8), BIAS_8))
                        ),
                        sum
                    )
                )
                a := add(a, 32)
                y := calldataload(add(a, behind))
            }
            sum := sar(224, sum)
        }
    }

    /// @notice Dot product of `count` little-endian int16 values at `a` and at `b`. `count <= 2^31`.
    function ofInt16(uint256 a, uint256 b, uint256 count) internal pure returns (int256 sum) {
        if (count == 0) return 0;
        // SAFETY: touches no memory. A lane of 64 bits takes at most 2^31 products of magnitude 2^30.
        assembly ("memory-safe") {
            let end := add(a, shl(1, count))
            let behind := sub(b, a)
            // 2 to 30 bytes of the first word, or none, lie before the row.
            let before := and(sub(0, shl(1, count)), 31)
            a := sub(a, before)
            let y := and(calldataload(add(a, behind)), shr(shl(3, before), not(0)))
            // Half of the top lane's unit.
            sum := shl(191, 1)
            for {} lt(a, end) {} {
                let x := calldataload(a)
                x := xor(or(shl(8, and(x, LOWER_8)), and(shr(8, x), LOWER_8)), SIGN_16)
                y := xor(or(shl(8, and(y, LOWER_8)), and(shr(8, y), LOWER_8)), SIGN_16)
                let halves := or(shl(128, y), shr(128, y))
                let z := or(shl(64, and(halves, LOWER_64)), and(shr(64, halves), LOWER_64))
                sum := add(
                    add(
                        mul(sub(and(shr(48, x), LANES_16), BIAS_16), sub(and(shr(48, z), LANES_16), BIAS_16)),
                        mul(sub(and(shr(32, x), LANES_16), BIAS_16), sub(and(shr(32, z), LANES_16), BIAS_16))
                    ),
                    add(
                        add(
                            mul(sub(and(shr(16, x), LANES_16), BIAS_16), sub(and(shr(16, z), LANES_16), BIAS_16)),
                            mul(sub(and(x, LANES_16), BIAS_16), sub(and(z, LANES_16), BIAS_16))
                        ),
                        sum
                    )
                )
                a := add(a, 32)
                y := calldataload(add(a, behind))
            }
            sum := sar(192, sum)
        }
    }

    /// @notice Dot product of `count` little-endian int16 values at `a` and int8 values at `b`. `count <= 2^31`.
    function ofInt16ByInt8(uint256 a, uint256 b, uint256 count) internal pure returns (int256 sum) {
        if (count == 0) return 0;
        // SAFETY: touches no memory. A lane of 64 bits takes at most 2^31 products of magnitude 2^22.
        assembly ("memory-safe") {
            let end := add(a, shl(1, count))
            // 1 to 15 mantissas of the first word of a, or none, lie before the row.
            let before := and(sub(0, count), 15)
            a := sub(a, shl(1, before))
            b := sub(b, before)
            let y := and(calldataload(b), shr(shl(3, before), not(0)))
            // Half of the top lane's unit.
            sum := shl(191, 1)
            for {} lt(a, end) {} {
                let x := calldataload(a)
                x := xor(or(shl(8, and(x, LOWER_8)), and(shr(8, x), LOWER_8)), SIGN_16)
                // The first 16 bytes, four in the lower half of each lane, the last four first.
                let halves := or(shl(128, and(shr(128, y), 0xffffffffffffffff)), shr(192, y))
                let z := xor(or(shl(64, and(halves, LOWER_128)), and(shr(32, halves), LOWER_128)), SIGN_64)
                sum := add(
                    add(
                        mul(sub(and(shr(48, x), LANES_16), BIAS_16), sub(and(shr(24, z), BYTE_64), BIAS_64)),
                        mul(sub(and(shr(32, x), LANES_16), BIAS_16), sub(and(shr(16, z), BYTE_64), BIAS_64))
                    ),
                    add(
                        add(
                            mul(sub(and(shr(16, x), LANES_16), BIAS_16), sub(and(shr(8, z), BYTE_64), BIAS_64)),
                            mul(sub(and(x, LANES_16), BIAS_16), sub(and(z, BYTE_64), BIAS_64))
                        ),
                        sum
                    )
                )
                a := add(a, 32)
                b := add(b, 16)
                y := calldataload(b)
            }
            sum := sar(192, sum)
        }
    }
}
