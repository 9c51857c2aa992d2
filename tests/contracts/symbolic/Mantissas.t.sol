// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Mantissas} from "../../../contracts/libraries/encoding/Mantissas.sol";
import {Test} from "forge-std/Test.sol";

contract MantissasReader {
    /// @param bytesIn the mantissa's first byte, from the start of the calldata's last word.
    function load(bytes32, uint256 bytesIn, uint256 width) external pure returns (int256) {
        return Mantissas.load(4 + bytesIn, width);
    }
}

/// @notice Mantissas are read as C-1 writes them.
contract MantissasSymbolic is Test {
    MantissasReader private reader = new MantissasReader();

    /// @notice Every word, at every byte of which a mantissa can start.
    function check_load(bytes32 word, uint8 place) public view {
        vm.assume(place <= 24);
        for (uint256 i = 0; i <= 24; ++i) {
            if (i != place) continue;
            assert(reader.load(word, i, 1) == int8(int256(_unsigned(word, i, 1))));
            assert(reader.load(word, i, 2) == int16(int256(_unsigned(word, i, 2))));
            assert(reader.load(word, i, 4) == int32(int256(_unsigned(word, i, 4))));
            assert(reader.load(word, i, 8) == int64(int256(_unsigned(word, i, 8))));
        }
    }

    function testFuzz_load(bytes32 word, uint8 place) public view {
        check_load(word, place % 25);
    }

    /// @dev Byte by byte, the first the least.
    function _unsigned(bytes32 word, uint256 start, uint256 width) private pure returns (uint256 sum) {
        for (uint256 k = 0; k < width; ++k) {
            sum |= uint256(uint8(word[start + k])) << (8 * k);
        }
    }
}
