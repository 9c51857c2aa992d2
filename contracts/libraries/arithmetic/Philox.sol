// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title Philox4x32-10 (N-4)
/// @notice The counter-based generator of Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2,
/// 3", SC 2011.
library Philox {
    uint256 private constant M0 = 0xD2511F53;
    uint256 private constant M1 = 0xCD9E8D57;
    uint256 private constant W0 = 0x9E3779B9;
    uint256 private constant W1 = 0xBB67AE85;
    uint256 private constant MASK = type(uint32).max;

    /// @notice Ten rounds over the counter `(c0, c1, c2, c3)` under the key `(k0, k1)`, words of 32 bits.
    /// @dev SAFETY: every word is masked to 32 bits, so products stay below 2^64 and sums below 2^33.
    function block10(uint256 k0, uint256 k1, uint256 c0, uint256 c1, uint256 c2, uint256 c3)
        internal
        pure
        returns (uint256, uint256, uint256, uint256)
    {
        unchecked {
            for (uint256 round = 0; round < 10; ++round) {
                uint256 p0 = M0 * c0;
                uint256 p1 = M1 * c2;
                c0 = (p1 >> 32) ^ c1 ^ k0;
                c1 = p1 & MASK;
                c2 = (p0 >> 32) ^ c3 ^ k1;
                c3 = p0 & MASK;
                k0 = (k0 + W0) & MASK;
                k1 = (k1 + W1) & MASK;
            }
        }
        return (c0, c1, c2, c3);
    }

    /// @notice `philox(key, (row, step, stream, 0))` of N-4: a draw uniform in `[0, 2^32)`.
    function draw(bytes32 jobKey, uint32 row, uint32 step, uint32 stream) internal pure returns (uint256) {
        (uint256 word,,,) = _block(jobKey, row, step, stream, 0);
        return word;
    }

    /// @notice The draw of N-46 and N-48 for an element: four share a block. `kind` keeps draws of different
    /// kinds apart.
    function drawElement(bytes32 jobKey, uint256 element, uint256 step, uint256 stream, uint256 kind)
        internal
        pure
        returns (uint256)
    {
        (uint256 first, uint256 second, uint256 third, uint256 fourth) =
            _block(jobKey, (element >> 2) & MASK, step, stream, kind + (element >> 34));
        if (element & 2 == 0) return element & 1 == 0 ? first : second;
        return element & 1 == 0 ? third : fourth;
    }

    /// @dev Under a job's key (N-4).
    function _block(bytes32 jobKey, uint256 c0, uint256 c1, uint256 c2, uint256 c3)
        private
        pure
        returns (uint256, uint256, uint256, uint256)
    {
        uint256 key = uint256(jobKey);
        return block10(_littleEndian(key >> 224), _littleEndian((key >> 192) & MASK), c0, c1, c2, c3);
    }

    function _littleEndian(uint256 x) private pure returns (uint256) {
        return ((x & 0xff) << 24) | ((x & 0xff00) << 8) | ((x >> 8) & 0xff00) | (x >> 24);
    }
}
