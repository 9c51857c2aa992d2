// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ContradictionProof, EdgeLog, EquivocationProof, StepStatement, WiringProof} from "../types/Types.sol";

/// @title Disputes
/// @notice The worker's own signed words convict it in one transaction: a wrong element, a trace that is not wired to its state or
/// logs, a contradiction, or a log that it signed to its neighbour and another to its claim. Anyone can prove it, while the claim is live, without a bond. Where the answers are to be had only by
/// force, `IChallenges` forces them.
///
/// The claims of a serving job are receipts (C-12), of which the chain has no record: what the worker signed about one makes it its
/// own. It can be proved wrong until the job is settled, and so long the stake that answers for it is locked.
///
/// @dev The bounty goes to the auditor to whom the worker addressed its signed statement, so copying a proof from the
/// mempool earns nothing.
interface IDisputes {
    /// @dev 0 is invalid.
    enum Fault {
        None,
        Element,
        Wiring,
        Contradiction,
        Silence,
        Equivocation,
        Withholding
    }

    /// @dev For Element: the operator, the element, what the trace holds and what the operator gives. For Wiring: the wired
    /// operator, and as `element` the entry of the sink. Otherwise 0.
    event Convicted(
        bytes32 indexed claimId,
        address indexed worker,
        address indexed auditor,
        Fault fault,
        uint32 step,
        uint32 operatorIndex,
        uint64 element,
        int256 claimed,
        int256 recomputed
    );

    /// @dev The statement is about another claim, or about a step that is not of the claim's interval, or a length that no text of the
    /// job has.
    error StatementMismatch();
    /// @dev Not by the lane's worker, or not for this chain and contract, or over another claim or trace than that of the proof.
    error BadSignature();
    /// @dev Not the registered one, or without this operator; over a receipt, not the one for the signed length.
    error WrongProgram();
    /// @dev The program has no operator at this index; the operator is none; or the program wires nothing to this sink and index.
    error WrongOperator();
    error WrongLogs();
    /// @dev The tensor is not where it should be. `operand` is `type(uint256).max` for the output, or the number of operands
    /// given where that is wrong; in a wiring proof 0 is the trace and 1 the sink.
    error WrongMembership(uint256 operand);
    /// @dev The leaves are not those of the tensor, or not the ones that hold the element.
    error WrongOpening(uint256 operand, uint256 range);
    error ElementOutOfRange(uint64 element);
    /// @dev The bytes are no proof of a wrong element: too few, or too many.
    error MalformedProof();
    /// @dev The worker was right.
    error NoFault();
    error Unauthorized(address caller);

    /// @notice Convicts a worker whose signed trace holds a wrong element (or padding that is not zero).
    /// Effects, of every proof: voids the claim and those after it in its lane (of a receipt there is none to void), closes the job,
    /// and slashes the lane's stake unless that has been done.
    /// Requirements: `contracts/SPEC.md`, "What a proof is".
    /// @param proof an `ElementProof` as bytes (C-17)
    function proveSigned(bytes calldata proof) external;

    /// @notice Convicts a worker whose signed trace does not agree with its post-state or its log of tensors sent.
    function proveSignedWiring(WiringProof calldata proof) external;

    /// @notice Convicts a worker by one signed statement that contradicts its claim, or by two that contradict each other. In
    /// the first case the second statement is not looked at. The bounty goes to the auditor of the first.
    function proveSignedContradiction(ContradictionProof calldata proof) external;

    /// @notice Convicts a worker that signed to a neighbour, as what it sent in an interval, another log than its claim commits to. The
    /// bounty goes to that neighbour's worker, to whom the word was given: copying the proof earns nothing. Until the job is settled, also over
    /// a claim that is final: a neighbour may claim later than the sender.
    function proveEquivocation(EquivocationProof calldata proof) external;

    /// @notice Convicts a worker that did not answer a challenge, or a demand about its claim, in time, to the credit of who asked. Only
    /// `Challenges` and `Custody`.
    function convictSilent(
        uint64 job,
        uint16 stage,
        uint16 replica,
        uint32 interval,
        bytes32 claimId,
        address challenger
    ) external;

    /// @notice Convicts the worker of a lane that did not show data which it holds, to the demander's credit. Its claims stand: nothing is
    /// wrong with them. `claimId` is whose state it signed for, zero if it is the stage's files. Only `Custody`.
    function convictHolder(uint64 job, uint16 stage, uint16 replica, bytes32 claimId, address demander) external;

    /// @notice What the proof shows to be wrong: a statement, signed by a worker of the job. As `proveSigned`, without effects, and also of a
    /// claim that is final or void or not on record, or a receipt of a job that is settled. Reverts if it does not hold.
    function refutes(bytes calldata proof) external view returns (uint64 job, StepStatement memory statement);

    /// @notice Whether a claim of a training job is void: by a proof of it or of an earlier one of its lane.
    function isConvicted(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bool);

    /// @notice The EIP-712 digest that a worker signs to state (rule C-9).
    function statementDigest(StepStatement memory statement) external view returns (bytes32);

    /// @notice The EIP-712 digest that a worker signs to tell a neighbour what it sent (rule C-9).
    function edgeLogDigest(EdgeLog memory log) external view returns (bytes32);
}
