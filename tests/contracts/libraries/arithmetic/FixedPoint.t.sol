// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {FixedPoint} from "../../../../contracts/libraries/arithmetic/FixedPoint.sol";
import {Philox} from "../../../../contracts/libraries/arithmetic/Philox.sol";
import {Slow} from "../../verifier/Slow.sol";
import {Test} from "forge-std/Test.sol";

contract FixedPointTest is Test {
    function testFuzz_rescale(int256 x, int256 shift, uint256 bits, uint256 size) public pure {
        shift = bound(shift, -63, 63);
        bits = bound(bits, 2, 64);
        // Values of every size below 2^190; many near the output's limits and near ties.
        x >>= bound(size, 66, 255);
        assertEq(FixedPoint.rescaleHalfEven(x, shift, bits), Slow.rescale(x, shift, bits));
    }

    function testFuzz_tiesGoToEven(int64 y, int256 shift) public pure {
        shift = bound(shift, 1, 63);
        int256 tie = int256(y) * int256(1 << uint256(shift)) + int256(1 << uint256(shift - 1));
        int256 even = int256(y) % 2 == 0 ? int256(y) : int256(y) + 1;
        assertEq(FixedPoint.rescaleHalfEven(tie, shift, 64), FixedPoint.clamp(even, 64));
        assertEq(FixedPoint.rescaleHalfEven(tie + 1, shift, 64), FixedPoint.clamp(int256(y) + 1, 64));
    }

    function test_rescaleByHand() public pure {
        assertEq(FixedPoint.rescaleHalfEven(5, 1, 8), 2);
        assertEq(FixedPoint.rescaleHalfEven(7, 1, 8), 4);
        assertEq(FixedPoint.rescaleHalfEven(-5, 1, 8), -2);
        assertEq(FixedPoint.rescaleHalfEven(-7, 1, 8), -4);
        assertEq(FixedPoint.rescaleHalfEven(-1, 63, 8), 0);
        assertEq(FixedPoint.rescaleHalfEven(1000, 0, 8), 127);
        assertEq(FixedPoint.rescaleHalfEven(-1000, 0, 8), -127);
        assertEq(FixedPoint.rescaleHalfEven(-1, -63, 64), -(2 ** 63 - 1));
    }

    function testFuzz_div(int256 a, int256 b, uint256 size) public pure {
        a >>= bound(size, 3, 250);
        b = bound(b, 1, 2 ** 64);
        assertEq(FixedPoint.divHalfUp(a, b), Slow.div(a, b));
    }

    function testFuzz_divFloor(int256 a, int256 b, uint256 size) public pure {
        a >>= bound(size, 0, 250);
        b = bound(b, 1, 2 ** 64);
        assertEq(FixedPoint.divFloor(a, b), Slow.floorDiv(a, b));
    }

    function test_divFloorByHand() public pure {
        assertEq(FixedPoint.divFloor(7, 2), 3);
        assertEq(FixedPoint.divFloor(-7, 2), -4);
        assertEq(FixedPoint.divFloor(-8, 2), -4);
        assertEq(FixedPoint.divFloor(-1, 3), -1);
    }

    function test_divByHand() public pure {
        assertEq(FixedPoint.divHalfUp(7, 2), 4);
        assertEq(FixedPoint.divHalfUp(-7, 2), -3);
        assertEq(FixedPoint.divHalfUp(-8, 3), -3);
        assertEq(FixedPoint.divHalfUp(-1, 3), 0);
    }

    /// @notice The vectors that come with Random123 (`kat_vectors`, philox4x32 10).
    function test_philoxKnownAnswers() public pure {
        _block(0, 0, [uint256(0), 0, 0, 0], [uint256(0x6627e8d5), 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        uint256 ones = type(uint32).max;
        _block(ones, ones, [ones, ones, ones, ones], [uint256(0x408f276d), 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        _block(
            0xa4093822,
            0x299f31d0,
            [uint256(0x243f6a88), 0x85a308d3, 0x13198a2e, 0x03707344],
            [uint256(0xd16cfe09), 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }

    function _block(uint256 k0, uint256 k1, uint256[4] memory c, uint256[4] memory expected) private pure {
        (uint256 x0, uint256 x1, uint256 x2, uint256 x3) = Philox.block10(k0, k1, c[0], c[1], c[2], c[3]);
        assertEq(abi.encode(x0, x1, x2, x3), abi.encode(expected));
    }

    function testFuzz_draw(bytes32 key, uint32 row, uint32 step) public pure {
        assertEq(Philox.draw(key, row, step, 0), Slow.philox(key, row, step));
    }

    /// @notice The key is the first eight bytes, little-endian: here the words of the third known answer.
    function test_drawReadsTheKeyLittleEndian() public pure {
        bytes32 key = hex"223809a4d0319f29ffffffffffffffffffffffffffffffffffffffffffffffff";
        (uint256 x0,,,) = Philox.block10(0xa4093822, 0x299f31d0, 1, 2, 3, 0);
        assertEq(Philox.draw(key, 1, 2, 3), x0);
    }

    /// @notice Four elements share a block, a word each; beyond 2^34 elements the last word goes on.
    function test_drawElementTakesEachWordOfABlock() public pure {
        bytes32 key = hex"223809a4d0319f29ffffffffffffffffffffffffffffffffffffffffffffffff";
        (uint256 first, uint256 second, uint256 third, uint256 fourth) =
            Philox.block10(0xa4093822, 0x299f31d0, 11, 7, 5, 3 + 2);
        uint256 element = 2 * 2 ** 34 + 4 * 11;
        assertEq(Philox.drawElement(key, element, 7, 5, 3), first);
        assertEq(Philox.drawElement(key, element + 1, 7, 5, 3), second);
        assertEq(Philox.drawElement(key, element + 2, 7, 5, 3), third);
        assertEq(Philox.drawElement(key, element + 3, 7, 5, 3), fourth);
    }
}
