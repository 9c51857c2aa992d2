// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Sum and sum of squares of a row of int8, int16 or int32 in calldata, in one pass
/// @notice As `DotProduct` multiplies: a word of lanes times the same word with its lanes reversed has the sum of their
/// squares in its top lane. Here mantissas stay biased (XOR of the sign bit), so that coefficients are not negative;
/// the bias is taken out at the end, which needs the sum.
/// @dev As in `RowReduce`, the first word of a row may begin before it; the biased value of those bytes is masked
/// to 0, which adds to neither. Positions are offsets in calldata; the caller has checked that the row lies in what
/// it opened.
library RowMoments {
    uint256 private constant SIGN_8 = 0x8080808080808080808080808080808080808080808080808080808080808080;
    /// @dev Of little-endian values.
    uint256 private constant SIGN_16 = 0x0080008000800080008000800080008000800080008000800080008000800080;
    uint256 private constant SIGN_32 = 0x0000008000000080000000800000008000000080000000800000008000000080;
    /// @dev One byte in each 32-bit lane; one 16-bit value in each 64-bit lane; one of 32 bits in each of 128.
    uint256 private constant LANES_8 = 0x000000ff000000ff000000ff000000ff000000ff000000ff000000ff000000ff;
    uint256 private constant LANES_16 = 0x000000000000ffff000000000000ffff000000000000ffff000000000000ffff;
    uint256 private constant LANES_32 = 0x000000000000000000000000ffffffff000000000000000000000000ffffffff;
    /// @dev The lower half of each pair of bytes, 16-bit lanes, 32-bit lanes, 64-bit lanes.
    uint256 private constant LOWER_8 = 0x00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff00ff;
    uint256 private constant LOWER_16 = 0x0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff0000ffff;
    uint256 private constant LOWER_32 = 0x00000000ffffffff00000000ffffffff00000000ffffffff00000000ffffffff;
    uint256 private constant LOWER_64 = 0x0000000000000000ffffffffffffffff0000000000000000ffffffffffffffff;

    /// @notice `Σ_k x[k]` and `Σ_k x[k]²` of the `count` mantissas of `width` (1, 2 or 4) bytes at
    /// `position`. `count <= 4096`.
    function sums(uint256 position, uint256 count, uint256 width) internal pure returns (int256, int256) {
        (uint256 lanes, uint256 signs) =
            width == 1 ? (LANES_8, SIGN_8) : width == 2 ? (LANES_16, SIGN_16) : (LANES_32, SIGN_32);
        (uint256 sum, uint256 squares) = _biased(position, count * width, lanes, signs, width);
        // SAFETY of the casts: sums are within 2^44 and those of squares within 2^76.
        // forge-lint: disable-start(unsafe-typecast)
        int256 bias = int256(1 << (8 * width - 1));
        int256 total = int256(sum) - int256(count) * bias;
        // Σx² = Σ(x + bias)² − 2·bias·Σ(x + bias) + count·bias².
        return (total, int256(squares) - bias * (int256(sum) + total));
        // forge-lint: disable-end(unsafe-typecast)
    }

    /// @dev Both sums for the biased values of the `length` bytes at `position`.
    function _biased(uint256 position, uint256 length, uint256 lanes, uint256 signs, uint256 width)
        private
        pure
        returns (uint256 sum, uint256 squares)
    {
        // SAFETY: touches no memory. Of 4096 values below 2^(8·width), with lanes of 32·width bits: no coefficient of
        // the product exceeds 4096 products below 2^(16·width), so none carries into the next. Nor do sums in lanes of
        // 16·width bits: a word adds two values, 4096 have at most 128·width words, and 128·2·255 < 2^16; so for wider
        // ones.
        assembly ("memory-safe") {
            let half := shl(3, width)
            let lower := or(lanes, shl(shl(1, half), lanes))
            let end := add(position, length)
            let before := and(sub(0, length), 31)
            position := sub(position, before)
            let x := and(xor(calldataload(position), signs), shr(shl(3, before), not(0)))
            for {} lt(position, end) {} {
                // Bytes in order, and lanes reversed, which are as long as four mantissas.
                let y
                switch width
                case 2 {
                    x := or(shl(8, and(x, LOWER_8)), and(shr(8, x), LOWER_8))
                    y := or(shl(64, and(x, LOWER_64)), and(shr(64, x), LOWER_64))
                }
                case 4 {
                    x := or(shl(8, and(x, LOWER_8)), and(shr(8, x), LOWER_8))
                    x := or(shl(16, and(x, LOWER_16)), and(shr(16, x), LOWER_16))
                    y := x
                }
                default {
                    y := or(shl(32, and(x, LOWER_32)), and(shr(32, x), LOWER_32))
                    y := or(shl(64, and(y, LOWER_64)), and(shr(64, y), LOWER_64))
                }
                y := or(shl(128, y), shr(128, y))

                sum := add(add(and(x, lower), and(shr(half, x), lower)), sum)
                squares := add(
                    add(mul(and(x, lanes), and(y, lanes)), mul(and(shr(half, x), lanes), and(shr(half, y), lanes))),
                    squares
                )
                x := shr(shl(1, half), x)
                y := shr(shl(1, half), y)
                squares := add(
                    add(mul(and(x, lanes), and(y, lanes)), mul(and(shr(half, x), lanes), and(shr(half, y), lanes))),
                    squares
                )

                position := add(position, 32)
                x := xor(calldataload(position), signs)
            }
            // Into lanes as wide as those of the squares; times 1 in every lane, the top one has the sum of all.
            let wide := or(lanes, shl(half, lanes))
            sum := add(and(sum, wide), and(shr(shl(1, half), sum), wide))
            let top := sub(256, shl(2, half))
            // 2^half is meant.
            // slither-disable-next-line incorrect-shift
            sum := shr(top, mul(sum, div(lanes, sub(shl(half, 1), 1))))
            squares := shr(top, squares)
        }
    }
}
