// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Little-endian mantissas in calldata (C-1)
library Mantissas {
    /// @notice The two's complement little-endian integer of `width` (1, 2, 4 or 8) bytes at byte `position` of the
    /// calldata. The caller has checked that the bytes belong to what it reads.
    function load(uint256 position, uint256 width) internal pure returns (int256 mantissa) {
        uint256 word;
        // SAFETY: reads calldata only; beyond its end the EVM gives zeros.
        assembly ("memory-safe") {
            word := shr(192, calldataload(position))
        }
        // Reverse the eight bytes; those of this mantissa are then the lowest.
        word = ((word & 0x00ff00ff00ff00ff) << 8) | ((word >> 8) & 0x00ff00ff00ff00ff);
        word = ((word & 0x0000ffff0000ffff) << 16) | ((word >> 16) & 0x0000ffff0000ffff);
        word = (word << 32) | (word >> 32);
        // SAFETY: signextend drops everything above the width's sign bit.
        assembly ("memory-safe") {
            mantissa := signextend(sub(width, 1), word)
        }
    }
}
