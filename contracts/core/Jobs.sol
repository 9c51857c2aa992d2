// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IChannels} from "../interfaces/IChannels.sol";
import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {Lanes} from "../libraries/claims/Lanes.sol";
import {TermsBounds} from "../libraries/terms/TermsBounds.sol";
import {JobKind, JobTerms} from "../types/Types.sol";
import {JobDeployment} from "./jobs/JobDeployment.sol";
import {JobOffers} from "./jobs/JobOffers.sol";
import {JobPayments} from "./jobs/JobPayments.sol";

/// @title Jobs
/// @notice See `IJobs`. Here a job is posted, started and ended; how its lanes get workers is in `JobOffers`, what they
/// are paid is in `JobPayments`, what is on record is in `JobRecords`.
contract Jobs is JobOffers, JobPayments {
    using Math for uint256;
    using SafeCast for uint256;
    using SafeERC20 for IERC20;

    constructor(
        IERC20 sno,
        IStaking staking,
        ICheckpoints checkpoints,
        IChannels channels,
        address disputes,
        address audits
    ) JobDeployment(sno, staking, checkpoints, channels, disputes, audits) {}

    /// @inheritdoc IJobs
    function post(JobTerms calldata terms, uint256 deposit) external payable nonReentrant returns (uint64 job) {
        TermsBounds.check(terms, address(SNO), _MIN_CHALLENGE_WINDOW, _MAX_CHALLENGE_WINDOW, _MIN_STAKE);
        // INVARIANT: the escrow is what was declared, to the wei (P-1).
        if (deposit == 0 || deposit > type(uint128).max) revert InvalidTerms("deposit");
        uint256 value = terms.token == address(0) ? deposit : 0;
        if (msg.value != value) revert WrongDeposit(msg.value, value);
        bytes32 jobKey = _keyOf(terms.continues);

        job = ++_jobCount;
        _jobs[job] = Job({
            user: msg.sender,
            state: State.Posted,
            kind: terms.kind,
            activeAt: 0,
            deadline: 0,
            escrow: deposit.toUint128(),
            auditBudget: 0,
            token: terms.token,
            stages: terms.stages,
            replicas: terms.replicas,
            intervals: terms.intervals,
            stepsPerInterval: terms.stepsPerInterval,
            acceptBy: terms.acceptBy,
            duration: terms.duration,
            challengeWindow: terms.challengeWindow,
            workerStake: terms.workerStake,
            firstStep: terms.firstStep,
            startedAt: 0,
            jobKey: jobKey,
            terms: keccak256(abi.encode(msg.sender, terms))
        });
        _put(_programs[job], terms.programs);
        _put(_initialStates[job], terms.initialStates);
        emit JobPosted(job, msg.sender, deposit, terms);

        if (terms.token != address(0)) SNO.safeTransferFrom(msg.sender, address(this), deposit);
    }

    function _put(mapping(uint16 stage => bytes32 root) storage place, bytes32[] calldata roots) private {
        for (uint16 stage = 0; stage < roots.length; ++stage) {
            place[stage] = roots[stage];
        }
    }

    /// @dev Key of the job to continue; zero if there is none to.
    function _keyOf(uint64 job) private view returns (bytes32) {
        if (job == 0) return 0;
        Job storage record = _jobs[job];
        // INVARIANT: a training is its user's to go on with, once it began (P-38).
        if (record.user != msg.sender || record.startedAt == 0 || record.kind != JobKind.Training) {
            revert InvalidTerms("continues");
        }
        return record.jobKey;
    }

    /// @inheritdoc IJobs
    function start(uint64 job) external {
        Job storage record = _userMoves(job, State.Accepted);

        uint40 startedAt = block.timestamp.toUint40();
        uint40 deadline = (block.timestamp + record.duration).toUint40();
        bytes32 jobKey = record.jobKey;
        if (jobKey == 0) jobKey = keccak256(abi.encode(block.prevrandao, job));
        record.state = State.Running;
        (record.startedAt, record.activeAt) = (startedAt, startedAt);
        record.deadline = deadline;
        record.jobKey = jobKey;
        emit JobStarted(job, jobKey, deadline);

        if (record.kind == JobKind.Training) _openLanes(job, record, deadline);
    }

    function _openLanes(uint64 job, Job storage record, uint40 deadline) private {
        (uint16 stages, uint16 replicas) = (record.stages, record.replicas);
        bytes32[] memory initialStates = new bytes32[](stages);
        mapping(uint16 stage => bytes32 root) storage registered = _initialStates[job];
        for (uint16 stage = 0; stage < stages; ++stage) {
            initialStates[stage] = registered[stage];
        }
        address[] memory workers = new address[](uint256(stages) * replicas);
        for (uint16 replica = 0; replica < replicas; ++replica) {
            for (uint16 stage = 0; stage < stages; ++stage) {
                workers[uint256(replica) * stages + stage] = _assignments[Lanes.id(job, stage, replica)].worker;
            }
        }
        CHECKPOINTS.open(job, record.intervals, record.challengeWindow, deadline, workers, initialStates);
    }

    /// @inheritdoc IJobs
    function cancel(uint64 job) external {
        Job storage record = _jobs[job];
        State state = record.state;
        // INVARIANT: the transition table of the interface.
        if (state != State.Posted && state != State.Accepted && state != State.Running) revert WrongState(job, state);
        uint40 limit = state == State.Running ? record.deadline : record.acceptBy;
        // INVARIANT: until its time is over a job is the user's to end (P-10).
        if (msg.sender != record.user && block.timestamp <= limit) revert NotUser(msg.sender);

        if (state == State.Running) {
            _close(job, record, false);
        } else {
            _end(job, record);
            if (state == State.Accepted) _unlockAll(job, record);
        }
    }

    /// @inheritdoc IJobs
    function endIdle(uint64 job, uint16 stage, uint16 replica) external {
        Job storage record = _jobs[job];
        // INVARIANT: the transition table of the interface.
        if (record.state != State.Running) revert WrongState(job, record.state);
        // INVARIANT: only who has a stake in the job ends it.
        if (msg.sender != workerOf(job, stage, replica)) revert NotWorker(msg.sender);
        // Whatever was claimed within two windows may still become final, and be paid.
        uint256 from = record.activeAt + 2 * uint256(record.challengeWindow) + _MAX_CHALLENGE_WINDOW;
        // INVARIANT: a job that goes on is the user's to end (P-41).
        if (block.timestamp < from) revert NotIdle(from.toUint40());

        _close(job, record, false);
    }

    /// @inheritdoc IJobs
    // `Checkpoints` is our own contract and calls nobody.
    // slither-disable-next-line reentrancy-benign,reentrancy-events
    function settle(uint64 job) external {
        Job storage record = _jobs[job];
        State state = record.state;
        // INVARIANT: the transition table of the interface.
        if (state != State.Running && state != State.Closing) revert WrongState(job, state);
        if (record.kind == JobKind.Serving) _checkWindow(job, record, state);
        else _checkClaims(job, record, state);

        if (state == State.Running) CHECKPOINTS.close(job);
        _end(job, record);
        _unlockAll(job, record);
    }

    function _checkWindow(uint64 job, Job storage record, State state) private view {
        // INVARIANT: a serving job is announced to be over before it is (P-20).
        if (state != State.Closing) revert WrongState(job, state);
        // INVARIANT: what is owed can be redeemed for a whole window, and what is redeemed is audited for a whole
        // window (P-20).
        uint256 from = record.deadline;
        (uint16 stages, uint16 replicas, uint256 window) = (record.stages, record.replicas, record.challengeWindow);
        for (uint16 replica = 0; replica < replicas; ++replica) {
            for (uint16 stage = 0; stage < stages; ++stage) {
                // Our own contract, which calls nobody; the lanes of a job are few (P-18).
                // slither-disable-next-line calls-loop
                from = from.max(CHANNELS.redeemedOf(job, stage, replica).redeemedAt + window);
            }
        }
        if (block.timestamp < from) revert WindowOpen(from.toUint40());
    }

    function _checkClaims(uint64 job, Job storage record, State state) private view {
        (uint16 stages, uint16 replicas, uint32 intervals) = (record.stages, record.replicas, record.intervals);
        for (uint16 replica = 0; replica < replicas; ++replica) {
            for (uint16 stage = 0; stage < stages; ++stage) {
                // Our own contract, which calls nobody; the lanes of a job are few (P-18).
                // slither-disable-start calls-loop
                bool pending = state == State.Running
                    ? CHECKPOINTS.laneOf(job, stage, replica).finalized != intervals
                        && !CHECKPOINTS.isTooLate(job, stage, replica)
                    : CHECKPOINTS.hasPending(job, stage, replica);
                // slither-disable-end calls-loop
                // INVARIANT: the escrow stays until every claim is paid or void (P-4).
                if (pending) revert ClaimsPending(stage, replica);
            }
        }
    }

    /// @inheritdoc IJobs
    function convict(uint64 job, uint16 stage, uint16 replica)
        external
        returns (address worker, uint256 stake, address user)
    {
        // INVARIANT: a lane is convicted by proof only.
        if (msg.sender != DISPUTES) revert Unauthorized(msg.sender);
        Job storage record = _jobs[job];
        Assignment storage lane = _assignments[Lanes.id(job, stage, replica)];
        worker = lane.worker;
        user = record.user;
        // A lane's lock is taken once, however many of its claims are proved wrong (P-6).
        if (!lane.convicted) {
            lane.convicted = true;
            stake = record.workerStake;
        }
        if (record.state == State.Running) _close(job, record, true);
    }

    function _close(uint64 job, Job storage record, bool convicted) private {
        record.state = State.Closing;
        // INVARIANT: what is owed can be redeemed for a window, and not for ever (P-20).
        if (record.kind == JobKind.Serving) record.deadline = (block.timestamp + record.challengeWindow).toUint40();
        emit JobClosing(job, convicted);
        if (record.kind == JobKind.Training) CHECKPOINTS.close(job);
    }

    /// @dev Returns what is left of the escrow; the last that happens to it.
    function _end(uint64 job, Job storage record) private {
        uint256 refund = record.escrow;
        record.state = State.Settled;
        (record.escrow, record.auditBudget) = (0, 0);
        _credits[record.user][record.token] += refund;
        emit JobSettled(job, refund);
    }

    function _unlockAll(uint64 job, Job storage record) private {
        (uint16 stages, uint16 replicas, uint256 stake) = (record.stages, record.replicas, record.workerStake);
        for (uint16 replica = 0; replica < replicas; ++replica) {
            for (uint16 stage = 0; stage < stages; ++stage) {
                Assignment storage lane = _assignments[Lanes.id(job, stage, replica)];
                // Our own contract, which calls nobody; the lanes of a job are few (P-18).
                // slither-disable-next-line calls-loop
                if (!lane.convicted) STAKING.unlock(lane.worker, stake);
            }
        }
    }
}
