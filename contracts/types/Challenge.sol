// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {BoundaryLogs, ProgramHeader, TensorType} from "./Types.sol";

/// @dev What a worker is asked for. `None` is invalid.
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

/// @dev Where a challenge stands: what is asked for, or was answered last. The chain keeps its hash. Asked for are the
/// descendants of `node` that lie `levels` below it, or below the node that the hints lead to.
struct Position {
    /// What is asked for.
    Subject subject;
    /// How many levels below the node.
    uint8 levels;
    /// How many levels hints lead down from `node` first; 0 if there are none.
    uint8 guided;
    /// Levels from `node` down to the tree's leaves.
    uint8 height;
    /// Place of `node` among the nodes of its height, from 0.
    uint64 index;
    /// Leaves of the tree, without padding.
    uint64 count;
    /// The node; zero while the tree's root is still to be given; the tensor's root while its data root is.
    bytes32 node;
    /// Hash of `Facts`.
    bytes32 facts;
    /// Hash of the hints; zero if there are none.
    bytes32 hints;
}

/// @dev What a worker has committed itself to in the course of a challenge; zero where it has not yet.
struct Facts {
    /// Root of the list (C-4) of states after each step of the claim.
    bytes32 steps;
    /// The step in question: absolute, from 0.
    uint32 step;
    /// State root before the step.
    bytes32 preState;
    /// State root after the step.
    bytes32 postState;
    /// Trace root of the step, as the statement has it.
    bytes32 trace;
    /// List root of the program's operators.
    bytes32 operators;
    /// Number of the program's operators.
    uint32 operatorCount;
    /// Number of the state's tensors.
    uint32 stateCount;
    /// Number of micro-batches of a step.
    uint32 microBatches;
    /// Type of the output that is asked for.
    TensorType tensorType;
}

/// @dev One of the descendants that were answered.
struct Pick {
    /// Which of them, from 0.
    uint32 child;
    /// In the bottom row of a list the entry, elsewhere the node.
    bytes32 digest;
    /// Siblings that lead from it to the node above.
    bytes32[] siblings;
}

/// @dev How much is asked for.
struct Question {
    /// How many levels below the position's node, or below the node to which the hints lead.
    uint8 levels;
    /// The hints (P-39); empty for none.
    bytes hints;
}

/// @dev Where hints lead in the worker's tree (`Dissection.follow`). All zero or empty where a question has no hints.
struct Way {
    /// Which of the descendants as many levels below the hints lead to, from 0.
    uint32 child;
    /// That descendant.
    bytes32 node;
    /// Siblings that lead from it to the position's node.
    bytes32[] siblings;
    /// The hints.
    bytes hints;
}

/// @dev What a worker says about the step that it was asked about.
struct StepAnswer {
    /// Trace root (C-7) of the step.
    bytes32 trace;
    /// Its signature of the statement, 65 bytes.
    bytes signature;
    /// Header of the stage's program.
    ProgramHeader program;
}

/// @dev What a worker says about the tensors that it exchanged with its neighbours.
struct LogsAnswer {
    /// The logs behind the claim's `io`.
    BoundaryLogs logs;
    /// What the previous stage's worker signed: the `EdgeLog` of what was received from it; empty if nothing was.
    bytes previousSignature;
    /// The same of the next stage's worker.
    bytes nextSignature;
    /// Header of the stage's program.
    ProgramHeader program;
}
