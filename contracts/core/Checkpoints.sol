// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {ICustody} from "../interfaces/ICustody.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {LaneId, Lanes} from "../libraries/claims/Lanes.sol";
import {ClaimRecord, Records} from "../libraries/claims/Records.sol";
import {Holder} from "../types/Custody.sol";
import {Claim, ClaimLink} from "../types/Types.sol";
import {CheckpointSeals} from "./checkpoints/CheckpointSeals.sol";

/// @title Checkpoints
/// @notice See `ICheckpoints`. Here is how a job opens and closes, how one of a single replica makes its claims,
/// and how claims become final or void; what is on record is in `CheckpointRecords`, claims of several replicas are
/// in `CheckpointSeals`.
// What is compared is numbers of replicas and intervals, not balances: nobody can nudge them.
// slither-disable-start incorrect-equality
contract Checkpoints is CheckpointSeals {
    using Records for ClaimRecord;

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

    mapping(bytes32 claimId => uint256 count) private _holds;

    // A zero address would only make a deployment that does nothing; `script/Deployer.sol` gives real ones.
    // slither-disable-next-line missing-zero-check
    constructor(IJobs jobs, address disputes, address challenges, ICustody custody, uint32 sealWindow)
        CheckpointSeals(sealWindow)
    {
        JOBS = jobs;
        DISPUTES = disputes;
        CHALLENGES = challenges;
        CUSTODY = custody;
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

    /// @dev Why nothing is committed.
    function _refuse(uint64 job, Clock memory clock) private pure {
        // INVARIANT: no replica sees another's claim before it has made its own (P-24).
        if (clock.replicas > 1) revert JobIsReplicated(job);
        // INVARIANT: claims are made while the job runs.
        if (clock.replicas == 0 || clock.deadline == 0) revert JobNotOpen(job);
        revert DeadlinePassed(clock.deadline);
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
}
// slither-disable-end incorrect-equality
