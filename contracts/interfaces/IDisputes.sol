// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {ContradictionProof, EdgeLog, EquivocationProof, StepStatement, WiringProof} from "../types/Types.sol";

/// @title Disputes
/// @notice The worker's own signed words convict it in one transaction, for one of four faults: a wrong element; a
/// trace that is not wired to its state or logs; a contradiction; a log that it signed to its neighbour and that is not
/// the one of its claim. Anyone can prove it while the claim is live, without a bond. Where the answers have to be
/// forced, `IChallenges` forces them.
///
/// The claims of a serving job are receipts (C-12), of which the chain has no record: what the worker signed about one
/// makes it the worker's own. A receipt can be proved wrong until the job is settled, and until then the stake that
/// answers for it is locked.
///
/// Of a slashed stake's bounty one half is for auditors that had sealed answers about the lane (`IAudits.payShare`).
/// What is called the bounty below is the other half, the finder's (P-45).
///
/// @dev The bounty goes to the auditor to whom the worker addressed its signed statement, so copying a proof from the
/// mempool earns nothing.
interface IDisputes {
    /// @dev `None` is invalid.
    enum Fault {
        None,
        Element,
        Wiring,
        Contradiction,
        Silence,
        Equivocation,
        Withholding
    }

    /// @notice A worker is convicted.
    /// @param job id of the job
    /// @param stage stage of the worker's lane
    /// @param replica replica of the worker's lane
    /// @param claimId EIP-712 digest of the claim (C-9); zero where a stage's files were withheld
    /// @param worker who is convicted
    /// @param auditor receives the bounty
    /// @param fault what was proved
    /// @param step the statement's step: absolute, from 0; about a receipt, the text's number of tokens; for Silence,
    /// Equivocation and Withholding 0
    /// @param operatorIndex for Element the operator, for Wiring the operator that is wired; otherwise 0
    /// @param element for Element the row-major index of the element, for Wiring the entry of the sink; otherwise 0
    /// @param claimed for Element the mantissa that the trace holds; otherwise 0
    /// @param recomputed for Element the mantissa that the operator gives; otherwise 0
    event Convicted(
        uint64 indexed job,
        address indexed worker,
        address indexed auditor,
        uint16 stage,
        uint16 replica,
        bytes32 claimId,
        Fault fault,
        uint32 step,
        uint32 operatorIndex,
        uint64 element,
        int256 claimed,
        int256 recomputed
    );

    /// @notice The statement is about another claim, or about a step outside the claim's interval, or names a length
    /// that no text of the job has.
    error StatementMismatch();

    /// @notice Not signed by the lane's worker, or not for this chain and contract, or about another claim or trace
    /// than the proof's.
    error BadSignature();

    /// @notice The program is not the registered one, or does not have this operator; for a receipt, it is not the one
    /// for the signed length.
    error WrongProgram();

    /// @notice The program has no operator at this index, or the operator's output type is not valid, or the program
    /// wires nothing to this sink and index.
    error WrongOperator();

    /// @notice The logs are not those that the claim commits to.
    error WrongLogs();

    /// @notice A tensor is not where it should be.
    /// @param operand index of the operand; `type(uint256).max` for the output; the number of operands given if that is
    /// wrong; in a wiring proof 0 for the trace and 1 for the sink
    error WrongMembership(uint256 operand);

    /// @notice Leaves are not those of the tensor, or do not hold the element.
    /// @param operand index of the operand; `type(uint256).max` for the output
    /// @param range index of the range of leaves
    error WrongOpening(uint256 operand, uint256 range);

    /// @notice The output, padding included, has no such element.
    /// @param element row-major index of the element
    error ElementOutOfRange(uint64 element);

    /// @notice The bytes are no proof of a wrong element: there are too few, or too many.
    error MalformedProof();

    /// @notice The worker was right.
    error NoFault();

    /// @notice Only another contract of the deployment may call this.
    /// @param caller who called
    error Unauthorized(address caller);

    /// @notice Convicts a worker whose signed trace holds a wrong element, or padding that is not zero. Anyone may
    /// call.
    /// Effects, of every proof: voids the claim and those after it in its lane (a receipt has none to void); closes the
    /// job; slashes the lane's stake unless that has been done.
    /// Requirements: `contracts/SPEC.md`, "What a proof is".
    /// @param proof an `ElementProof` as bytes (C-17)
    function proveSigned(bytes calldata proof) external;

    /// @notice Convicts a worker whose signed trace does not agree with its post-state or its log of tensors sent.
    /// Anyone may call. Effects and requirements: as for `proveSigned`.
    /// @param proof the statement, and the two tensor roots that should be equal
    function proveSignedWiring(WiringProof calldata proof) external;

    /// @notice Convicts a worker by a signed statement that contradicts its claim, or by two that contradict each
    /// other. If the first contradicts the claim, the second is not looked at. The bounty goes to the auditor of the
    /// first. Anyone may call. Effects and requirements: as for `proveSigned`.
    /// @param proof the claim and the statements
    function proveSignedContradiction(ContradictionProof calldata proof) external;

    /// @notice Convicts a worker that signed one log to a neighbour as what it sent in an interval, and commits to
    /// another one in its claim. Anyone may call, until the job is settled, also about a claim that is final: a
    /// neighbour may claim later than the sender. The bounty goes to that neighbour's worker, to whom the log was
    /// signed, so copying the proof earns nothing. Effects: as for `proveSigned`, but what is final stays final.
    /// @param proof the claim with its logs, and the log that was signed
    function proveEquivocation(EquivocationProof calldata proof) external;

    /// @notice Convicts a worker that did not answer a challenge, or a demand about its claim, in time. Only
    /// `Challenges` and `Custody`.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param interval the claim's interval
    /// @param claimId EIP-712 digest of the claim (C-9)
    /// @param challenger who asked; receives the bounty
    function convictSilent(
        uint64 job,
        uint16 stage,
        uint16 replica,
        uint32 interval,
        bytes32 claimId,
        address challenger
    ) external;

    /// @notice Convicts the worker of a lane that did not show data which it holds. Its claims stand, since nothing is
    /// wrong with them. Only `Custody`.
    /// @param job id of the job
    /// @param stage the holder's stage
    /// @param replica the holder's replica
    /// @param claimId the claim whose state it signed for; zero for the stage's files
    /// @param demander who demanded the data; receives the bounty
    function convictHolder(uint64 job, uint16 stage, uint16 replica, bytes32 claimId, address demander) external;

    /// @notice What a proof shows to be wrong. Checks what `proveSigned` checks, without effects, and takes also a
    /// claim that is final, void or not on record, or a receipt of a job that is settled. Reverts if the proof does not
    /// hold.
    /// @param proof an `ElementProof` as bytes (C-17)
    /// @return job id of the claim's job
    /// @return statement the wrong statement, which a worker of the job signed
    function refutes(bytes calldata proof) external view returns (uint64 job, StepStatement memory statement);

    /// @notice Whether a claim of a training job is void, by a proof about it or about an earlier claim of its lane.
    /// @param job id of the job
    /// @param stage the lane's stage
    /// @param replica the lane's replica
    /// @param interval the claim's interval
    /// @return whether it is void
    function isConvicted(uint64 job, uint16 stage, uint16 replica, uint32 interval) external view returns (bool);

    /// @notice The EIP-712 digest that a worker signs to make a statement (C-9).
    /// @param statement the statement
    /// @return the digest
    function statementDigest(StepStatement memory statement) external view returns (bytes32);

    /// @notice The EIP-712 digest that a worker signs to tell a neighbour what it sent (C-9).
    /// @param log the log
    /// @return the digest
    function edgeLogDigest(EdgeLog memory log) external view returns (bytes32);
}
