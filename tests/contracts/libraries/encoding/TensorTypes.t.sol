// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../../contracts/libraries/encoding/TensorTypes.sol";
import {TensorType} from "../../../../contracts/types/Types.sol";
import {Test} from "forge-std/Test.sol";

contract TensorTypesTest is Test {
    using TensorTypes for TensorType;

    function _word(uint8 bits, int16 exponent, uint8 rank, uint32[4] memory dims) private pure returns (TensorType) {
        return TensorType.wrap(
            uint256(bytes32(abi.encodePacked(bits, exponent, rank, uint96(0), dims[0], dims[1], dims[2], dims[3])))
        );
    }

    function testFuzz_unpacks(uint8 bits, int16 exponent, uint8 rank, uint32[4] memory dims) public pure {
        bits = uint8(bound(bits, 2, 64));
        exponent = int16(bound(exponent, -256, 256));
        rank = uint8(bound(rank, 1, 4));
        uint256 count = 1;
        for (uint256 i = 0; i < 4; ++i) {
            dims[i] = i < rank ? uint32(bound(dims[i], 1, 600)) : 0;
            if (i < rank) count *= dims[i];
        }
        TensorType t = _word(bits, exponent, rank, dims);
        assertEq(t.isValid(), count <= 2 ** 37);
        assertEq(t.bits(), bits);
        assertEq(t.exponent(), exponent);
        assertEq(t.rank(), rank);
        assertEq(t.elements(), count);
        assertEq(t.row(), dims[rank - 1]);
        assertEq(t.rows(), count / dims[rank - 1]);
        assertEq(t.limit(), int256(2 ** (uint256(bits) - 1)) - 1);
        uint256 width = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
        assertEq(t.byteLength(), count * width);
        assertEq(t.leafCount() * 256 >= t.byteLength() && (t.leafCount() - 1) * 256 < t.byteLength(), true);
        for (uint256 i = 0; i < 4; ++i) {
            assertEq(t.dim(i), dims[i]);
        }
    }

    function test_refusesEveryFieldOutOfRange() public pure {
        uint32[4] memory dims = [uint32(3), 5, 0, 0];
        assertTrue(_word(8, 7, 2, dims).isValid());
        assertFalse(_word(1, 7, 2, dims).isValid());
        assertFalse(_word(65, 7, 2, dims).isValid());
        assertFalse(_word(8, 257, 2, dims).isValid());
        assertFalse(_word(8, -257, 2, dims).isValid());
        assertFalse(_word(8, 7, 0, [uint32(0), 0, 0, 0]).isValid());
        assertFalse(_word(8, 7, 5, [uint32(1), 1, 1, 1]).isValid());
        // A rank that counts an empty dimension, or fails to count a dimension.
        assertFalse(_word(8, 7, 3, dims).isValid());
        assertFalse(_word(8, 7, 1, dims).isValid());
        assertFalse(_word(8, 7, 2, [uint32(0), 5, 0, 0]).isValid());
        assertFalse(_word(8, 7, 4, [type(uint32).max, type(uint32).max, type(uint32).max, type(uint32).max]).isValid());
        assertTrue(_word(8, 7, 2, [uint32(2 ** 31), 64, 0, 0]).isValid());
        assertFalse(_word(8, 7, 2, [uint32(2 ** 31), 65, 0, 0]).isValid());
    }

    /// @notice No bit of the gap may be set.
    function testFuzz_refusesStrayBits(uint256 bit) public pure {
        TensorType t = _word(8, 7, 2, [uint32(3), 5, 0, 0]);
        bit = bound(bit, 128, 223);
        assertFalse(TensorType.wrap(TensorType.unwrap(t) | (1 << bit)).isValid());
    }

    function test_comparisons() public pure {
        TensorType t = _word(8, -7, 2, [uint32(3), 5, 0, 0]);
        assertTrue(t.samePrecision(_word(8, -7, 1, [uint32(4), 0, 0, 0])));
        assertFalse(t.samePrecision(_word(9, -7, 2, [uint32(3), 5, 0, 0])));
        assertFalse(t.samePrecision(_word(8, -6, 2, [uint32(3), 5, 0, 0])));
        assertTrue(t.sameShape(_word(64, 256, 2, [uint32(3), 5, 0, 0])));
        assertFalse(t.sameShape(_word(8, -7, 2, [uint32(5), 3, 0, 0])));
        assertFalse(t.sameShape(_word(8, -7, 3, [uint32(3), 5, 1, 0])));
    }
}
