// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../../interfaces/ICheckpoints.sol";
import {LaneId, Lanes} from "../../libraries/claims/Lanes.sol";
import {ClaimRecord, Records} from "../../libraries/claims/Records.sol";
import {Claim, ClaimLink} from "../../types/Types.sol";
import {CheckpointRecords} from "./CheckpointRecords.sol";

/// @title CheckpointSeals
/// @notice Claims of replicas, which are sealed before any of them is shown, and what comes of their differences.
// What is compared is numbers of replicas and intervals, records and times told, not balances: nobody can nudge them.
// slither-disable-start incorrect-equality
abstract contract CheckpointSeals is CheckpointRecords {
    using Records for ClaimRecord;
    using Records for mapping(uint256 place => bytes32 record);

    uint32 internal immutable _SEAL_WINDOW;

    mapping(LaneId lane => mapping(uint32 interval => bytes32 sealedClaim)) private _seals;
    /// @dev By the stage's first lane.
    mapping(LaneId stage => mapping(uint32 interval => Round round)) private _rounds;

    constructor(uint32 sealWindow) {
        _SEAL_WINDOW = sealWindow;
    }

    /// @inheritdoc ICheckpoints
    function seal(uint64 job, uint16 stage, uint16 replica, uint32 interval, bytes32 sealedClaim) external {
        Clock memory clock = _clocks[job];
        // INVARIANT: where nobody could copy it, a claim is made in one step.
        if (clock.replicas == 1) revert JobIsNotReplicated(job);
        // INVARIANT: claims are made while the job runs.
        if (clock.replicas == 0) revert JobNotOpen(job);
        if (block.timestamp > clock.deadline) revert DeadlinePassed(clock.deadline);
        LaneId lane = Lanes.id(job, stage, replica);
        _checkLane(lane, interval, clock.intervals);

        mapping(uint32 interval => bytes32 sealedClaim) storage seals = _seals[lane];
        mapping(uint32 interval => Round round) storage rounds = _rounds[Lanes.id(job, stage, 0)];
        // INVARIANT: every seal counts once: zero would be none.
        if (sealedClaim == 0) revert WrongSeal(interval);
        if (seals[interval] != 0) revert AlreadySealed(interval);
        // INVARIANT: no interval is left out (P-11), and who is too late for one is for those after it (P-25).
        if (interval > 0 && seals[interval - 1] == 0) revert NotTheNextClaim(interval);
        // INVARIANT: nothing is sealed that could be copied (P-24).
        if (block.timestamp >= _sealsEnd(rounds, interval)) revert SealingOver(interval);

        seals[interval] = sealedClaim;
        Round storage round = rounds[interval];
        if (round.sealedAt == 0) round.sealedAt = uint40(block.timestamp);
        ++round.seals;
        emit ClaimSealed(job, stage, replica, interval, sealedClaim);
    }

    /// @inheritdoc ICheckpoints
    function reveal(Claim calldata claim, ClaimLink calldata previous, bytes32 salt) external {
        ClaimRecord memory p = Records.preimage(claim, block.timestamp);
        Clock memory clock = _clocks[p.job];
        LaneId lane = Lanes.id(p.job, p.stage, p.replica);
        Lane memory state = _checkLane(lane, p.interval, clock.intervals);
        bytes32 id = _hashTypedDataV4(p.structHash());
        // INVARIANT: what is revealed is what was sealed, before anybody's claim could be seen (P-24).
        if (_seals[lane][p.interval] != keccak256(abi.encode(id, salt))) revert WrongSeal(p.interval);
        mapping(uint32 interval => Round round) storage rounds = _rounds[Lanes.id(p.job, p.stage, 0)];
        _checkSealsAreIn(clock, rounds, p.interval);

        _record(lane, state, clock.stages, p, previous);
        _emitCommitted(id, p);
        _compare(rounds[p.interval], p, id);
    }

    /// @dev A round takes no more seals: nobody is left who can give one, or its time is over.
    function _checkSealsAreIn(
        Clock memory clock,
        mapping(uint32 interval => Round round) storage rounds,
        uint32 interval
    ) private view {
        if (clock.replicas == 0) {
            // INVARIANT: a closed job ends (P-10).
            if (block.timestamp > clock.deadline) revert DeadlinePassed(clock.deadline);
            return;
        }
        if (block.timestamp > clock.deadline || block.timestamp >= _sealsEnd(rounds, interval)) return;
        // Only who sealed the interval before can seal this one; the caller has revealed that, so its count is final.
        uint256 all = interval == 0 ? clock.replicas : rounds[interval - 1].seals;
        // INVARIANT: nobody's claim is seen by whoever can still seal its own (P-24).
        if (rounds[interval].seals < all) revert SealingOpen(interval);
    }

    /// @dev From when on a round takes no more seals, even if some are missing; never, while it has none or the one
    /// before is not revealed.
    function _sealsEnd(mapping(uint32 interval => Round round) storage rounds, uint32 interval)
        private
        view
        returns (uint256)
    {
        uint256 from = rounds[interval].sealedAt;
        uint256 before = interval == 0 ? from : rounds[interval - 1].revealedAt;
        if (from == 0 || before == 0) return type(uint256).max;
        return (from > before ? from : before) + _SEAL_WINDOW;
    }

    /// @dev Replicas compute the same from the same: who reveals another outcome than the first one, or the first, is
    /// wrong (P-26).
    function _compare(Round storage round, ClaimRecord memory p, bytes32 id) private {
        bytes32 outcome = keccak256(abi.encode(p.parentState, p.newState, p.io));
        if (round.revealedAt == 0) {
            (round.revealedAt, round.outcome) = (uint40(block.timestamp), outcome);
        } else if (round.outcome != outcome) {
            round.differ = true;
            emit ReplicasDiffer(id, p.job, p.stage, p.interval);
        }
    }

    /// @inheritdoc ICheckpoints
    function windowOf(uint64 job, uint16 stage, uint32 interval) external view returns (uint32) {
        return _windowOf(_clocks[job], job, stage, interval);
    }

    function _windowOf(Clock memory clock, uint64 job, uint16 stage, uint32 interval)
        internal
        view
        returns (uint32 window)
    {
        window = clock.window;
        if (clock.replicas != 1 && _rounds[Lanes.id(job, stage, 0)][interval].differ) window *= 2;
    }

    /// @inheritdoc ICheckpoints
    function sealOf(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bytes32) {
        return _seals[Lanes.id(job, stage, replica)][interval];
    }

    /// @inheritdoc ICheckpoints
    function roundOf(uint64 job, uint16 stage, uint32 interval) external view returns (Round memory) {
        return _rounds[Lanes.id(job, stage, 0)][interval];
    }

    /// @inheritdoc ICheckpoints
    function hasPending(uint64 job, uint16 stage, uint16 replica) external view returns (bool) {
        LaneId lane = Lanes.id(job, stage, replica);
        Lane memory state = _lanes[lane];
        uint32 next = state.finalized;
        if (next >= state.voidFrom) return false;
        return _records[lane].find(state.ring, next) != 0
            || (_seals[lane][next] != 0 && (_clocks[job].replicas != 0 || block.timestamp <= _clocks[job].deadline));
    }

    /// @inheritdoc ICheckpoints
    function isTooLate(uint64 job, uint16 stage, uint16 replica) external view returns (bool) {
        LaneId lane = Lanes.id(job, stage, replica);
        uint32 next = _lanes[lane].finalized;
        if (_recordOf(lane, next) != 0 || _seals[lane][next] != 0) return false;
        return block.timestamp >= _sealsEnd(_rounds[Lanes.id(job, stage, 0)], next);
    }
}
// slither-disable-end incorrect-equality
