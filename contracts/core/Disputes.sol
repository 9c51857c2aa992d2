// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IAudits} from "../interfaces/IAudits.sol";
import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {IStepVerifier} from "../interfaces/IStepVerifier.sol";
import {Merkle} from "../libraries/proofs/Merkle.sol";
import {Places} from "../libraries/proofs/Places.sol";
import {
    Claim,
    ContradictionProof,
    EdgeLog,
    EquivocationProof,
    JobKind,
    StepStatement,
    WiringProof
} from "../types/Types.sol";
import {DisputeCases} from "./disputes/DisputeCases.sol";
import {DisputeConvictions} from "./disputes/DisputeConvictions.sol";
import {DisputeElements} from "./disputes/DisputeElements.sol";

/// @title Disputes
/// @notice See `IDisputes`. Here are the proofs by what a worker signed and where it put it; those of a wrong element
/// are in `DisputeElements`, what follows from a fault is in `DisputeConvictions`.
contract Disputes is DisputeElements {
    constructor(
        IStaking staking,
        IJobs jobs,
        ICheckpoints checkpoints,
        IStepVerifier verifier,
        address challenges,
        address custody,
        IAudits audits
    )
        DisputeCases(jobs, checkpoints)
        DisputeConvictions(staking, challenges, custody, audits)
        DisputeElements(verifier)
    {}

    /// @inheritdoc IDisputes
    function proveSignedWiring(WiringProof calldata proof) external nonReentrant {
        Case memory c = _caseOf(proof.claim, proof.committedAt);
        _checkStatement(c, proof.claim, proof.statement, proof.signature);
        _checkProgram(c, proof.statement.step, proof.program, proof.programMembership);
        // INVARIANT: the wiring is the registered program's.
        if (!Places.isWired(proof)) revert WrongProgram();
        // INVARIANT: the worker signed this output for this operator …
        if (!Merkle.isMember(
                proof.statement.trace,
                proof.traceRoot,
                proof.operatorIndex,
                proof.program.operatorCount,
                proof.traceMembership
            )) revert WrongMembership(0);
        // INVARIANT: … and committed to that tensor in the place which the output goes to.
        if (!Places.isSink(proof, c.steps)) revert WrongMembership(1);
        // INVARIANT: who put its outputs where they belong is never convicted (P-15).
        if (proof.traceRoot == proof.sinkRoot) revert NoFault();

        Finding memory finding = Finding({
            auditor: proof.statement.auditor,
            fault: Fault.Wiring,
            step: proof.statement.step,
            operatorIndex: proof.operatorIndex,
            element: proof.index,
            claimed: 0,
            recomputed: 0
        });
        _convict(c, proof.claim, finding);
    }

    /// @inheritdoc IDisputes
    function proveSignedContradiction(ContradictionProof calldata proof) external nonReentrant {
        Case memory c = _caseOf(proof.claim, proof.committedAt);
        StepStatement calldata first = proof.first;
        _checkStatement(c, proof.claim, first, proof.firstSignature);
        if (!_contradictsClaim(c, proof.claim, first)) {
            _checkStatement(c, proof.claim, proof.second, proof.secondSignature);
            // INVARIANT: who signs what it computed is never convicted (P-15).
            if (!_contradict(c, first, proof.second)) revert NoFault();
        }

        Finding memory finding = Finding({
            auditor: first.auditor,
            fault: Fault.Contradiction,
            step: first.step,
            operatorIndex: 0,
            element: 0,
            claimed: 0,
            recomputed: 0
        });
        _convict(c, proof.claim, finding);
    }

    /// @dev The interval's first step starts from the claim's parent state; its last ends in the claim's new state. A
    /// receipt's only step is both, and both of its states are zero.
    function _contradictsClaim(Case memory c, Claim calldata claim, StepStatement calldata statement)
        private
        pure
        returns (bool)
    {
        uint256 local = statement.step % c.steps;
        return (local == 0 && statement.preState != claim.parentState)
            || (local == c.steps - 1 && statement.postState != claim.newState);
    }

    /// @dev One step has one outcome, whoever asked; the next step starts where it ended. A text has one length.
    function _contradict(Case memory c, StepStatement calldata first, StepStatement calldata second)
        private
        pure
        returns (bool)
    {
        if (first.step == second.step) {
            return
                first.preState != second.preState || first.postState != second.postState || first.trace != second.trace;
        }
        if (c.kind == JobKind.Serving) return true;
        return uint256(first.step) + 1 == second.step && first.postState != second.preState;
    }

    /// @inheritdoc IDisputes
    function proveEquivocation(EquivocationProof calldata proof) external nonReentrant {
        Claim calldata claim = proof.claim;
        Case memory c;
        // Of a training job: receipts are not on record, and of what crosses their boundaries nothing is signed but
        // the receipts.
        (c.claimId, c.kind) = (_recorded(claim, proof.committedAt), JobKind.Training);
        c.worker = JOBS.workerOf(claim.job, claim.stage, claim.replica);
        // INVARIANT: the logs are those the worker committed to.
        if (keccak256(abi.encode(proof.logs)) != claim.io) revert WrongLogs();
        uint16 neighbour = Places.neighbourOf(claim.stage, proof.toNext);
        EdgeLog memory log = EdgeLog({
            job: claim.job,
            replica: claim.replica,
            fromStage: claim.stage,
            toStage: neighbour,
            interval: claim.interval,
            root: proof.root
        });
        _checkSigner(edgeLogDigest(log), proof.signature, c.worker);
        // INVARIANT: who commits to what it signed is never convicted (P-15).
        if (proof.root == (proof.toNext ? proof.logs.toNext : proof.logs.toPrevious)) revert NoFault();

        Finding memory finding;
        finding.auditor = JOBS.workerOf(claim.job, neighbour, claim.replica);
        finding.fault = Fault.Equivocation;
        // What is final stays final.
        uint32 finalized = CHECKPOINTS.laneOf(claim.job, claim.stage, claim.replica).finalized;
        uint32 from = claim.interval > finalized ? claim.interval : finalized;
        _convict(c, Lane({job: claim.job, stage: claim.stage, replica: claim.replica, interval: from}), finding);
    }
}
