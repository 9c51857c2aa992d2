// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorTypes} from "../../../contracts/libraries/encoding/TensorTypes.sol";
import {TensorType} from "../../../contracts/types/Types.sol";
import {Test} from "forge-std/Test.sol";

/// @notice Every word is either the one encoding of a valid type, and read as that type, or refused.
contract TensorTypesSymbolic is Test {
    using TensorTypes for TensorType;

    function _pack(uint256 bits, int256 exponent, uint256 rank, uint256[4] memory dims) private pure returns (uint256) {
        return bits << 248 | uint256(uint16(int16(exponent))) << 232 | rank << 224 | dims[0] << 96 | dims[1] << 64
            | dims[2] << 32 | dims[3];
    }

    function _dims(TensorType t) private pure returns (uint256[4] memory) {
        return [t.dim(0), t.dim(1), t.dim(2), t.dim(3)];
    }

    /// @notice What passes is in bounds, has no bit that no field accounts for, and no length where it has
    /// no dimension.
    function check_validIsCanonical(uint256 word) public pure {
        TensorType t = TensorType.wrap(word);
        vm.assume(t.isValid());
        assert(t.bits() >= 2 && t.bits() <= 64);
        assert(t.exponent() >= -256 && t.exponent() <= 256);
        assert(t.rank() >= 1 && t.rank() <= 4);
        assert(word == _pack(t.bits(), t.exponent(), t.rank(), _dims(t)));
        for (uint256 axis = 0; axis < 4; ++axis) {
            assert((t.dim(axis) != 0) == (axis < t.rank()));
        }
    }

    /// @notice Every field is read back as it was written.
    function check_readsWhatWasPacked(uint8 bits, int16 exponent, uint8 rank, uint32[4] memory lengths) public pure {
        vm.assume(bits >= 2 && bits <= 64 && rank >= 1 && rank <= 4);
        uint256[4] memory dims = [uint256(lengths[0]), lengths[1], lengths[2], lengths[3]];
        TensorType t = TensorType.wrap(_pack(bits, exponent, rank, dims));
        assert(t.bits() == bits && t.exponent() == exponent && t.rank() == rank);
        for (uint256 axis = 0; axis < 4; ++axis) {
            assert(t.dim(axis) == dims[axis]);
            if (axis + 1 == rank) assert(t.row() == dims[axis]);
        }
        assert(t.limit() == int256((uint256(1) << (bits - 1)) - 1));
    }

    function testFuzz_readsWhatWasPacked(uint8 bits, int16 exponent, uint8 rank, uint32[4] memory lengths) public pure {
        check_readsWhatWasPacked(uint8(bound(bits, 2, 64)), exponent, 1 + rank % 4, lengths);
    }

    /// @notice Two types have the same precision and the same shape where the fields agree, and only there.
    function check_comparisons(uint256 word, uint256 other) public pure {
        TensorType s = TensorType.wrap(word);
        TensorType t = TensorType.wrap(other);
        assert(s.samePrecision(t) == (s.bits() == t.bits() && s.exponent() == t.exponent()));
        assert(
            (s.samePrecision(t) && s.sameShape(t) && (word ^ other) >> 224 == 0) == (word == other)
                || s.rank() != t.rank()
        );
    }
}
