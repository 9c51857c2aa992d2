// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";

import {IAudits} from "../interfaces/IAudits.sol";
import {IBeacon} from "../interfaces/IBeacon.sol";
import {IChannels} from "../interfaces/IChannels.sol";
import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {LaneId} from "../libraries/claims/Lanes.sol";
import {AuditAnswer, AuditedClaim} from "../types/Audit.sol";
import {Claim, JobKind, StepStatement} from "../types/Types.sol";
import {AuditDeployment} from "./audits/AuditDeployment.sol";
import {AuditShares} from "./audits/AuditShares.sol";

/// @title Audits
/// @notice See `IAudits`. Here answers are sealed, shown, accused and penalised; which claims they are about is in
/// `AuditedClaims`, what they bring at a conviction in `AuditShares`, what is on record in `AuditRecords`.
contract Audits is AuditShares {
    using SafeCast for uint256;

    constructor(
        IStaking staking,
        IJobs jobs,
        ICheckpoints checkpoints,
        IChannels channels,
        IDisputes disputes,
        IBeacon beacon
    ) AuditDeployment(staking, jobs, checkpoints, channels, disputes, beacon) {}

    /// @inheritdoc IAudits
    function commit(AuditedClaim calldata audited, bytes32 sealedAnswer) external {
        (bytes32 claimId, IJobs.Audited memory job) = _known(audited);
        // INVARIANT: nobody answers once an answer can have been seen.
        _checkTime(audited, job, 0, 1);
        // INVARIANT: nobody is paid for what is decided.
        _checkNotVoid(audited.claim, job);
        // INVARIANT: nobody chooses what it audits.
        if (!isDrawn(claimId, audited.fixedAt, msg.sender)) revert NotDrawn(msg.sender);
        Audit storage audit = _audits[claimId][msg.sender];
        // INVARIANT: one answer.
        if (audit.state != State.None) revert WrongState(audit.state);

        (audit.word, audit.state) = (_cut(sealedAnswer), State.Sealed);
        ++_answers[msg.sender].committed;
        LaneId lane = _laneOf(audited.claim);
        Seals memory seals = _runningSeals(lane, job.challengeWindow);
        // INVARIANT: nobody joins those who share (P-45).
        if (!seals.closed) {
            ++seals.running;
            _seals[lane] = seals;
            audit.sealedAt = block.timestamp.toUint40();
        }
        emit AuditSealed(claimId, msg.sender);
    }

    /// @inheritdoc IAudits
    function reveal(AuditedClaim calldata audited, AuditAnswer calldata answer, bytes32 salt) external {
        (bytes32 claimId, IJobs.Audited memory job) = _known(audited);
        // INVARIANT: an answer that nobody can be accused for agrees with the worker's (P-32).
        if (job.kind == JobKind.Serving) revert WrongStatement();
        _reveal(audited, claimId, job, answer, salt);
    }

    /// @inheritdoc IAudits
    function revealConfirmed(
        AuditedClaim calldata audited,
        StepStatement calldata statement,
        bytes calldata signature,
        bytes32 salt
    ) external {
        (bytes32 claimId, IJobs.Audited memory job) = _known(audited);
        _checkStatement(claimId, audited.claim, job, statement, signature);
        _reveal(audited, claimId, job, _answerOf(statement), salt);
    }

    // `Jobs` is our own contract and calls nobody.
    // slither-disable-next-line reentrancy-events
    function _reveal(
        AuditedClaim calldata audited,
        bytes32 claimId,
        IJobs.Audited memory job,
        AuditAnswer memory answer,
        bytes32 salt
    ) private {
        // INVARIANT: no answer is shown while another can be made.
        _checkTime(audited, job, 1, 2);
        _show(claimId, answer, salt);
        Claim calldata claim = audited.claim;
        uint32 units = job.kind == JobKind.Serving ? answer.step : 1;
        uint256 fee = JOBS.payAudit(claim.job, claim.stage, claim.replica, units, msg.sender);
        emit AuditRevealed(claimId, msg.sender, claim.job, answer, fee);
    }

    function _show(bytes32 claimId, AuditAnswer memory answer, bytes32 salt) private {
        Audit storage audit = _audits[claimId][msg.sender];
        if (audit.state != State.Sealed) revert WrongState(audit.state);
        // INVARIANT: the answer is the auditor's own, from before any was shown.
        bytes32 sealedAnswer = keccak256(abi.encode(claimId, answer, msg.sender, salt));
        if (audit.word != _cut(sealedAnswer)) revert WrongAnswer();

        (audit.word, audit.state) = (_wordOf(answer), State.Revealed);
        ++_answers[msg.sender].shown;
    }

    /// @inheritdoc IAudits
    function revealUnpaid(Claim calldata claim, AuditAnswer calldata answer, bytes32 salt) external {
        // At any time, and over a receipt without its worker's word: it costs nobody anything, and shows no more than
        // the auditor could tell anyway.
        bytes32 claimId = CHECKPOINTS.claimId(claim);
        _show(claimId, answer, salt);
        emit AuditRevealed(claimId, msg.sender, claim.job, answer, 0);
    }

    /// @inheritdoc IAudits
    function forfeit(Claim calldata claim) external nonReentrant {
        bytes32 claimId = CHECKPOINTS.claimId(claim);
        Audit storage audit = _audits[claimId][msg.sender];
        if (audit.state != State.Sealed) revert WrongState(audit.state);
        ++_answers[msg.sender].shown;
        _penalise(claimId, msg.sender, audit, address(0), JOBS.stakeOf(claim.job));
    }

    /// @inheritdoc IAudits
    function accuse(
        AuditedClaim calldata audited,
        address auditor,
        StepStatement calldata statement,
        bytes calldata signature
    ) external {
        (bytes32 claimId, IJobs.Audited memory job) = _known(audited);
        // INVARIANT: a worker that can be made to say nothing more accuses nobody (P-32).
        if (job.kind == JobKind.Serving) revert WrongStatement();
        _checkTime(audited, job, 1, 3);
        _checkNotVoid(audited.claim, job);
        // INVARIANT: who accuses has something to lose (P-32): a convicted lane has not.
        if (JOBS.isConvicted(audited.claim.job, audited.claim.stage, audited.claim.replica)) revert ClaimIsVoid();
        Audit storage audit = _audits[claimId][auditor];
        if (audit.state != State.Revealed) revert WrongState(audit.state);
        _checkStatement(claimId, audited.claim, job, statement, signature);
        // INVARIANT: what the worker says, too, accuses nobody.
        if (_wordOf(_answerOf(statement)) == audit.word) revert WrongStatement();

        (audit.state, audit.accuser) = (State.Accused, statement.auditor);
        emit AuditorAccused(claimId, auditor, statement, signature);
    }

    /// @inheritdoc IAudits
    function penalise(Claim calldata claim, address auditor) external nonReentrant {
        // It need not be on record any more: nobody is accused over a claim that was not.
        bytes32 claimId = CHECKPOINTS.claimId(claim);
        Audit storage audit = _audits[claimId][auditor];
        if (audit.state != State.Accused) revert WrongState(audit.state);
        // INVARIANT: who was right has had the time to show it (P-32).
        if (CHECKPOINTS.laneOf(claim.job, claim.stage, claim.replica).finalized <= claim.interval) revert NotFinal();

        _penalise(claimId, auditor, audit, audit.accuser, JOBS.stakeOf(claim.job));
    }

    /// @inheritdoc IAudits
    function penaliseCopy(bytes calldata proof, address auditor) external nonReentrant {
        (uint64 job, StepStatement memory wrong) = DISPUTES.refutes(proof);
        Audit storage audit = _audits[wrong.claimId][auditor];
        if (audit.state != State.Revealed && audit.state != State.Accused) revert WrongState(audit.state);
        // INVARIANT: one's own answer, and nothing else, convicts an auditor (P-32).
        if (_wordOf(_answerOf(wrong)) != audit.word) revert WrongAnswer();

        _penalise(wrong.claimId, auditor, audit, wrong.auditor, JOBS.stakeOf(job));
    }

    // The amount is what is left to be taken; `Staking` is our own contract, and both callers are guarded.
    // slither-disable-next-line reentrancy-events
    function _penalise(bytes32 claimId, address auditor, Audit storage audit, address accuser, uint256 stake) private {
        audit.state = State.Penalised;
        // INVARIANT: who frames an auditor risks as much as it could win (P-32).
        uint256 amount = STAKING.penalise(auditor, _PENALTY < stake ? _PENALTY : stake, accuser);
        emit AuditorPenalised(claimId, auditor, accuser, amount);
    }
}
