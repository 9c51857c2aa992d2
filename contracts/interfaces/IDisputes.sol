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
/// | Open | proveSigned… by anyone | Won: bond back, bounty to the auditor the statement names |
/// | Open | timeout (anyone, after the deadline) | Lost: bond to the worker; claim stays open to others |
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
    /// @dev For Element: the operator, the element, what the trace holds and what the operator gives.
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
    error StatementMismatch();
    error BadSignature();
    error WrongProgram();
    error WrongOperator();
    error WrongLogs();
    error WrongMembership(uint256 operand);
    error WrongOpening(uint256 operand, uint256 range);
    error ElementOutOfRange(uint64 element);
    error NoFault();

    function open(Claim calldata claim, uint64 committedAt) external returns (uint256 dispute);
    function proveSigned(ElementProof calldata proof) external;
    function proveSignedWiring(WiringProof calldata proof) external;
    function proveSignedContradiction(ContradictionProof calldata proof) external;
    function timeout(uint256 dispute) external;

    function disputeOf(uint256 dispute) external view returns (Dispute memory);
    function disputeCount() external view returns (uint256);
}
