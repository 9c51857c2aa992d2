// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {BoundaryLogs, Claim, Operator, ProgramHeader, StepStatement} from "./Types.sol";

/// @dev A run of bytes of the calldata: where it begins, in the upper half, and its length. Made and read through
/// `Reader`.
type Slice is uint256;

/// @dev Consecutive leaves of a tensor's tree.
struct OpenedRange {
    /// The first leaf, from 0.
    uint32 firstLeaf;
    /// The leaves, 256 bytes each.
    Slice leaves;
    /// Siblings that lead to the data root (C-3).
    Slice siblings;
}

/// @dev A tensor's place in the tree that its operand source names, and the leaves that are needed of it. Both are
/// empty for a tensor of which nothing is needed.
struct OpenedTensor {
    /// Siblings that lead from the tensor's root to that tree's root.
    Slice membership;
    /// The leaves.
    OpenedRange[] ranges;
}

/// @dev Everything that convicts a worker whose signed trace holds one wrong element (C-17). Calldata is what a
/// conviction costs, so a proof leaves out what follows from the rest: `statement.claimId`, `statement.trace` and
/// `program.operators` are zero until they are worked out.
struct ElementProof {
    /// The claim.
    Claim claim;
    /// When it was committed, as a Unix timestamp; 0 for a receipt.
    uint64 committedAt;
    /// The worker's statement about the step.
    StepStatement statement;
    /// The worker's signature of the statement, 65 bytes.
    Slice signature;
    /// Header of the stage's program.
    ProgramHeader program;
    /// Siblings that lead from the program to the registered list of a serving job; empty in a training job.
    Slice programMembership;
    /// The operator whose output is wrong.
    Operator operator;
    /// Its place in the program, from 0.
    uint32 operatorIndex;
    /// Siblings from there to the list root of the program's operators.
    Slice operatorMembership;
    /// The logs behind the claim's `io`; zero unless an operand comes from a neighbour.
    BoundaryLogs logs;
    /// Row-major index of the wrong element; padding counts on after the last.
    uint64 element;
    /// The output, with the leaves that hold the element.
    OpenedTensor output;
    /// The operands, with the leaves that the operator reads.
    OpenedTensor[] operands;
}
