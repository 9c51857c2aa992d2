// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {FixedPoint} from "../../../contracts/libraries/arithmetic/FixedPoint.sol";
import {Test} from "forge-std/Test.sol";

/// @notice The rounding of N-2, and the limits.
contract FixedPointSymbolic is Test {
    function _clamped(int256 y, uint256 bits) private pure returns (int256) {
        int256 limit = int256((1 << (bits - 1)) - 1);
        return y > limit ? limit : y < -limit ? -limit : y;
    }

    /// @notice Every x below 2^191, every shift to the left, every width.
    function check_shiftLeft(int192 x, uint8 shift, uint8 bits) public pure {
        vm.assume(shift <= 63 && bits >= 2 && bits <= 64);
        int256 y = FixedPoint.rescaleHalfEven(x, -int256(uint256(shift)), bits);
        assert(y == _clamped(int256(x) << shift, bits));
    }

    function testFuzz_shiftLeft(int192 x, uint8 shift, uint8 bits) public pure {
        check_shiftLeft(x, shift % 64, 2 + bits % 63);
    }

    /// @notice Every integer, and everything that lies so near to it that it rounds there.
    function check_halfToEven(int128 near, int64 rest, uint8 shift, uint8 bits) public pure {
        vm.assume(shift >= 1 && shift <= 63 && bits >= 2 && bits <= 64);
        int256 half = int256(uint256(1) << (shift - 1));
        vm.assume(-half <= rest && rest <= half);
        vm.assume((rest != half && rest != -half) || near & 1 == 0);
        int256 y = FixedPoint.rescaleHalfEven((int256(near) << shift) + rest, int256(uint256(shift)), bits);
        assert(y == _clamped(near, bits));
    }

    function testFuzz_halfToEven(int128 near, int64 rest, uint8 shift, uint8 bits) public pure {
        shift = 1 + shift % 63;
        int256 half = int256(uint256(1) << (shift - 1));
        check_halfToEven(near & ~int128(1), int64(bound(rest, -half, half)), shift, 2 + bits % 63);
    }

    function check_limited(int256 x, uint256 end) public pure {
        uint256 y = FixedPoint.limited(x, end);
        assert(y <= end);
        if (x <= 0) assert(y == 0);
        else assert(y == uint256(x) || (y == end && end < uint256(x)));
    }

    function testFuzz_limited(int256 x, uint256 end) public pure {
        check_limited(x, end);
    }
}
