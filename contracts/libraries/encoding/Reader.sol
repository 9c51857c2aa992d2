// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IDisputes} from "../../interfaces/IDisputes.sol";
import {Slice} from "../../types/ElementProof.sol";

/// @dev What is left to read: from where in the calldata, and up to where.
struct Cursor {
    uint256 next;
    uint256 end;
}

/// @title Calldata without gaps, read from front to back
/// @notice Numbers are big-endian. Where less is left than is asked for, `MalformedProof` says so.
library Reader {
    function over(bytes calldata data) internal pure returns (Cursor memory cursor) {
        uint256 start;
        // SAFETY: the offset of a calldata slice.
        assembly ("memory-safe") {
            start := data.offset
        }
        (cursor.next, cursor.end) = (start, start + data.length);
    }

    function u8(Cursor memory cursor) internal pure returns (uint8) {
        return uint8(bytes1(_next(cursor, 1)));
    }

    function u16(Cursor memory cursor) internal pure returns (uint16) {
        return uint16(bytes2(_next(cursor, 2)));
    }

    function u32(Cursor memory cursor) internal pure returns (uint32) {
        return uint32(bytes4(_next(cursor, 4)));
    }

    function u64(Cursor memory cursor) internal pure returns (uint64) {
        return uint64(bytes8(_next(cursor, 8)));
    }

    function account(Cursor memory cursor) internal pure returns (address) {
        return address(bytes20(_next(cursor, 20)));
    }

    function word(Cursor memory cursor) internal pure returns (bytes32) {
        return _next(cursor, 32);
    }

    /// @notice So many bytes, fewer than 2^64.
    function slice(Cursor memory cursor, uint256 count) internal pure returns (Slice) {
        return Slice.wrap(_skip(cursor, count) << 128 | count);
    }

    /// @notice Words after their number, of one byte.
    function words(Cursor memory cursor) internal pure returns (Slice) {
        return slice(cursor, 32 * uint256(u8(cursor)));
    }

    /// @notice Bytes that are left.
    function left(Cursor memory cursor) internal pure returns (uint256) {
        return cursor.end - cursor.next;
    }

    // Offset and length are two words of what is one variable.
    // slither-disable-next-line write-after-write
    function toBytes(Slice s) internal pure returns (bytes calldata data) {
        // SAFETY: within the calldata, as `slice` has checked.
        assembly ("memory-safe") {
            data.offset := shr(128, s)
            data.length := and(s, 0xffffffffffffffffffffffffffffffff)
        }
    }

    /// @notice The words of a slice whose length is a multiple of 32.
    function toWords(Slice s) internal pure returns (bytes32[] calldata data) {
        // SAFETY: within the calldata, as `slice` has checked.
        assembly ("memory-safe") {
            data.offset := shr(128, s)
            data.length := shr(5, and(s, 0xffffffffffffffffffffffffffffffff))
        }
    }

    /// @dev The next `count` bytes, at most 32, and whatever follows them.
    function _next(Cursor memory cursor, uint256 count) private pure returns (bytes32 value) {
        uint256 from = _skip(cursor, count);
        // SAFETY: reads calldata.
        assembly ("memory-safe") {
            value := calldataload(from)
        }
    }

    function _skip(Cursor memory cursor, uint256 count) private pure returns (uint256 from) {
        from = cursor.next;
        // SAFETY: the calldata and what is read of it are far smaller than 2^255 bytes.
        unchecked {
            uint256 next = from + count;
            // INVARIANT: what is read is there.
            if (next > cursor.end) revert IDisputes.MalformedProof();
            cursor.next = next;
        }
    }
}
