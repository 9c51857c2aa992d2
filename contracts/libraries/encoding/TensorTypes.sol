// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {TensorType} from "../../types/Types.sol";

/// @title Reading of packed tensor types
/// @notice Layout in `Types.sol`; the same rules as `agents/types/src/tensor_type.rs`. All getters but `isValid` assume
/// a valid word: check once where the word enters.
library TensorTypes {
    /// @dev Keeps every byte offset below 2^40 and every leaf index below 2^32.
    uint256 internal constant MAX_ELEMENTS = 1 << 37;
    int256 internal constant MAX_EXPONENT = 256;
    uint256 internal constant MAX_RANK = 4;
    /// @dev Bytes of a leaf of a tensor's tree (C-1).
    uint256 internal constant LEAF_BYTES = 256;

    /// @notice Whether the word is one that a valid type encodes to: no other bit pattern passes.
    function isValid(TensorType t) internal pure returns (bool) {
        uint256 word = TensorType.unwrap(t);
        uint256 used = rank(t);
        int256 e = exponent(t);
        if (bits(t) < 2 || bits(t) > 64 || e < -MAX_EXPONENT || e > MAX_EXPONENT) return false;
        if (used == 0 || used > MAX_RANK || (word >> 128) & type(uint96).max != 0) return false;
        // Dimensions that the rank does not count are the word's last.
        if (word << (128 + 32 * used) != 0) return false;
        // A dimension of length zero makes the product zero.
        uint256 count = elements(t);
        return count != 0 && count <= MAX_ELEMENTS;
    }

    /// @notice Bits of the mantissas, sign included.
    function bits(TensorType t) internal pure returns (uint256) {
        return TensorType.unwrap(t) >> 248;
    }

    /// @notice Exponent `e`: values are mantissas times `2^−e`.
    function exponent(TensorType t) internal pure returns (int256) {
        // SAFETY: the truncation to 16 bits selects the field; int16 gives it its sign.
        return int256(int16(uint16(TensorType.unwrap(t) >> 232)));
    }

    function rank(TensorType t) internal pure returns (uint256) {
        return (TensorType.unwrap(t) >> 224) & 0xff;
    }

    /// @notice Length of dimension `axis` (0 is the outermost); 0 where the rank has no such dimension. `axis < 4`.
    function dim(TensorType t, uint256 axis) internal pure returns (uint256) {
        // SAFETY: axis < 4.
        unchecked {
            return (TensorType.unwrap(t) >> (96 - 32 * axis)) & type(uint32).max;
        }
    }

    /// @notice Number of elements.
    function elements(TensorType t) internal pure returns (uint256 count) {
        // SAFETY: at most four factors below 2^32, whatever the word.
        unchecked {
            uint256 used = rank(t);
            count = dim(t, 0);
            for (uint256 axis = 1; axis < used && axis < MAX_RANK; ++axis) {
                count *= dim(t, axis);
            }
        }
    }

    /// @notice Length of a row: the innermost dimension.
    function row(TensorType t) internal pure returns (uint256) {
        // SAFETY: a valid rank is 1 to 4.
        unchecked {
            return dim(t, rank(t) - 1);
        }
    }

    /// @notice Number of rows: elements divided by the row length.
    function rows(TensorType t) internal pure returns (uint256) {
        return elements(t) / row(t);
    }

    /// @notice Bytes of an element in storage: 1, 2, 4 or 8.
    function width(TensorType t) internal pure returns (uint256) {
        uint256 b = bits(t);
        if (b <= 8) return 1;
        if (b <= 16) return 2;
        return b <= 32 ? 4 : 8;
    }

    /// @notice Largest mantissa, `2^(bits − 1) − 1`.
    function limit(TensorType t) internal pure returns (int256) {
        // SAFETY: bits <= 64, so the value is below 2^63.
        return int256((1 << (bits(t) - 1)) - 1);
    }

    /// @notice Bytes of the canonical encoding without its padding.
    function byteLength(TensorType t) internal pure returns (uint256) {
        return elements(t) * width(t);
    }

    /// @notice Leaves of the tensor's tree (C-2).
    function leafCount(TensorType t) internal pure returns (uint256) {
        return (byteLength(t) + LEAF_BYTES - 1) / LEAF_BYTES;
    }

    /// @notice Whether bits and exponent agree.
    function samePrecision(TensorType s, TensorType t) internal pure returns (bool) {
        return TensorType.unwrap(s) >> 232 == TensorType.unwrap(t) >> 232;
    }

    /// @notice Whether rank and dimensions agree.
    function sameShape(TensorType s, TensorType t) internal pure returns (bool) {
        return TensorType.unwrap(s) << 24 == TensorType.unwrap(t) << 24;
    }
}
