// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

import {ICheckpoints} from "../../interfaces/ICheckpoints.sol";
import {LaneId, Lanes} from "../../libraries/claims/Lanes.sol";
import {ClaimRecord, Records} from "../../libraries/claims/Records.sol";
import {Places} from "../../libraries/proofs/Places.sol";
import {Claim, ClaimLink} from "../../types/Types.sol";

/// @title CheckpointRecords
/// @notice What is on record of jobs, of their lanes and of the lanes' claims; how the next claim is recorded, and how
/// records are read.
// What is compared is intervals and records, not balances: nobody can nudge them.
// slither-disable-start incorrect-equality
abstract contract CheckpointRecords is ICheckpoints, EIP712 {
    using Records for ClaimRecord;
    using Records for mapping(uint256 place => bytes32 record);

    /// @dev What a claim is checked against, in one slot, so that a commit need not ask Jobs.
    ///
    /// | job | `replicas` | `deadline` |
    /// |---|---|---|
    /// | not started | 0 | 0 |
    /// | of one replica: runs, was closed | 1 | the job's, 0 |
    /// | of several: runs | so many | the job's |
    /// | of several: was closed | 0 | until when what was sealed is revealed |
    struct Clock {
        uint40 deadline;
        uint32 window;
        uint32 intervals;
        uint16 replicas;
        uint16 stages;
    }

    /// @dev `LaneState`, and the ring that the lane's claims are recorded in now, in one slot.
    struct Lane {
        address worker;
        uint32 finalized;
        uint32 voidFrom;
        uint32 ring;
    }

    mapping(uint64 job => Clock clock) internal _clocks;
    mapping(uint64 job => mapping(uint16 stage => bytes32 root)) internal _initialStates;
    mapping(LaneId lane => Lane state) internal _lanes;
    mapping(LaneId lane => mapping(uint256 place => bytes32 record)) internal _records;

    constructor() EIP712("Tensorlink", "1") {}

    /// @dev The caller's lane, which can make a claim for the interval.
    function _checkLane(LaneId lane, uint32 interval, uint32 intervals) internal view returns (Lane memory state) {
        state = _lanes[lane];
        // INVARIANT: nobody claims in another's name (P-11).
        if (msg.sender != state.worker) revert NotWorker(msg.sender);
        if (interval >= intervals) revert IntervalOutOfRange(interval);
        // INVARIANT: nothing is built on a convicted claim (P-13).
        if (interval >= state.voidFrom) revert ClaimIsVoid();
    }

    /// @dev Records the lane's next claim.
    function _record(LaneId lane, Lane memory state, uint16 stages, ClaimRecord memory p, ClaimLink calldata previous)
        internal
    {
        mapping(uint256 place => bytes32 record) storage records = _records[lane];
        _checkNext(records, state, p, previous);

        bool taken = records.isTaken(state.ring, p.interval);
        uint32 done = taken ? _finalBeside(p, state.finalized, stages) : state.finalized;
        uint32 ring = records.put(state.ring, done, p.interval, p.hash());
        if (ring != state.ring) _lanes[lane].ring = ring;
    }

    function _checkNext(
        mapping(uint256 place => bytes32 record) storage records,
        Lane memory state,
        ClaimRecord memory p,
        ClaimLink calldata previous
    ) private view {
        bool first = p.interval == 0;
        (bytes32 parent, uint32 least) = first ? (bytes32(0), 0) : records.findFrom(state.ring, 0, p.interval - 1);
        // Which ring it would be in is left out.
        // slither-disable-next-line unused-return
        (bytes32 there,) = records.findFrom(state.ring, least, p.interval);
        // INVARIANT: one claim per interval (P-11).
        if (p.interval < state.finalized || there != 0) revert AlreadyCommitted(p.interval);
        if (first) {
            // INVARIANT: the first claim starts from the registered state (P-11).
            if (p.parentState != _initialStates[p.job][p.stage]) revert WrongParentState();
        } else {
            // INVARIANT: no interval is left out (P-11).
            if (parent == 0) revert NotTheNextClaim(p.interval);
            // INVARIANT: a claim starts where the one before ended (P-11).
            if (parent != p.parentHash(previous)) revert WrongParentState();
        }
    }

    /// @dev Up to which interval the lane's claims are final, and its neighbours' too: who is challenged over what it
    /// was sent proves by the sender's claim that it was sent something else (P-28).
    function _finalBeside(ClaimRecord memory p, uint32 finalized, uint16 stages) private view returns (uint32 least) {
        least = finalized;
        for (uint256 i = 0; i < 2; ++i) {
            uint16 stage = Places.neighbourOf(p.stage, i == 0);
            // Beyond the ends there is nobody.
            if (stage >= stages) continue;
            uint32 beside = _lanes[Lanes.id(p.job, stage, p.replica)].finalized;
            if (beside < least) least = beside;
        }
    }

    /// @dev `emit ClaimCommitted(id, p.job, claim)`: the claim's encoding is at hand.
    function _emitCommitted(bytes32 id, ClaimRecord memory p) internal {
        bytes32 signature = ClaimCommitted.selector;
        // SAFETY: reads the struct's words 1 to 7: the claim, the first of them the job.
        assembly ("memory-safe") {
            let claim := add(p, 0x20)
            log3(claim, 0xe0, signature, id, mload(claim))
        }
    }

    /// @inheritdoc ICheckpoints
    function requireLive(Claim calldata claim, uint64 committedAt) external view returns (bytes32) {
        Lane memory state = _lanes[Lanes.id(claim.job, claim.stage, claim.replica)];
        ClaimRecord memory p = Records.preimage(claim, committedAt);
        // INVARIANT: a proof is about what the chain has recorded (P-14).
        if (!_isRecorded(p)) revert UnknownClaim();
        if (p.interval < state.finalized) revert ClaimIsFinal();
        if (p.interval >= state.voidFrom) revert ClaimIsVoid();
        return _hashTypedDataV4(p.structHash());
    }

    /// @inheritdoc ICheckpoints
    function claimId(Claim calldata claim) public view returns (bytes32) {
        return _hashTypedDataV4(Records.preimage(claim, 0).structHash());
    }

    /// @inheritdoc ICheckpoints
    function isRecorded(Claim calldata claim, uint64 committedAt) external view returns (bool) {
        return _isRecorded(Records.preimage(claim, committedAt));
    }

    function _isRecorded(ClaimRecord memory p) internal view returns (bool) {
        return _recordOf(Lanes.id(p.job, p.stage, p.replica), p.interval) == p.hash();
    }

    function _recordOf(LaneId lane, uint32 interval) internal view returns (bytes32) {
        return _records[lane].find(_lanes[lane].ring, interval);
    }

    /// @inheritdoc ICheckpoints
    function recordOf(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bytes32) {
        return _recordOf(Lanes.id(job, stage, replica), interval);
    }

    /// @inheritdoc ICheckpoints
    function laneOf(uint64 job, uint16 stage, uint16 replica) external view returns (LaneState memory) {
        Lane storage state = _lanes[Lanes.id(job, stage, replica)];
        return LaneState({worker: state.worker, finalized: state.finalized, voidFrom: state.voidFrom});
    }
}
// slither-disable-end incorrect-equality
