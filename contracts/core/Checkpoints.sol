// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {ICustody} from "../interfaces/ICustody.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {LaneId, Lanes} from "../libraries/claims/Lanes.sol";
import {ClaimRecord, Records} from "../libraries/claims/Records.sol";
import {Places} from "../libraries/proofs/Places.sol";
import {Holder} from "../types/Custody.sol";
import {Claim, ClaimLink} from "../types/Types.sol";

/// @title Checkpoints
/// @notice See `ICheckpoints`.
// What is compared is numbers of replicas and intervals, records and times told, not balances: nobody can nudge them.
// slither-disable-start incorrect-equality
contract Checkpoints is ICheckpoints, EIP712 {
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

    /// @dev `LaneState.voidFrom` of a lane that was never convicted.
    uint32 private constant _NEVER = type(uint32).max;

    /// @notice Who opens and closes jobs, and is told what to pay.
    IJobs public immutable JOBS;
    /// @notice Who voids claims.
    address public immutable DISPUTES;
    /// @notice Who holds back claims.
    address public immutable CHALLENGES;
    /// @notice Who knows second holders, and holds back claims, too.
    ICustody public immutable CUSTODY;

    uint32 private immutable _SEAL_WINDOW;

    mapping(uint64 job => Clock clock) private _clocks;
    mapping(uint64 job => mapping(uint16 stage => bytes32 root)) private _initialStates;
    mapping(LaneId lane => Lane state) private _lanes;
    mapping(LaneId lane => mapping(uint256 place => bytes32 record)) private _records;
    mapping(LaneId lane => mapping(uint32 interval => bytes32 sealedClaim)) private _seals;
    /// @dev By the stage's first lane.
    mapping(LaneId stage => mapping(uint32 interval => Round round)) private _rounds;
    mapping(bytes32 claimId => uint256 count) private _holds;

    // A zero address would only make a deployment that does nothing; `script/Deployer.sol` gives real ones.
    // slither-disable-next-line missing-zero-check
    constructor(IJobs jobs, address disputes, address challenges, ICustody custody, uint32 sealWindow)
        EIP712("Tensorlink", "1")
    {
        JOBS = jobs;
        DISPUTES = disputes;
        CHALLENGES = challenges;
        CUSTODY = custody;
        _SEAL_WINDOW = sealWindow;
    }

    /// @inheritdoc ICheckpoints
    function commit(Claim calldata claim, ClaimLink calldata previous) external {
        ClaimRecord memory p = Records.preimage(claim, block.timestamp);
        Clock memory clock = _clocks[p.job];
        if (clock.replicas != 1 || block.timestamp > clock.deadline) _refuse(p.job, clock);

        LaneId lane = Lanes.id(p.job, p.stage, p.replica);
        _record(lane, _checkLane(lane, p.interval, clock.intervals), clock.stages, p, previous);
        _emitCommitted(_hashTypedDataV4(p.structHash()), p);
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

    /// @dev Why nothing is committed.
    function _refuse(uint64 job, Clock memory clock) private pure {
        // INVARIANT: no replica sees another's claim before it has made its own (P-24).
        if (clock.replicas > 1) revert JobIsReplicated(job);
        // INVARIANT: claims are made while the job runs.
        if (clock.replicas == 0 || clock.deadline == 0) revert JobNotOpen(job);
        revert DeadlinePassed(clock.deadline);
    }

    /// @dev The caller's lane, which can make a claim for the interval.
    function _checkLane(LaneId lane, uint32 interval, uint32 intervals) private view returns (Lane memory state) {
        state = _lanes[lane];
        // INVARIANT: nobody claims in another's name (P-11).
        if (msg.sender != state.worker) revert NotWorker(msg.sender);
        if (interval >= intervals) revert IntervalOutOfRange(interval);
        // INVARIANT: nothing is built on a convicted claim (P-13).
        if (interval >= state.voidFrom) revert ClaimIsVoid();
    }

    /// @dev Records the lane's next claim.
    function _record(LaneId lane, Lane memory state, uint16 stages, ClaimRecord memory p, ClaimLink calldata previous)
        private
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
    function _emitCommitted(bytes32 id, ClaimRecord memory p) private {
        bytes32 signature = ClaimCommitted.selector;
        // SAFETY: reads the struct's words 1 to 7: the claim, the first of them the job.
        assembly ("memory-safe") {
            let claim := add(p, 0x20)
            log3(claim, 0xe0, signature, id, mload(claim))
        }
    }

    /// @inheritdoc ICheckpoints
    function finalize(Claim[] calldata claims, uint64[] calldata committedAt, Holder calldata holder) external {
        // INVARIANT: every claim comes with its time.
        if (claims.length == 0 || claims.length != committedAt.length) revert UnknownClaim();
        Claim calldata first = claims[0];
        Lane storage state = _lanes[Lanes.id(first.job, first.stage, first.replica)];
        uint32 from = state.finalized;
        uint32 to = _checkAllFinal(claims, committedAt, state, _isHeld(claims, holder));

        state.finalized = to;
        emit ClaimsFinalized(first.job, first.stage, first.replica, from, to);

        JOBS.pay(first.job, first.stage, first.replica, to - from);
    }

    /// @dev How many claims of the lane are final with these.
    function _checkAllFinal(Claim[] calldata claims, uint64[] calldata committedAt, Lane memory state, bool held)
        private
        view
        returns (uint32 finalized)
    {
        Claim calldata first = claims[0];
        Clock memory clock = _clocks[first.job];
        finalized = state.finalized;
        for (uint256 i = 0; i < claims.length; ++i) {
            Claim calldata claim = claims[i];
            // INVARIANT: one lane, in order (P-12).
            if (claim.job != first.job || claim.stage != first.stage || claim.replica != first.replica) {
                revert UnknownClaim();
            }
            if (claim.interval != finalized) revert NotTheNextClaim(claim.interval);
            _checkFinal(claim, committedAt[i], clock, state.voidFrom, held);
            ++finalized;
        }
    }

    /// @dev Whether somebody else has the state that the last claim ends in. Who shows no attestation has none.
    function _isHeld(Claim[] calldata claims, Holder calldata holder) private view returns (bool) {
        if (holder.signature.length == 0) return false;
        Claim calldata last = claims[claims.length - 1];
        CUSTODY.requireHolder(last, claimId(last), holder);
        return true;
    }

    function _checkFinal(Claim calldata claim, uint64 committedAt, Clock memory clock, uint32 voidedFrom, bool held)
        private
        view
    {
        ClaimRecord memory p = Records.preimage(claim, committedAt);
        // INVARIANT: what is paid was committed, in time to be challenged.
        if (!_isRecorded(p)) revert UnknownClaim();
        // INVARIANT: a convicted claim is never paid (P-13).
        if (claim.interval >= voidedFrom) revert ClaimIsVoid();
        uint256 window = held ? _windowOf(clock, claim.job, claim.stage, claim.interval) : 2 * uint256(clock.window);
        uint256 until = uint256(committedAt) + window;
        // INVARIANT: the whole window was open to challengers (P-8), twice as long where one party alone has the
        // data (P-34).
        // forge-lint: disable-next-line(unsafe-typecast)
        if (block.timestamp < until) revert WindowOpen(uint40(until));
        bytes32 id = _hashTypedDataV4(p.structHash());
        // INVARIANT: no challenge is open (P-12).
        if (_holds[id] != 0) revert Challenged(id);
    }

    /// @inheritdoc ICheckpoints
    function open(
        uint64 job,
        uint32 intervals,
        uint32 window,
        uint40 deadline,
        address[] calldata workers,
        bytes32[] calldata initialStates
    ) external {
        // INVARIANT: lanes are given out by Jobs, once: a job starts once.
        if (msg.sender != address(JOBS)) revert Unauthorized(msg.sender);

        uint256 stages = initialStates.length;
        _clocks[job] = Clock({
            deadline: deadline,
            window: window,
            intervals: intervals,
            // SAFETY: at most 16 (P-18).
            // forge-lint: disable-next-line(unsafe-typecast)
            replicas: uint16(workers.length / stages),
            // SAFETY: comes from 16 bits.
            // forge-lint: disable-next-line(unsafe-typecast)
            stages: uint16(stages)
        });
        for (uint16 stage = 0; stage < stages; ++stage) {
            _initialStates[job][stage] = initialStates[stage];
        }
        for (uint256 i = 0; i < workers.length; ++i) {
            // SAFETY: both come from 16 bits, and are bounded by TermsBounds.
            // forge-lint: disable-next-line(unsafe-typecast)
            (uint16 stage, uint16 replica) = (uint16(i % stages), uint16(i / stages));
            _lanes[Lanes.id(job, stage, replica)] = Lane({worker: workers[i], finalized: 0, voidFrom: _NEVER, ring: 0});
            emit LaneOpened(job, stage, replica, workers[i]);
        }
    }

    /// @inheritdoc ICheckpoints
    function close(uint64 job) external {
        // INVARIANT: Jobs alone decides whether a job runs.
        if (msg.sender != address(JOBS)) revert Unauthorized(msg.sender);
        Clock storage clock = _clocks[job];
        // What was sealed can still be revealed, and at once: nobody can copy it any more.
        if (clock.replicas == 1) clock.deadline = 0;
        else (clock.replicas, clock.deadline) = (0, uint40(block.timestamp + _SEAL_WINDOW));
    }

    /// @inheritdoc ICheckpoints
    function hold(bytes32 id) external {
        // INVARIANT: finality is delayed only against a bond.
        _checkMayHold();
        ++_holds[id];
    }

    /// @inheritdoc ICheckpoints
    function release(bytes32 id) external {
        // INVARIANT: a challenge is not lifted from outside.
        _checkMayHold();
        --_holds[id];
    }

    function _checkMayHold() private view {
        if (msg.sender != CHALLENGES && msg.sender != address(CUSTODY)) revert Unauthorized(msg.sender);
    }

    /// @inheritdoc ICheckpoints
    function voidFrom(uint64 job, uint16 stage, uint16 replica, uint32 interval) external {
        // INVARIANT: claims are voided by proof only.
        if (msg.sender != DISPUTES) revert Unauthorized(msg.sender);
        Lane storage state = _lanes[Lanes.id(job, stage, replica)];
        // INVARIANT: what is final stays final.
        if (interval < state.finalized) revert ClaimIsFinal();
        // INVARIANT: what is void stays void.
        if (interval >= state.voidFrom) revert ClaimIsVoid();

        state.voidFrom = interval;
        emit ClaimsVoided(job, stage, replica, interval);
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

    function _isRecorded(ClaimRecord memory p) private view returns (bool) {
        return _recordOf(Lanes.id(p.job, p.stage, p.replica), p.interval) == p.hash();
    }

    function _recordOf(LaneId lane, uint32 interval) private view returns (bytes32) {
        return _records[lane].find(_lanes[lane].ring, interval);
    }

    /// @inheritdoc ICheckpoints
    function windowOf(uint64 job, uint16 stage, uint32 interval) external view returns (uint32) {
        return _windowOf(_clocks[job], job, stage, interval);
    }

    function _windowOf(Clock memory clock, uint64 job, uint16 stage, uint32 interval)
        private
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
    function recordOf(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bytes32) {
        return _recordOf(Lanes.id(job, stage, replica), interval);
    }

    /// @inheritdoc ICheckpoints
    function laneOf(uint64 job, uint16 stage, uint16 replica) external view returns (LaneState memory) {
        Lane storage state = _lanes[Lanes.id(job, stage, replica)];
        return LaneState({worker: state.worker, finalized: state.finalized, voidFrom: state.voidFrom});
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
