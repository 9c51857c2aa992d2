// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Bytes for tests of lane arithmetic: random, constant, or a mix of extremes
library Noise {
    /// @dev Number of kinds that `fill` knows.
    uint256 internal constant KINDS = 8;

    /// @notice `length` bytes. Kind 0 and 1: random. 2 to 6: 0x80, 0xff, 0x7f, 0x00, 0x81 everywhere. 7: a random
    /// choice of those.
    function fill(uint256 length, bytes32 seed, uint256 kind) internal pure returns (bytes memory data) {
        data = new bytes(length);
        bytes5 constants = hex"80ff7f0081";
        uint256 noise = uint256(seed);
        for (uint256 i = 0; i < length; ++i) {
            // A linear congruential generator allocates nothing, unlike a hash.
            unchecked {
                noise = noise * 0x5851f42d4c957f2d14057b7ef767814f + 0x14057b7ef767814f;
            }
            uint256 high = noise >> 240;
            if (kind < 2) data[i] = bytes1(uint8(high));
            else if (kind < 7) data[i] = constants[kind - 2];
            else data[i] = constants[high % 5];
        }
    }
}
