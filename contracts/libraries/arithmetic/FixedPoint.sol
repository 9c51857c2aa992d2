// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @title The two roundings (N-2, N-3)
library FixedPoint {
    /// @dev Largest shift either way.
    int256 internal constant MAX_SHIFT = 63;

    /// @notice `x / 2^shift` rounded half to even, then clamped to `±(2^(bits − 1) − 1)`.
    /// @dev Exact for `|x| < 2^191`, `|shift| <= 63`, `2 <= bits <= 64`: nothing overflows there.
    function rescaleHalfEven(int256 x, int256 shift, uint256 bits) internal pure returns (int256 y) {
        unchecked {
            if (shift <= 0) {
                // SAFETY of the cast: 0 <= −shift <= 63.
                // forge-lint: disable-next-line(unsafe-typecast)
                y = x << uint256(-shift);
            } else {
                // SAFETY of the casts: 0 < shift <= 63; the remainder is that of the floor, so two's complement
                // bits serve.
                // forge-lint: disable-next-line(unsafe-typecast)
                uint256 s = uint256(shift);
                y = x >> s;
                // forge-lint: disable-next-line(unsafe-typecast)
                uint256 remainder = uint256(x) & ((1 << s) - 1);
                uint256 half = 1 << (s - 1);
                if (remainder > half || (remainder == half && y & 1 == 1)) ++y;
            }
        }
        return clamp(y, bits);
    }

    /// @notice `⌊(2a + b) / 2b⌋`: the quotient rounded half up. `b > 0`; `|a| < 2^254`, `b < 2^254`.
    function divHalfUp(int256 a, int256 b) internal pure returns (int256) {
        return divFloor(2 * a + b, 2 * b);
    }

    /// @notice `⌊a / b⌋`, `b > 0`.
    function divFloor(int256 a, int256 b) internal pure returns (int256 q) {
        q = a / b;
        // Solidity truncates towards zero.
        if (a < 0 && q * b != a) --q;
    }

    /// @notice `y` limited to `±(2^(bits − 1) − 1)`, `2 <= bits <= 64`.
    function clamp(int256 y, uint256 bits) internal pure returns (int256) {
        // SAFETY: bits <= 64, so the limit is below 2^63.
        int256 limit = int256((1 << (bits - 1)) - 1);
        if (y > limit) return limit;
        return y < -limit ? -limit : y;
    }

    /// @notice `x` limited to `[0, end]`.
    function limited(int256 x, uint256 end) internal pure returns (uint256) {
        if (x <= 0) return 0;
        // SAFETY of the casts: positive.
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint256(x) < end ? uint256(x) : end;
    }
}
