// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {Claim, ContradictionProof, ElementProof, WiringProof} from "../types/Types.sol";

/// @title Disputes
/// @notice A claim that is live can be disputed by anyone. The worker's own signed answers convict it in one transaction:
/// a wrong element, a trace that is not wired to its state or logs, or a contradiction. No bond is needed for a proof. A
/// bond buys time: `open` holds back a claim's finality while the challenger gathers its proof.
///
/// | state | move | next |
/// |---|---|---|
/// | – | open (anyone, bond) | Open |
/// | Open | timeout (anyone, once the claim is void by a proof) | Won: bond back |
/// | Open | timeout (anyone, after the deadline) | Lost: bond to the worker; claim stays open to others |
///
/// A proof needs no dispute and ends none: it voids claims, and each dispute on one of them is then ended by its own
/// `timeout`, so that any number of disputes costs a prover nothing.
///
/// The claims of a serving job are receipts (C-12), of which the chain has no record: what the worker signed about one makes it its
/// own. No dispute is opened on a receipt, and none is needed: it can be proved wrong until the job is settled, and so long
/// the stake that answers for it is locked.
///
/// @dev The bounty goes to the auditor to whom the worker addressed its signed statement, so copying a proof from the
/// mempool earns nothing. Forced reveals against a silent worker extend this table: Open → AwaitWorker.
interface IDisputes {
    /// @dev 0 is a dispute that does not exist.
    enum State {
        None,
        Open,
        Won,
        Lost
    }

    struct Dispute {
        address challenger;
        State state;
        uint40 deadline;
        uint128 bond;
        uint64 job;
        uint16 stage;
        uint16 replica;
        uint32 interval;
        bytes32 claimId;
        address worker;
    }

    /// @dev 0 is invalid.
    enum Fault {
        None,
        Element,
        Wiring,
        Contradiction
    }

    event DisputeOpened(uint256 indexed dispute, bytes32 indexed claimId, address indexed challenger, uint40 deadline);
    event DisputeLost(uint256 indexed dispute, bytes32 indexed claimId);
    event DisputeWon(uint256 indexed dispute, bytes32 indexed claimId);
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

    error UnknownDispute(uint256 dispute);
    error DisputeOver(uint256 dispute);
    error DeadlineNotReached(uint40 deadline);
    error DeadlinePassed(uint40 deadline);
    /// @dev The statement is about another claim, or about a step that is not of the claim's interval, or a length that no text of the
    /// job has.
    error StatementMismatch();
    /// @dev Not by the lane's worker, or not for this chain and contract.
    error BadSignature();
    /// @dev Not the registered one; over a receipt, not the one for the signed length.
    error WrongProgram();
    /// @dev The operator is not the program's at this index; or the program wires nothing to this sink and index.
    error WrongOperator();
    error WrongLogs();
    /// @dev The tensor is not where it should be. `operand` is `type(uint256).max` for the output, or the number of operands
    /// given where that is wrong; in a wiring proof 0 is the trace and 1 the sink.
    error WrongMembership(uint256 operand);
    /// @dev The leaves are not those of the tensor, or not the ones that hold the element.
    error WrongOpening(uint256 operand, uint256 range);
    error ElementOutOfRange(uint64 element);
    /// @dev The worker was right.
    error NoFault();

    /// @notice Holds back the claim's finality for one dispute period.
    /// Effects: takes the bond in SNO, for which an allowance is needed.
    /// Requirements: the claim is on record and live, and its window open.
    function open(Claim calldata claim, uint64 committedAt) external returns (uint256 dispute);

    /// @notice Convicts a worker whose signed trace holds a wrong element (or padding that is not zero).
    /// Effects, of every proof: voids the claim and those after it in its lane (of a receipt there is none to void), closes the job,
    /// and slashes the lane's stake unless that has been done.
    /// Requirements: `contracts/SPEC.md`, "What a proof is".
    function proveSigned(ElementProof calldata proof) external;

    /// @notice Convicts a worker whose signed trace does not agree with its post-state or its log of tensors sent.
    function proveSignedWiring(WiringProof calldata proof) external;

    /// @notice Convicts a worker by one signed statement that contradicts its claim, or by two that contradict each other. In
    /// the first case the second statement is not looked at. The bounty goes to the auditor of the first.
    function proveSignedContradiction(ContradictionProof calldata proof) external;

    /// @notice Ends a dispute and pays out its bond: to the challenger as soon as its claim is void, to the worker after the
    /// deadline.
    function timeout(uint256 dispute) external;

    function disputeOf(uint256 dispute) external view returns (Dispute memory);

    /// @notice Disputes ever opened; ids run from 1 to it.
    function disputeCount() external view returns (uint256);
}
