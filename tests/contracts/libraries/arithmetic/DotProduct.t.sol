// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {DotProduct} from "../../../../contracts/libraries/arithmetic/DotProduct.sol";
import {Noise} from "../../verifier/Noise.sol";
import {Test} from "forge-std/Test.sol";

/// @dev Gives the library rows at chosen offsets of calldata, and does the same sum slowly over bytes.
contract DotProductHarness {
    function fast(bytes calldata a, uint256 i, bytes calldata b, uint256 j, uint256 count, uint256 width)
        external
        pure
        returns (int256)
    {
        uint256 p;
        uint256 q;
        assembly ("memory-safe") {
            p := add(a.offset, i)
            q := add(b.offset, j)
        }
        return width == 1 ? DotProduct.ofInt8(p, q, count) : DotProduct.ofInt16(p, q, count);
    }

    function fastMixed(bytes calldata a, uint256 i, bytes calldata b, uint256 j, uint256 count)
        external
        pure
        returns (int256)
    {
        uint256 p;
        uint256 q;
        assembly ("memory-safe") {
            p := add(a.offset, i)
            q := add(b.offset, j)
        }
        return DotProduct.ofInt16ByInt8(p, q, count);
    }

    function slowMixed(bytes calldata a, uint256 i, bytes calldata b, uint256 j, uint256 count)
        external
        pure
        returns (int256 sum)
    {
        for (uint256 k = 0; k < count; ++k) {
            sum += _at(a, i + 2 * k, 2) * _at(b, j + k, 1);
        }
    }

    function slow(bytes calldata a, uint256 i, bytes calldata b, uint256 j, uint256 count, uint256 width)
        external
        pure
        returns (int256 sum)
    {
        for (uint256 k = 0; k < count; ++k) {
            sum += _at(a, i + k * width, width) * _at(b, j + k * width, width);
        }
    }

    function _at(bytes calldata data, uint256 i, uint256 width) private pure returns (int256) {
        if (width == 1) return int8(uint8(data[i]));
        return int16(uint16(uint8(data[i])) | (uint16(uint8(data[i + 1])) << 8));
    }
}

contract DotProductTest is Test {
    DotProductHarness private harness = new DotProductHarness();

    function _check(bytes memory a, uint256 i, bytes memory b, uint256 j, uint256 count, uint256 width) private view {
        assertEq(harness.fast(a, i, b, j, count, width), harness.slow(a, i, b, j, count, width));
    }

    function _checkMixed(bytes memory a, uint256 i, bytes memory b, uint256 j, uint256 count) private view {
        assertEq(harness.fastMixed(a, i, b, j, count), harness.slowMixed(a, i, b, j, count));
    }

    function testFuzz_agreesWithTheLoop(
        bytes32 seed,
        uint256 count,
        uint8 i,
        uint8 j,
        uint8 kindA,
        uint8 kindB,
        bool wide
    ) public view {
        uint256 width = wide ? 2 : 1;
        count = bound(count, 1, 300);
        bytes memory a = Noise.fill(count * width + i, seed, kindA % Noise.KINDS);
        bytes memory b = Noise.fill(count * width + j, keccak256(abi.encode(seed)), kindB % Noise.KINDS);
        _check(a, i, b, j, count, width);
        if (wide) _checkMixed(a, i, b, j, count);
    }

    /// @notice Lengths from empty to beyond two words at every alignment, between neighbours that must not count.
    function test_everyLengthAtEveryAlignment() public view {
        bytes memory a = Noise.fill(240, "a", 0);
        bytes memory b = Noise.fill(240, "b", 7);
        for (uint256 count = 0; count <= 70; ++count) {
            for (uint256 i = 0; i < 32; i += 3) {
                _check(a, i, b, (i * 7 + count) % 32, count, 1);
                _check(a, i, b, (i * 7 + count) % 32, count, 2);
                _checkMixed(a, i, b, (i * 7 + count) % 32, count);
            }
        }
    }

    /// @notice The longest row of the largest values: the lanes do not overflow.
    function test_longestRowOfExtremes() public view {
        for (uint256 kindA = 2; kindA <= 4; ++kindA) {
            for (uint256 kindB = 2; kindB <= 4; ++kindB) {
                bytes memory a = Noise.fill(8192, "a", kindA);
                bytes memory b = Noise.fill(8192, "b", kindB);
                _check(a, 0, b, 0, 4096, 1);
                _check(a, 1, b, 2, 4096, 1);
                _check(a, 0, b, 0, 4096, 2);
                _checkMixed(a, 0, b, 1, 4096);
            }
        }
        // −128² and −32768² are the largest products.
        bytes memory least = Noise.fill(4096, "", 2);
        assertEq(harness.fast(least, 0, least, 0, 4096, 1), 4096 * 2 ** 14);
        bytes memory wideLeast = new bytes(8192);
        for (uint256 k = 1; k < 8192; k += 2) {
            wideLeast[k] = 0x80;
        }
        assertEq(harness.fast(wideLeast, 0, wideLeast, 0, 4096, 2), 4096 * 2 ** 30);
        assertEq(harness.fastMixed(wideLeast, 0, least, 0, 4096), 4096 * 2 ** 22);
    }

    /// @notice The bounds that the library states, beyond what any operator asks.
    function test_statedBound() public view {
        bytes memory a = Noise.fill(2 ** 15, "", 4);
        assertEq(harness.fast(a, 0, a, 0, 2 ** 15, 1), 2 ** 15 * 127 ** 2);
        bytes memory b = Noise.fill(2 ** 15, "", 2);
        assertEq(harness.fast(b, 0, b, 0, 2 ** 15, 1), 2 ** 15 * 2 ** 14);
    }
}
