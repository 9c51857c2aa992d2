// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {BoundaryLogs, ProgramHeader, TensorType} from "./Types.sol";

/// @dev What a worker is asked for. 0 is invalid.
enum Subject {
    None,
    /// A list (C-4) of the state roots after each step of the claim, and then its nodes.
    Steps,
    /// A signed statement about one step, with its trace.
    Statement,
    /// Nodes of the trace (C-7) of the stated step.
    Trace,
    /// Nodes of the state (C-6) after the stated step.
    State,
    /// The four roots behind the claim's `io`.
    Logs,
    /// Nodes of one of the four boundary logs (C-8).
    Log,
    /// Data root of one operator's output in the stated step, and then nodes and leaves of its tree (C-2).
    Output
}

/// @dev Where a challenge stands: what is asked for, or was answered last. The chain keeps the hash. The descendants of `node` that lie
/// `levels` below it are asked for. `node` stands at `index` among the nodes `height` above the leaves of a tree of `count` leaves; it is
/// zero while a tree's root is still to be given, and a tensor's root while its data root is. `facts` is the hash of `Facts`.
struct Position {
    Subject subject;
    uint8 levels;
    uint8 guided;
    uint8 height;
    uint64 index;
    uint64 count;
    bytes32 node;
    bytes32 facts;
    bytes32 hints;
}

/// @dev What a worker has committed itself to in the course of a challenge; zero where it has not yet. `steps` is the root of the list of
/// states; `step` to `trace` are the step in question and what its statement says; `operators` to `microBatches` are of its program;
/// `tensorType` is of the output asked for.
struct Facts {
    bytes32 steps;
    uint32 step;
    bytes32 preState;
    bytes32 postState;
    bytes32 trace;
    bytes32 operators;
    uint32 operatorCount;
    uint32 stateCount;
    uint32 microBatches;
    TensorType tensorType;
}

/// @dev One of the descendants that were answered: the `child`-th, and the siblings that lead from it to the node above.
/// In the bottom row of a list `digest` is the entry, elsewhere the node.
struct Pick {
    uint32 child;
    bytes32 digest;
    bytes32[] siblings;
}

/// @dev How much is asked for: so many levels below the position's node, or below the one to which the hints lead, if there are any.
struct Question {
    uint8 levels;
    bytes hints;
}

/// @dev Where hints lead in the worker's tree (`Dissection.follow`): to the `child`-th of the descendants as many levels below, which is `node`,
/// with the siblings from there up. All empty where a question has no hints.
struct Way {
    uint32 child;
    bytes32 node;
    bytes32[] siblings;
    bytes hints;
}

/// @dev What a worker says about the step that it was asked about: the trace's root, its signature of the statement, and the program.
struct StepAnswer {
    bytes32 trace;
    bytes signature;
    ProgramHeader program;
}

/// @dev What a worker says about what crossed its borders: the logs behind the claim's `io`, the neighbours' signatures of what was
/// received (of an `EdgeLog`; empty where nothing was), and the program.
struct LogsAnswer {
    BoundaryLogs logs;
    bytes previousSignature;
    bytes nextSignature;
    ProgramHeader program;
}
