// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Claim, ClaimLink} from "../../types/Types.sol";

/// @dev What is hashed of a claim, in memory without gaps: the encodings of its struct hash (C-9) and of its record
/// (C-11) overlap. This is what keeps a commit cheap.
struct ClaimRecord {
    bytes32 typeHash;
    uint64 job;
    uint16 stage;
    uint16 replica;
    uint32 interval;
    bytes32 parentState;
    bytes32 newState;
    bytes32 io;
    uint256 committedAt;
}

/// @title Records of a lane's claims
/// @notice A record takes the place of one that is final: writing over costs 5,000 gas, writing where nothing was
/// 22,100 (EIP-2929). Places are rings of 16, 64, 256 and so on: a claim stands in its ring at its interval modulo the
/// ring's size. A lane moves on to the next ring, for good, when a claim that is still needed is in the way; what is in
/// the old one is found there as long as it is.
library Records {
    bytes32 private constant _CLAIM_TYPEHASH = keccak256(
        "Claim(uint64 job,uint16 stage,uint16 replica,uint32 interval,bytes32 parentState,bytes32 newState,bytes32 io)"
    );
    /// @dev Interval, in the upper bits of a record.
    uint256 private constant _TAG_SHIFT = 224;

    /// @notice The claim, committed at that time.
    function preimage(Claim calldata claim, uint256 committedAt) internal pure returns (ClaimRecord memory) {
        return ClaimRecord({
            typeHash: _CLAIM_TYPEHASH,
            job: claim.job,
            stage: claim.stage,
            replica: claim.replica,
            interval: claim.interval,
            parentState: claim.parentState,
            newState: claim.newState,
            io: claim.io,
            committedAt: committedAt
        });
    }

    /// @notice The struct hash of EIP-712 (C-9).
    function structHash(ClaimRecord memory p) internal pure returns (bytes32 hash_) {
        // SAFETY: reads the struct's first 8 of 9 words.
        assembly ("memory-safe") {
            hash_ := keccak256(p, 0x100)
        }
    }

    /// @notice The record (C-11).
    function hash(ClaimRecord memory p) internal pure returns (bytes32 record) {
        // SAFETY: reads the struct's last 8 of 9 words.
        assembly ("memory-safe") {
            record := keccak256(add(p, 0x20), 0x100)
        }
        return _tagged(record, p.interval);
    }

    /// @notice Record of the claim that a claim continues: of the interval before, ending where the child starts, and
    /// for the rest as `previous` says. Bits beyond a field's width give a record that nothing has. The child's
    /// interval is not 0.
    function parentHash(ClaimRecord memory child, ClaimLink calldata previous) internal pure returns (bytes32 record) {
        // SAFETY: uses memory beyond the free pointer and leaves it free. Words of a record: job, stage,
        // replica, interval (3), parentState (4), newState (5), io (6), committedAt (7); of a link: parentState,
        // io, committedAt.
        assembly ("memory-safe") {
            let p := mload(0x40)
            mcopy(p, add(child, 0x20), 0x80)
            mstore(add(p, 0x60), sub(mload(add(p, 0x60)), 1))
            mstore(add(p, 0x80), calldataload(previous))
            mstore(add(p, 0xa0), mload(add(child, 0xa0)))
            calldatacopy(add(p, 0xc0), add(previous, 0x20), 0x40)
            record := keccak256(p, 0x100)
        }
        // SAFETY: not 0.
        unchecked {
            return _tagged(record, child.interval - 1);
        }
    }

    function _tagged(bytes32 hash_, uint32 interval) private pure returns (bytes32) {
        return bytes32(uint256(interval) << _TAG_SHIFT | uint256(hash_) << 32 >> 32);
    }

    /// @notice The interval's record; zero if it has none, or a later one has taken its place.
    /// @param ring that the lane has come to
    function find(mapping(uint256 place => bytes32 record) storage records, uint32 ring, uint32 interval)
        internal
        view
        returns (bytes32 record)
    {
        // Which ring it is in is left out.
        // slither-disable-next-line unused-return
        (record,) = findFrom(records, ring, 0, interval);
    }

    /// @notice The same, and the ring that it is in, where that is known not to be before ring `least`: a claim stands
    /// in the ring of the one before it or in a later one, which spares a commit the reading of earlier ones. Of none
    /// the ring is `least`.
    /// @param ring that the lane has come to
    function findFrom(
        mapping(uint256 place => bytes32 record) storage records,
        uint32 ring,
        uint32 least,
        uint32 interval
    ) internal view returns (bytes32 record, uint32 found) {
        for (found = ring;;) {
            record = records[_place(found, interval)];
            // A record of interval 0 begins with as many zeros as an empty place.
            if (uint256(record) >> _TAG_SHIFT == interval && record != 0) return (record, found);
            if (found <= least) return (0, least);
            // SAFETY: not 0.
            unchecked {
                --found;
            }
        }
    }

    /// @notice Whether another record, final or not, is in the interval's place.
    /// @param ring that the lane has come to
    function isTaken(mapping(uint256 place => bytes32 record) storage records, uint32 ring, uint32 interval)
        internal
        view
        returns (bool)
    {
        return records[_place(ring, interval)] != 0;
    }

    /// @notice Puts a record in its place. Records before `finalized` are not needed any more.
    /// @param ring that the lane has come to
    /// @return the one that it has come to now
    function put(
        mapping(uint256 place => bytes32 record) storage records,
        uint32 ring,
        uint32 finalized,
        uint32 interval,
        bytes32 record
    ) internal returns (uint32) {
        // Ends: intervals have 32 bits, and in ring 14 each has a place of its own.
        while (true) {
            uint256 place = _place(ring, interval);
            // Of interval 0, which is final before any other, if it is empty.
            if (finalized == 0 ? records[place] == 0 : uint256(records[place]) >> _TAG_SHIFT < finalized) {
                records[place] = record;
                return ring;
            }
            ++ring;
        }
        return ring;
    }

    /// @dev Ring `n` has 16 · 4^n places.
    function _place(uint256 ring, uint256 interval) private pure returns (uint256) {
        // SAFETY: rings are at most 14.
        unchecked {
            return ring << 32 | (interval & ((1 << (4 + 2 * ring)) - 1));
        }
    }
}
