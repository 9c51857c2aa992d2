// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {RowMoments} from "../../../../contracts/libraries/arithmetic/RowMoments.sol";
import {RowReduce} from "../../../../contracts/libraries/arithmetic/RowReduce.sol";
import {Mantissas} from "../../../../contracts/libraries/encoding/Mantissas.sol";
import {Noise} from "../../verifier/Noise.sol";
import {Test} from "forge-std/Test.sol";

contract RowReduceHarness {
    function fast(bytes calldata data, uint256 from, uint256 count, uint256 width)
        external
        pure
        returns (int256 sum, int256 max, int256 magnitude)
    {
        uint256 position;
        assembly ("memory-safe") {
            position := add(data.offset, from)
        }
        return (
            RowReduce.sum(position, count, width),
            RowReduce.max(position, count, width),
            RowReduce.maxMagnitude(position, count, width)
        );
    }

    function moments(bytes calldata data, uint256 from, uint256 count, uint256 width)
        external
        pure
        returns (int256 sum, int256 squares)
    {
        uint256 position;
        assembly ("memory-safe") {
            position := add(data.offset, from)
        }
        return RowMoments.sums(position, count, width);
    }

    function slowSquares(bytes calldata data, uint256 from, uint256 count, uint256 width)
        external
        pure
        returns (int256 sum)
    {
        for (uint256 k = 0; k < count; ++k) {
            sum += valueAt(data, from + k * width, width) ** 2;
        }
    }

    function load(bytes calldata data, uint256 from, uint256 width) external pure returns (int256) {
        uint256 position;
        assembly ("memory-safe") {
            position := add(data.offset, from)
        }
        return Mantissas.load(position, width);
    }

    function slow(bytes calldata data, uint256 from, uint256 count, uint256 width)
        external
        pure
        returns (int256 sum, int256 max, int256 magnitude)
    {
        max = type(int256).min;
        for (uint256 k = 0; k < count; ++k) {
            int256 value = valueAt(data, from + k * width, width);
            sum += value;
            if (value > max) max = value;
            if (value > magnitude) magnitude = value;
            if (-value > magnitude) magnitude = -value;
        }
    }

    /// @dev Byte by byte, the last with its sign.
    function valueAt(bytes calldata data, uint256 from, uint256 width) public pure returns (int256 value) {
        value = int8(uint8(data[from + width - 1]));
        for (uint256 j = width - 1; j > 0; --j) {
            value = value * 256 + int256(uint256(uint8(data[from + j - 1])));
        }
    }
}

contract RowReduceTest is Test {
    RowReduceHarness private harness = new RowReduceHarness();

    function _check(bytes memory data, uint256 from, uint256 count, uint256 width) private view {
        (int256 sum, int256 max, int256 magnitude) = harness.fast(data, from, count, width);
        (int256 slowSum, int256 slowMax, int256 slowMagnitude) = harness.slow(data, from, count, width);
        assertEq(sum, slowSum, "sum");
        assertEq(max, slowMax, "max");
        assertEq(magnitude, slowMagnitude, "magnitude");
        if (width > 2) return;
        int256 squares;
        (sum, squares) = harness.moments(data, from, count, width);
        assertEq(sum, slowSum, "sum of moments");
        assertEq(squares, harness.slowSquares(data, from, count, width), "squares");
    }

    function testFuzz_agreesWithTheLoop(bytes32 seed, uint256 count, uint8 from, uint8 width, uint8 kind) public view {
        width = uint8(1 << (width % 4));
        count = bound(count, 1, 200);
        _check(Noise.fill(count * width + from, seed, kind % Noise.KINDS), from, count, width);
    }

    function test_everyLengthAtEveryAlignment() public view {
        bytes memory data = Noise.fill(400, "row", 0);
        for (uint256 count = 1; count <= 40; ++count) {
            for (uint256 from = 0; from < 32; from += 5) {
                for (uint256 width = 1; width <= 8; width *= 2) {
                    _check(data, from, count, width);
                }
            }
        }
    }

    /// @notice Lanes hold the longest row of any one value.
    function test_longestRow() public view {
        for (uint256 width = 1; width <= 8; width *= 2) {
            for (uint256 kind = 1; kind < Noise.KINDS; ++kind) {
                _check(Noise.fill(4096 * width, "long", kind), 0, 4096, width);
            }
        }
    }

    function testFuzz_load(bytes32 noise, uint8 from, uint8 width) public view {
        width = uint8(1 << (width % 4));
        from = from % 24;
        bytes memory data = abi.encodePacked(noise);
        assertEq(harness.load(data, from, width), harness.valueAt(data, from, width));
    }
}
