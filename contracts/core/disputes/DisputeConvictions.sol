// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";

import {IAudits} from "../../interfaces/IAudits.sol";
import {IDisputes} from "../../interfaces/IDisputes.sol";
import {IStaking} from "../../interfaces/IStaking.sol";
import {Claim, JobKind} from "../../types/Types.sol";
import {DisputeCases} from "./DisputeCases.sol";

/// @title DisputeConvictions
/// @notice What becomes of a claim and of its worker's stake once a fault is shown, and who may tell of a fault without
/// a proof.
abstract contract DisputeConvictions is DisputeCases, ReentrancyGuardTransient {
    /// @dev Whose claim it is.
    struct Lane {
        uint64 job;
        uint16 stage;
        uint16 replica;
        uint32 interval;
    }

    /// @dev What a proof found, as `Convicted` reports it.
    struct Finding {
        address auditor;
        Fault fault;
        uint32 step;
        uint32 operatorIndex;
        uint64 element;
        int256 claimed;
        int256 recomputed;
    }

    /// @notice What is slashed.
    IStaking public immutable STAKING;
    /// @notice Who says that a worker has been silent.
    address public immutable CHALLENGES;
    /// @notice Who says that a holder has not shown its data.
    address public immutable CUSTODY;
    /// @notice Who knows what auditors have sealed.
    IAudits public immutable AUDITS;

    // Zero addresses would only make a deployment that does nothing; `script/Deployer.sol` gives real ones.
    // slither-disable-next-line missing-zero-check
    constructor(IStaking staking, address challenges, address custody, IAudits audits) {
        (STAKING, CHALLENGES, CUSTODY, AUDITS) = (staking, challenges, custody, audits);
    }

    /// @inheritdoc IDisputes
    function convictSilent(
        uint64 job,
        uint16 stage,
        uint16 replica,
        uint32 interval,
        bytes32 claimId,
        address challenger
    ) external nonReentrant {
        // INVARIANT: silence is told by the clock only.
        if (msg.sender != CHALLENGES && msg.sender != CUSTODY) revert Unauthorized(msg.sender);
        Case memory c;
        // Receipts are not challenged.
        (c.claimId, c.worker, c.kind) = (claimId, JOBS.workerOf(job, stage, replica), JobKind.Training);
        Finding memory finding;
        (finding.auditor, finding.fault) = (challenger, Fault.Silence);
        _convict(c, Lane({job: job, stage: stage, replica: replica, interval: interval}), finding);
    }

    /// @inheritdoc IDisputes
    function convictHolder(uint64 job, uint16 stage, uint16 replica, bytes32 claimId, address demander)
        external
        nonReentrant
    {
        // INVARIANT: who has shown its data is told by the clock only.
        if (msg.sender != CUSTODY) revert Unauthorized(msg.sender);
        Case memory c;
        (c.claimId, c.worker) = (claimId, JOBS.workerOf(job, stage, replica));
        Finding memory finding;
        (finding.auditor, finding.fault) = (demander, Fault.Withholding);
        Lane memory lane = Lane({job: job, stage: stage, replica: replica, interval: 0});
        _emitConvicted(c, lane, finding);
        _slash(lane, demander);
    }

    function _convict(Case memory c, Claim memory claim, Finding memory f) internal {
        _convict(c, Lane({job: claim.job, stage: claim.stage, replica: claim.replica, interval: claim.interval}), f);
    }

    function _convict(Case memory c, Lane memory l, Finding memory f) internal {
        _emitConvicted(c, l, f);
        // A receipt has no record that could become final.
        if (c.kind == JobKind.Training) CHECKPOINTS.voidFrom(l.job, l.stage, l.replica, l.interval);
        _slash(l, f.auditor);
    }

    function _emitConvicted(Case memory c, Lane memory l, Finding memory f) private {
        emit Convicted(
            l.job,
            c.worker,
            f.auditor,
            l.stage,
            l.replica,
            c.claimId,
            f.fault,
            f.step,
            f.operatorIndex,
            f.element,
            f.claimed,
            f.recomputed
        );
    }

    function _slash(Lane memory l, address auditor) private {
        (address worker, uint256 stake, address user) = JOBS.convict(l.job, l.stage, l.replica);
        // An earlier claim of the lane convicted after a later one, or another receipt: the stake is gone
        // already (P-6).
        if (stake == 0) return;
        // INVARIANT: half of the bounty is for auditors that had sealed before, and so is nobody's whom the worker
        // chooses (P-45).
        address auditors = AUDITS.closeSeals(l.job, l.stage, l.replica) ? address(AUDITS) : address(0);
        STAKING.slash(worker, stake, auditor, auditors, user);
    }

    /// @inheritdoc IDisputes
    function isConvicted(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bool) {
        return interval >= CHECKPOINTS.laneOf(job, stage, replica).voidFrom;
    }
}
