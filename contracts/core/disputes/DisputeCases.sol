// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

import {ICheckpoints} from "../../interfaces/ICheckpoints.sol";
import {IDisputes} from "../../interfaces/IDisputes.sol";
import {IJobs} from "../../interfaces/IJobs.sol";
import {Merkle} from "../../libraries/proofs/Merkle.sol";
import {Claim, EdgeLog, JobKind, ProgramHeader, StepStatement} from "../../types/Types.sol";

/// @title DisputeCases
/// @notice Which claims a proof can be about, and what their workers have signed.
abstract contract DisputeCases is IDisputes, EIP712 {
    /// @dev What the chain knows about the claim that a proof is about. `steps`: how many steps its boundary logs hold,
    /// 1 of a receipt (C-12). `longest`: the most tokens of a receipt's text. `firstStep`: steps before the job's own
    /// (P-38). `program`: as registered.
    struct Case {
        bytes32 claimId;
        address worker;
        JobKind kind;
        uint256 steps;
        uint256 longest;
        bytes32 jobKey;
        uint32 firstStep;
        bytes32 program;
    }

    bytes32 private constant _STATEMENT_TYPEHASH = keccak256(
        "StepStatement(bytes32 claimId,address auditor,uint32 step,bytes32 preState,bytes32 postState,bytes32 trace)"
    );
    bytes32 private constant _EDGE_LOG_TYPEHASH =
        keccak256("EdgeLog(uint64 job,uint16 replica,uint16 fromStage,uint16 toStage,uint32 interval,bytes32 root)");

    /// @notice Where programs, workers and terms stand.
    IJobs public immutable JOBS;
    /// @notice Where claims stand.
    ICheckpoints public immutable CHECKPOINTS;

    constructor(IJobs jobs, ICheckpoints checkpoints) EIP712("Tensorlink", "1") {
        (JOBS, CHECKPOINTS) = (jobs, checkpoints);
    }

    /// @dev Of a claim that is live.
    function _caseOf(Claim memory claim, uint64 committedAt) internal view returns (Case memory) {
        IJobs.Duty memory duty = _dutyOf(claim);
        bytes32 claimId = duty.kind == JobKind.Serving
            ? _liveReceipt(claim, committedAt, duty.state)
            : CHECKPOINTS.requireLive(claim, committedAt);
        return _caseIn(duty, claimId);
    }

    function _dutyOf(Claim memory claim) internal view returns (IJobs.Duty memory) {
        return JOBS.dutyOf(claim.job, claim.stage, claim.replica);
    }

    function _caseIn(IJobs.Duty memory duty, bytes32 claimId) internal pure returns (Case memory) {
        return Case({
            claimId: claimId,
            worker: duty.worker,
            kind: duty.kind,
            steps: duty.kind == JobKind.Serving ? 1 : duty.stepsPerInterval,
            longest: duty.stepsPerInterval,
            jobKey: duty.jobKey,
            firstStep: duty.firstStep,
            program: duty.program
        });
    }

    /// @dev Id of a receipt, which no record holds: what the worker signs about it makes it its own (P-21).
    function _liveReceipt(Claim memory claim, uint64 committedAt, IJobs.State state) private view returns (bytes32) {
        // INVARIANT: the lane's stake is still locked (P-20).
        if (state != IJobs.State.Running && state != IJobs.State.Closing) revert ICheckpoints.UnknownClaim();
        // INVARIANT: a receipt has one form: no record and so no time, no states (C-12).
        if (committedAt != 0 || claim.parentState != 0 || claim.newState != 0) revert ICheckpoints.UnknownClaim();
        return CHECKPOINTS.claimId(claim);
    }

    function _checkStatement(
        Case memory c,
        Claim calldata claim,
        StepStatement calldata statement,
        bytes calldata signature
    ) internal view {
        // INVARIANT: the statement is about this claim, hence this chain, deployment, job, lane and interval …
        if (statement.claimId != c.claimId) revert StatementMismatch();
        // INVARIANT: … and about one of its steps.
        _checkStep(c, claim.interval, statement.step);
        _checkSigner(statementDigest(statement), signature, c.worker);
    }

    function _checkStep(Case memory c, uint32 interval, uint256 step) internal pure {
        // INVARIANT: a step is one of the claim's interval, or a length that a text can have.
        bool named = c.kind == JobKind.Serving ? step > 0 && step <= c.longest : step / c.steps == interval;
        if (!named) revert StatementMismatch();
    }

    function _checkSigner(bytes32 digest, bytes calldata signature, address worker) internal pure {
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        // INVARIANT: only its own word convicts a worker (P-14).
        if (failure != ECDSA.RecoverError.NoError || signer != worker) revert BadSignature();
    }

    /// @param step of a checked statement: not 0 if the claim is a receipt.
    function _checkProgram(Case memory c, uint256 step, ProgramHeader memory program, bytes32[] calldata membership)
        internal
        pure
    {
        bytes32 root = keccak256(abi.encode(program));
        // INVARIANT: the program is the one registered with the job for the claim's stage, and for the text's
        // length (C-13).
        bool right = c.kind == JobKind.Serving
            ? Merkle.isMember(c.program, root, step - 1, c.longest, membership)
            : root == c.program && membership.length == 0;
        if (!right) revert WrongProgram();
    }

    /// @dev Id of a claim on record, final or not: a neighbour may claim later than the sender, up to the end of
    /// the job.
    function _recorded(Claim calldata claim, uint64 committedAt) internal view returns (bytes32) {
        IJobs.State state = JOBS.stateOf(claim.job);
        // INVARIANT: the lane's stake is still locked (P-28).
        if (state != IJobs.State.Running && state != IJobs.State.Closing) revert ICheckpoints.UnknownClaim();
        // INVARIANT: a proof is about what the chain has recorded (P-14).
        if (!CHECKPOINTS.isRecorded(claim, committedAt)) revert ICheckpoints.UnknownClaim();
        return CHECKPOINTS.claimId(claim);
    }

    /// @inheritdoc IDisputes
    function statementDigest(StepStatement memory statement) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(_STATEMENT_TYPEHASH, statement)));
    }

    /// @inheritdoc IDisputes
    function edgeLogDigest(EdgeLog memory log) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(_EDGE_LOG_TYPEHASH, log)));
    }
}
