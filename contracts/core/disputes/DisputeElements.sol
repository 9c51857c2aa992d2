// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {IDisputes} from "../../interfaces/IDisputes.sol";
import {IStepVerifier} from "../../interfaces/IStepVerifier.sol";
import {Reader} from "../../libraries/encoding/Reader.sol";
import {TensorTypes} from "../../libraries/encoding/TensorTypes.sol";
import {ElementProofs} from "../../libraries/proofs/ElementProofs.sol";
import {Merkle} from "../../libraries/proofs/Merkle.sol";
import {Openings} from "../../libraries/proofs/Openings.sol";
import {Places} from "../../libraries/proofs/Places.sol";
import {ElementProof, OpenedTensor, Slice} from "../../types/ElementProof.sol";
import {StepContext, StepStatement, TensorType, Window} from "../../types/Types.sol";
import {DisputeConvictions} from "./DisputeConvictions.sol";

/// @title DisputeElements
/// @notice Proofs of one wrong element: the worker's, as it opens it, and what the program gives.
abstract contract DisputeElements is DisputeConvictions {
    using Openings for OpenedTensor;
    using Reader for Slice;
    using TensorTypes for TensorType;

    /// @notice What recomputes an element.
    IStepVerifier public immutable VERIFIER;

    constructor(IStepVerifier verifier) {
        VERIFIER = verifier;
    }

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
}
