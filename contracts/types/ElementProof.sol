// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

import {BoundaryLogs, Claim, Operator, ProgramHeader, StepStatement} from "./Types.sol";

/// @dev A run of bytes of the calldata: from where, in the upper half, and how many. Made and read through `Reader`.
type Slice is uint256;

/// @dev Consecutive leaves of a tensor's tree from `firstLeaf`, and the siblings that lead to the data root.
struct OpenedRange {
    uint32 firstLeaf;
    Slice leaves;
    Slice siblings;
}

/// @dev A tensor's place in the tree that its operand source names, and the leaves that are needed of it. Nothing leads to a tensor of
/// which nothing is needed.
struct OpenedTensor {
    Slice membership;
    OpenedRange[] ranges;
}

/// @dev Everything that convicts a worker whose signed trace holds one wrong element (C-17). `programMembership` leads from the program
/// to the registered list of a serving job, and is empty in a training job.
/// What follows from the rest is not in a proof, and zero until it is worked out: `statement.claimId`, `statement.trace` and
/// `program.operators`. Calldata is what a conviction is paid for.
struct ElementProof {
    Claim claim;
    uint64 committedAt;
    StepStatement statement;
    Slice signature;
    ProgramHeader program;
    Slice programMembership;
    Operator operator;
    uint32 operatorIndex;
    Slice operatorMembership;
    BoundaryLogs logs;
    uint64 element;
    OpenedTensor output;
    OpenedTensor[] operands;
}
