// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {RowSearch} from "../../../../contracts/libraries/arithmetic/RowSearch.sol";
import {RowTails} from "../../../../contracts/libraries/arithmetic/RowTails.sol";
import {Noise} from "../../verifier/Noise.sol";
import {Test} from "forge-std/Test.sol";

contract RowTailsHarness {
    /// @dev How many of `count` mantissas of `width` bytes from byte `from` reach `least`, and the sum of as many of
    /// `weightWidth` bytes from byte `weightFrom`.
    function fast(
        bytes calldata data,
        uint256 from,
        uint256 width,
        uint256 weightFrom,
        uint256 weightWidth,
        uint256 count,
        int256 least
    ) external pure returns (uint256, int256) {
        uint256 base = _base(data);
        uint256[] memory tail = RowTails.reaching(base + from, count, width, least);
        return (RowTails.count(tail), RowTails.sum(tail, base + weightFrom, count, weightWidth));
    }

    function slow(
        bytes calldata data,
        uint256 from,
        uint256 width,
        uint256 weightFrom,
        uint256 weightWidth,
        uint256 count,
        int256 least
    ) external pure returns (uint256 reached, int256 sum) {
        for (uint256 k = 0; k < count; ++k) {
            if (valueAt(data, from + k * width, width) < least) {
                continue;
            }
            ++reached;
            sum += valueAt(data, weightFrom + k * weightWidth, weightWidth);
        }
    }

    function firstMax(bytes calldata data, uint256 from, uint256 width, uint256 count) external pure returns (uint256) {
        return RowSearch.firstMax(_base(data) + from, count, width);
    }

    function slowFirstMax(bytes calldata data, uint256 from, uint256 width, uint256 count)
        external
        pure
        returns (uint256 place)
    {
        for (uint256 k = 1; k < count; ++k) {
            if (valueAt(data, from + k * width, width) > valueAt(data, from + place * width, width)) place = k;
        }
    }

    function _base(bytes calldata data) private pure returns (uint256 position) {
        assembly ("memory-safe") {
            position := data.offset
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

/// @notice The scans of rows for what reaches a threshold, and for the first of the largest, against loops
/// over mantissas.
contract RowTailsTest is Test {
    RowTailsHarness private harness = new RowTailsHarness();

    function _check(
        bytes memory data,
        uint256 from,
        uint256 width,
        uint256 weightFrom,
        uint256 weightWidth,
        uint256 count,
        int256 least
    ) private view {
        (uint256 reached, int256 sum) = harness.fast(data, from, width, weightFrom, weightWidth, count, least);
        (uint256 slowReached, int256 slowSum) = harness.slow(data, from, width, weightFrom, weightWidth, count, least);
        assertEq(reached, slowReached, "count");
        assertEq(sum, slowSum, "sum");
    }

    /// @dev One of the mantissas or a neighbour of it, which tells "at least" from "more than"; or a number beside what
    /// the width can hold.
    function _threshold(bytes memory data, uint256 from, uint256 width, uint256 kind) private view returns (int256) {
        int256 half = int256(2 ** (8 * width - 1));
        if (kind % 8 == 0) return -half - 1;
        if (kind % 8 == 1) return half;
        if (kind % 8 == 2) return half - 1;
        return harness.valueAt(data, from, width) + int256(kind % 3) - 1;
    }

    function testFuzz_agreesWithTheLoop(bytes32 seed, uint256 count, uint8 from, uint8 weightFrom, uint256 kinds)
        public
        view
    {
        (uint256 width, uint256 weightWidth) = (1 << (kinds % 4), 1 << ((kinds >> 8) % 4));
        count = bound(count, 1, 300);
        bytes memory data = Noise.fill(count * 8 + 255, seed, (kinds >> 16) % Noise.KINDS);
        int256 least = _threshold(data, from, width, kinds >> 24);
        _check(data, from, width, weightFrom, weightWidth, count, least);
        assertEq(
            harness.firstMax(data, from, width, count), harness.slowFirstMax(data, from, width, count), "first maximum"
        );
    }

    /// @notice Rows that end in every place of a bitmap's words.
    function test_everyLengthAtAlignments() public view {
        bytes memory data = Noise.fill(300 * 8 + 32, "row", 0);
        for (uint256 count = 1; count <= 300; count += count < 40 || count > 250 ? 1 : 13) {
            uint256 width = 1 << (count % 4);
            uint256 weightWidth = 1 << (count / 4 % 4);
            _check(data, count % 32, width, count % 29, weightWidth, count, harness.valueAt(data, 7, width));
        }
    }

    /// @notice Lanes hold the longest row of any one weight, all of it and none; of every pair of widths.
    function test_longestRow() public view {
        for (uint256 kind = 1; kind < Noise.KINDS; ++kind) {
            bytes memory data = Noise.fill(4096 * 8, "long", kind);
            for (uint256 pair = kind; pair < 16; pair += 7) {
                (uint256 width, uint256 weightWidth) = (1 << (pair % 4), 1 << (pair / 4));
                _check(data, 0, width, 0, weightWidth, 4096, harness.valueAt(data, 0, width));
                _check(data, 0, width, 0, weightWidth, 4096, -(2 ** 70));
                _check(data, 0, width, 0, weightWidth, 4096, 2 ** 70);
            }
        }
    }

    /// @notice Of equal mantissas the first, wherever in a word it stands, and not what lies before the row.
    function test_firstOfEqual() public view {
        for (uint256 width = 1; width <= 8; width *= 2) {
            for (uint256 place = 0; place < 40; ++place) {
                bytes memory data = new bytes(50 * width);
                // Two before the row and the last of it are as large.
                (data[width - 1], data[2 * width - 1]) = (bytes1(0x7f), bytes1(0x7f));
                (data[(place + 3) * width - 1], data[43 * width - 1]) = (bytes1(0x7f), bytes1(0x7f));
                assertEq(harness.firstMax(data, 2 * width, width, 41), place);
            }
        }
    }

    function test_firstOfTheLongestRow() public view {
        for (uint256 width = 1; width <= 8; width *= 2) {
            for (uint256 kind = 2; kind < Noise.KINDS; ++kind) {
                bytes memory data = Noise.fill(4096 * width, "long", kind);
                assertEq(harness.firstMax(data, 0, width, 4096), harness.slowFirstMax(data, 0, width, 4096));
            }
        }
    }
}
