// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

import {IAudits} from "../interfaces/IAudits.sol";
import {ICheckpoints} from "../interfaces/ICheckpoints.sol";
import {IDisputes} from "../interfaces/IDisputes.sol";
import {IJobs} from "../interfaces/IJobs.sol";
import {IStaking} from "../interfaces/IStaking.sol";
import {IStepVerifier} from "../interfaces/IStepVerifier.sol";
import {Reader} from "../libraries/encoding/Reader.sol";
import {TensorTypes} from "../libraries/encoding/TensorTypes.sol";
import {ElementProofs} from "../libraries/proofs/ElementProofs.sol";
import {Merkle} from "../libraries/proofs/Merkle.sol";
import {Openings} from "../libraries/proofs/Openings.sol";
import {Places} from "../libraries/proofs/Places.sol";
import {ElementProof, OpenedTensor, Slice} from "../types/ElementProof.sol";
import {
    Claim,
    ContradictionProof,
    EdgeLog,
    EquivocationProof,
    JobKind,
    ProgramHeader,
    StepContext,
    StepStatement,
    TensorType,
    Window,
    WiringProof
} from "../types/Types.sol";

/// @title Disputes
/// @notice See `IDisputes`.
contract Disputes is IDisputes, EIP712, ReentrancyGuardTransient {
    using Openings for OpenedTensor;
    using Reader for Slice;
    using TensorTypes for TensorType;

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

    bytes32 private constant _STATEMENT_TYPEHASH = keccak256(
        "StepStatement(bytes32 claimId,address auditor,uint32 step,bytes32 preState,bytes32 postState,bytes32 trace)"
    );
    bytes32 private constant _EDGE_LOG_TYPEHASH =
        keccak256("EdgeLog(uint64 job,uint16 replica,uint16 fromStage,uint16 toStage,uint32 interval,bytes32 root)");

    /// @notice What is slashed.
    IStaking public immutable STAKING;
    /// @notice Where programs, workers and terms stand.
    IJobs public immutable JOBS;
    /// @notice Where claims stand.
    ICheckpoints public immutable CHECKPOINTS;
    /// @notice What recomputes an element.
    IStepVerifier public immutable VERIFIER;
    /// @notice Who says that a worker has been silent.
    address public immutable CHALLENGES;
    /// @notice Who says that a holder has not shown its data.
    address public immutable CUSTODY;
    /// @notice Who knows what auditors have sealed.
    IAudits public immutable AUDITS;

    // Zero addresses would only make a deployment that does nothing; `script/Deployer.sol` gives real ones.
    // slither-disable-start missing-zero-check
    constructor(
        IStaking staking,
        IJobs jobs,
        ICheckpoints checkpoints,
        IStepVerifier verifier,
        address challenges,
        address custody,
        IAudits audits
    ) EIP712("Tensorlink", "1") {
        STAKING = staking;
        JOBS = jobs;
        CHECKPOINTS = checkpoints;
        VERIFIER = verifier;
        CHALLENGES = challenges;
        CUSTODY = custody;
        AUDITS = audits;
    }

    // slither-disable-end missing-zero-check

    /// @inheritdoc IDisputes
    function proveSigned(bytes calldata proof) external nonReentrant {
        ElementProof memory parsed = ElementProofs.parse(proof);
        Case memory c = _caseOf(parsed.claim, parsed.committedAt);
        _convict(c, parsed.claim, _faultOf(parsed, c));
    }

    /// @inheritdoc IDisputes
    function refutes(bytes calldata proof) external view returns (uint64 job, StepStatement memory statement) {
        ElementProof memory parsed = ElementProofs.parse(proof);
        Case memory c = _caseIn(_dutyOf(parsed.claim), CHECKPOINTS.claimId(parsed.claim));
        // On record or not: what the worker signed makes it its own.
        // Left out is what is wrong: that something is suffices.
        // slither-disable-next-line unused-return
        _faultOf(parsed, c);
        return (parsed.claim.job, parsed.statement);
    }

    /// @dev The fault that the proof shows. Works out what the proof leaves out.
    function _faultOf(ElementProof memory proof, Case memory c) private view returns (Finding memory) {
        StepStatement memory statement = proof.statement;
        statement.claimId = c.claimId;
        _checkStep(c, proof.claim.interval, statement.step);
        proof.program.operators = _operatorsOver(proof);
        _checkProgram(c, statement.step, proof.program, proof.programMembership.toWords());
        statement.trace = _traceOver(proof);
        // INVARIANT: the program's operator gave this output, says the worker.
        _checkSigner(statementDigest(statement), proof.signature.toBytes(), c.worker);

        int256 claimed = _claimed(proof);
        int256 recomputed = _recomputed(proof, c);
        // INVARIANT: who computed right is never convicted (P-15).
        if (claimed == recomputed) revert NoFault();

        return Finding({
            auditor: statement.auditor,
            fault: Fault.Element,
            step: statement.step,
            operatorIndex: proof.operatorIndex,
            element: proof.element,
            claimed: claimed,
            recomputed: recomputed
        });
    }

    /// @dev Root of the list of operators that has the proof's operator in its place.
    function _operatorsOver(ElementProof memory proof) private pure returns (bytes32) {
        (bool placed, bytes32 root) = Merkle.rootOver(
            keccak256(abi.encode(proof.operator)),
            proof.operatorIndex,
            proof.program.operatorCount,
            proof.operatorMembership.toWords()
        );
        if (!placed) revert WrongOperator();
        return root;
    }

    /// @dev Root of the trace that has the opened output in the operator's place, under the type that the program
    /// gives it.
    function _traceOver(ElementProof memory proof) private pure returns (bytes32) {
        TensorType output = proof.operator.output;
        if (!output.isValid()) revert WrongOperator();
        (bool placed, bytes32 root) = Merkle.rootOver(
            Merkle.tensorRoot(output, proof.output.dataRootOf(output, Openings.OUTPUT)),
            proof.operatorIndex,
            proof.program.operatorCount,
            proof.output.membership.toWords()
        );
        if (!placed) revert WrongMembership(Openings.OUTPUT);
        return root;
    }

    /// @dev The element as the opened output holds it.
    function _claimed(ElementProof memory proof) private pure returns (int256) {
        TensorType output = proof.operator.output;
        // INVARIANT: the element lies in the tensor or in the padding of its last leaf.
        if (proof.element >= output.leafCount() * TensorTypes.LEAF_BYTES / output.width()) {
            revert ElementOutOfRange(proof.element);
        }
        return proof.output.mantissaOf(output, proof.element);
    }

    /// @dev The element as the program gives it. Padding is zero (C-1).
    function _recomputed(ElementProof memory proof, Case memory c) private view returns (int256) {
        if (proof.element >= proof.operator.output.elements()) return 0;

        uint256 count = proof.operator.operands.length;
        if (proof.operands.length != count) revert WrongMembership(proof.operands.length);
        Window[][] memory windows = new Window[][](count);
        for (uint256 i = 0; i < count; ++i) {
            OpenedTensor memory operand = proof.operands[i];
            // Of what is not read, nothing is looked at.
            if (operand.ranges.length == 0) continue;
            TensorType tensorType = proof.operator.operands[i].tensorType;
            bytes32 root = Merkle.tensorRoot(tensorType, operand.dataRootOf(tensorType, i));
            // INVARIANT: operands are the worker's own or the program's, under the type the program gives them (P-14).
            if (!Places.isOperand(proof, i, root, c.steps)) revert WrongMembership(i);
            windows[i] = operand.windowsOf();
        }
        StepContext memory context = StepContext({jobKey: c.jobKey, step: c.firstStep + proof.statement.step});
        return VERIFIER.recompute(proof.operator, proof.element, context, windows);
    }

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

    /// @dev Id of a claim on record, final or not: a neighbour may claim later than the sender, up to the end of
    /// the job.
    function _recorded(Claim calldata claim, uint64 committedAt) private view returns (bytes32) {
        IJobs.State state = JOBS.stateOf(claim.job);
        // INVARIANT: the lane's stake is still locked (P-28).
        if (state != IJobs.State.Running && state != IJobs.State.Closing) revert ICheckpoints.UnknownClaim();
        // INVARIANT: a proof is about what the chain has recorded (P-14).
        if (!CHECKPOINTS.isRecorded(claim, committedAt)) revert ICheckpoints.UnknownClaim();
        return CHECKPOINTS.claimId(claim);
    }

    /// @dev Of a claim that is live.
    function _caseOf(Claim memory claim, uint64 committedAt) private view returns (Case memory) {
        IJobs.Duty memory duty = _dutyOf(claim);
        bytes32 claimId = duty.kind == JobKind.Serving
            ? _liveReceipt(claim, committedAt, duty.state)
            : CHECKPOINTS.requireLive(claim, committedAt);
        return _caseIn(duty, claimId);
    }

    function _dutyOf(Claim memory claim) private view returns (IJobs.Duty memory) {
        return JOBS.dutyOf(claim.job, claim.stage, claim.replica);
    }

    function _caseIn(IJobs.Duty memory duty, bytes32 claimId) private pure returns (Case memory) {
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
    ) private view {
        // INVARIANT: the statement is about this claim, hence this chain, deployment, job, lane and interval …
        if (statement.claimId != c.claimId) revert StatementMismatch();
        // INVARIANT: … and about one of its steps.
        _checkStep(c, claim.interval, statement.step);
        _checkSigner(statementDigest(statement), signature, c.worker);
    }

    function _checkStep(Case memory c, uint32 interval, uint256 step) private pure {
        // INVARIANT: a step is one of the claim's interval, or a length that a text can have.
        bool named = c.kind == JobKind.Serving ? step > 0 && step <= c.longest : step / c.steps == interval;
        if (!named) revert StatementMismatch();
    }

    function _checkSigner(bytes32 digest, bytes calldata signature, address worker) private pure {
        // Left out is what else there is to say about a failure.
        // slither-disable-next-line unused-return
        (address signer, ECDSA.RecoverError failure,) = ECDSA.tryRecoverCalldata(digest, signature);
        // INVARIANT: only its own word convicts a worker (P-14).
        if (failure != ECDSA.RecoverError.NoError || signer != worker) revert BadSignature();
    }

    /// @param step of a checked statement: not 0 if the claim is a receipt.
    function _checkProgram(Case memory c, uint256 step, ProgramHeader memory program, bytes32[] calldata membership)
        private
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

    function _convict(Case memory c, Claim memory claim, Finding memory f) private {
        _convict(c, Lane({job: claim.job, stage: claim.stage, replica: claim.replica, interval: claim.interval}), f);
    }

    function _convict(Case memory c, Lane memory l, Finding memory f) private {
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

    /// @inheritdoc IDisputes
    function statementDigest(StepStatement memory statement) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(_STATEMENT_TYPEHASH, statement)));
    }

    /// @inheritdoc IDisputes
    function edgeLogDigest(EdgeLog memory log) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(_EDGE_LOG_TYPEHASH, log)));
    }
}
