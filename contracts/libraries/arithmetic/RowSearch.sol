// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {LibBit} from "solady/utils/LibBit.sol";

import {RowReduce} from "./RowReduce.sol";

/// @title Where the largest mantissa of a row in calldata stands
/// @dev As in `RowReduce`, the first word of a row may begin before it, and a word of mantissas is looked at at a time.
/// Which mantissa equals another needs no bytes in order.
library RowSearch {
    /// @notice The place, from 0, of the first of the `count` mantissas of `width` (1, 2, 4 or 8) bytes at `position`
    /// that none exceeds. `0 < count <= 4096`.
    function firstMax(uint256 position, uint256 count, uint256 width) internal pure returns (uint256) {
        return _first(position, count, width, RowReduce.max(position, count, width));
    }

    /// @dev The place of the first mantissa that is `value`.
    function _first(uint256 position, uint256 count, uint256 width, int256 value) private pure returns (uint256) {
        // 1 in every lane.
        uint256 ones = type(uint256).max / ((1 << (8 * width)) - 1);
        (uint256 p, uint256 found) = _firstZero(position, count * width, ones * _littleEndian(value, width), ones);
        // INVARIANT: the row has its maximum, so some lane was found.
        assert(found != 0);
        // SAFETY: p may lie before the position, by less than the lane found is behind p.
        unchecked {
            return (p + LibBit.clz(found) / 8 - position) / width;
        }
    }

    /// @dev The first word in which a lane of the `length` bytes at `position` is as `value` has it, and the top bits
    /// of those lanes.
    function _firstZero(uint256 position, uint256 length, uint256 value, uint256 ones)
        private
        pure
        returns (uint256 p, uint256 found)
    {
        // SAFETY: touches no memory. The sum of a lane without its top bit and all bits but that one carries into the
        // top bit unless the former is 0, and never beyond.
        assembly ("memory-safe") {
            let end := add(position, length)
            let before := and(sub(0, length), 31)
            p := sub(position, before)
            // Every bit of a lane but the top one.
            let rest := shr(1, sub(not(0), ones))
            // What lies before the row is not found.
            let inRow := shr(shl(3, before), not(0))
            for {} lt(p, end) { p := add(p, 32) } {
                let x := xor(calldataload(p), value)
                found := and(not(or(or(add(and(x, rest), rest), x), rest)), inRow)
                if found { break }
                inRow := not(0)
            }
        }
    }

    /// @dev The lowest `width` bytes of `value`, as calldata has them.
    function _littleEndian(int256 value, uint256 width) private pure returns (uint256 bytes_) {
        // SAFETY of the cast: two's complement bytes.
        // forge-lint: disable-next-line(unsafe-typecast)
        uint256 word = uint256(value);
        for (uint256 i = 0; i < width; ++i) {
            bytes_ = (bytes_ << 8) | ((word >> (8 * i)) & 0xff);
        }
    }
}
