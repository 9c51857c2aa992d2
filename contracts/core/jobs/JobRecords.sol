// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IJobs} from "../../interfaces/IJobs.sol";
import {LaneId, Lanes} from "../../libraries/claims/Lanes.sol";
import {JobKind} from "../../types/Types.sol";

/// @title JobRecords
/// @notice What is on record of jobs, and how it is read: the state of `Jobs`, which makes the moves.
abstract contract JobRecords is IJobs {
    /// @dev Who holds a lane and for what, in one slot. `convicted`: its lock is gone.
    struct Assignment {
        address worker;
        bool convicted;
        uint88 price;
    }

    uint64 internal _jobCount;
    mapping(uint64 job => Job record) internal _jobs;
    mapping(uint64 job => mapping(uint16 stage => bytes32 root)) internal _programs;
    mapping(uint64 job => mapping(uint16 stage => bytes32 root)) internal _initialStates;
    mapping(LaneId lane => Assignment assignment) internal _assignments;
    mapping(address account => mapping(address token => uint256 amount)) internal _credits;

    /// @inheritdoc IJobs
    function jobOf(uint64 job) external view returns (Job memory) {
        return _jobs[job];
    }

    /// @inheritdoc IJobs
    function userOf(uint64 job) external view returns (address) {
        return _jobs[job].user;
    }

    /// @inheritdoc IJobs
    function stateOf(uint64 job) external view returns (State) {
        return _jobs[job].state;
    }

    /// @inheritdoc IJobs
    function termsOf(uint64 job) external view returns (uint32 stepsPerInterval, uint32 challengeWindow) {
        Job storage record = _jobs[job];
        return (record.stepsPerInterval, record.challengeWindow);
    }

    /// @inheritdoc IJobs
    function auditedOf(uint64 job) external view returns (Audited memory) {
        Job storage record = _jobs[job];
        return Audited({
            state: record.state,
            kind: record.kind,
            stepsPerInterval: record.stepsPerInterval,
            challengeWindow: record.challengeWindow
        });
    }

    /// @inheritdoc IJobs
    function servingOf(uint64 job)
        external
        view
        returns (address user, State state, uint40 deadline, uint32 intervals)
    {
        Job storage record = _jobs[job];
        if (record.kind != JobKind.Serving) return (address(0), State.None, 0, 0);
        return (record.user, record.state, record.deadline, record.intervals);
    }

    /// @inheritdoc IJobs
    function stakeOf(uint64 job) external view returns (uint128) {
        return _jobs[job].workerStake;
    }

    /// @inheritdoc IJobs
    function dutyOf(uint64 job, uint16 stage, uint16 replica) external view returns (Duty memory) {
        Job storage record = _jobs[job];
        return Duty({
            state: record.state,
            kind: record.kind,
            stepsPerInterval: record.stepsPerInterval,
            firstStep: record.firstStep,
            jobKey: record.jobKey,
            program: programOf(job, stage),
            worker: workerOf(job, stage, replica)
        });
    }

    /// @inheritdoc IJobs
    function programOf(uint64 job, uint16 stage) public view returns (bytes32) {
        return _programs[job][stage];
    }

    /// @inheritdoc IJobs
    function initialStateOf(uint64 job, uint16 stage) external view returns (bytes32) {
        return _initialStates[job][stage];
    }

    /// @inheritdoc IJobs
    function workerOf(uint64 job, uint16 stage, uint16 replica) public view returns (address) {
        return _assignments[Lanes.id(job, stage, replica)].worker;
    }

    /// @inheritdoc IJobs
    function priceOf(uint64 job, uint16 stage, uint16 replica) external view returns (uint128) {
        return _assignments[Lanes.id(job, stage, replica)].price;
    }

    /// @inheritdoc IJobs
    function isConvicted(uint64 job, uint16 stage, uint16 replica) external view returns (bool) {
        return _assignments[Lanes.id(job, stage, replica)].convicted;
    }

    /// @inheritdoc IJobs
    function jobCount() external view returns (uint64) {
        return _jobCount;
    }
}
