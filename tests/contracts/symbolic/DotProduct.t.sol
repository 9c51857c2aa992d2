// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {DotProduct} from "../../../contracts/libraries/arithmetic/DotProduct.sol";
import {Test} from "forge-std/Test.sol";

contract DotProductRows {
    /// @dev The rows are the last `count` mantissas of the two words.
    function product(uint256 widthA, uint256 widthB, uint256 count, bytes32, bytes32) external pure returns (int256) {
        return DotProduct.ofWidths(132 - count * widthA, 164 - count * widthB, count, widthA, widthB);
    }
}

/// @notice The lanes of a MUL give what a loop gives.
/// @dev Products of unknowns are hard on solvers: of one or two mantissas both rows are free, with whatever lies before
/// them in the word; of a whole word one mantissa of each row is, and the others are 0.
contract DotProductSymbolic is Test {
    DotProductRows private rows = new DotProductRows();

    function check_oneInt8(bytes32 a, bytes32 b) public view {
        _check(1, 1, 1, a, b);
    }

    function check_twoInt8(bytes32 a, bytes32 b) public view {
        _check(1, 1, 2, a, b);
    }

    function check_oneInt16(bytes32 a, bytes32 b) public view {
        _check(2, 2, 1, a, b);
    }

    function check_oneInt16ByInt8(bytes32 a, bytes32 b) public view {
        _check(2, 1, 1, a, b);
    }

    /// @notice Places of a whole word, in every lane and at every place within one.
    function check_placesOfInt8(int8 a, int8 b, uint8 place) public view {
        for (uint256 k = 0; k < 32; k += 5) {
            if (k == place) _one(1, 1, 32, k, uint8(a), uint8(b));
        }
    }

    function check_placesOfInt16(int16 a, int16 b, uint8 place) public view {
        for (uint256 k = 0; k < 16; k += 5) {
            if (k == place) _one(2, 2, 16, k, uint16(a), uint16(b));
        }
    }

    function check_placesOfInt16ByInt8(int16 a, int8 b, uint8 place) public view {
        for (uint256 k = 0; k < 16; k += 5) {
            if (k == place) _one(2, 1, 16, k, uint16(a), uint8(b));
        }
    }

    function _one(uint256 widthA, uint256 widthB, uint256 count, uint256 k, uint256 a, uint256 b) private view {
        _check(widthA, widthB, count, bytes32(a << (8 * widthA * k)), bytes32(b << (8 * widthB * k)));
    }

    function testFuzz_everyWidthAndCount(bytes32 a, bytes32 b) public view {
        for (uint256 count = 0; count <= 16; ++count) {
            _check(1, 1, 2 * count, a, b);
            _check(2, 2, count, a, b);
            _check(2, 1, count, a, b);
        }
    }

    function _check(uint256 widthA, uint256 widthB, uint256 count, bytes32 a, bytes32 b) private view {
        int256 sum = 0;
        // Not checked for overflow, which would ask the solver about divisions.
        unchecked {
            for (uint256 k = 0; k < count; ++k) {
                sum += _fromEnd(a, k, widthA) * _fromEnd(b, k, widthB);
            }
        }
        assert(rows.product(widthA, widthB, count, a, b) == sum);
    }

    /// @dev Mantissa `k` of the word, counted from its last.
    function _fromEnd(bytes32 word, uint256 k, uint256 width) private pure returns (int256) {
        uint256 last = uint256(word) >> (8 * width * k);
        if (width == 1) return int8(uint8(last));
        return int16(uint16((last & 0xff) << 8 | (last >> 8) & 0xff));
    }
}
