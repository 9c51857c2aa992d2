// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @dev Structs that cross the border to the Rust agents (`agents/types/src/abi.rs`), field for field.

/// @dev Packed type of a tensor, from the top: bits (8), exponent (16, two's complement), rank (8), 96 zero bits, four
/// dimensions of 32 bits, outermost first, absent ones 0. Read through `TensorTypes`.
type TensorType is uint256;

/// @dev One operand of an operator. `source`: 1 output of operator `index`, 2 state tensor `index`, 3 constant `index`,
/// 4 tensor from the previous stage for micro-batch `index`, 5 from the next stage.
struct Operand {
    uint8 source;
    uint32 index;
    TensorType tensorType;
}

/// @dev One instruction of a program. Opcodes and attributes: `agents/num/SPEC.md`, rule N-(opcode + 10).
struct Operator {
    uint8 opcode;
    TensorType output;
    Operand[] operands;
    int64[] attributes;
}

/// @dev Preimage of a program root: the step function of one pipeline stage. Bit n of `edges` is set if the stage has the n-th log
/// of `BoundaryLogs`.
struct ProgramHeader {
    uint32 operatorCount;
    uint32 constantCount;
    uint32 stateCount;
    uint32 microBatches;
    uint8 edges;
    bytes32 operators;
    bytes32 constants;
    bytes32 wiring;
}

/// @dev Which operators produce the next state and the boundary tensors. `ProgramHeader.wiring` is the hash of its ABI encoding.
struct Wiring {
    uint32[] state;
    uint32[] toNext;
    uint32[] toPrevious;
}

/// @dev Roots of the boundary tensors of an interval; zero where there is no neighbour. Leaf `local step · microBatches +
/// microBatch` of each tree. `Claim.io` is the hash of its ABI encoding.
struct BoundaryLogs {
    bytes32 fromPrevious;
    bytes32 toPrevious;
    bytes32 fromNext;
    bytes32 toNext;
}

/// @dev What a worker asserts about one interval, or, in a serving job, about one text: a receipt (C-12). EIP-712, domain of
/// `Checkpoints`; its digest is the claim's id.
struct Claim {
    uint64 job;
    uint16 stage;
    uint16 replica;
    uint32 interval;
    bytes32 parentState;
    bytes32 newState;
    bytes32 io;
}

/// @dev The rest of the previous claim's record; proves that a claim continues it. Ignored for interval 0.
struct ClaimLink {
    bytes32 parentState;
    bytes32 io;
    uint64 committedAt;
}

/// @dev A worker's signed answer to `auditor` about one step (absolute, from 0); about a receipt, `step` is the text's number of tokens.
/// EIP-712, domain of `Disputes`.
struct StepStatement {
    bytes32 claimId;
    address auditor;
    uint32 step;
    bytes32 preState;
    bytes32 postState;
    bytes32 trace;
}

/// @dev Boundary tensors one stage sent to a neighbour in an interval. EIP-712, domain of `Disputes`.
struct EdgeLog {
    uint64 job;
    uint16 replica;
    uint16 fromStage;
    uint16 toStage;
    uint32 interval;
    bytes32 root;
}

/// @dev A worker's binding offer for one lane of one job. EIP-712, domain of `Jobs`.
struct Offer {
    uint64 job;
    uint16 stage;
    uint16 replica;
    address worker;
    uint128 pricePerInterval;
    uint40 expires;
}

/// @dev What a job's lanes do, and so what they claim and are paid for.
enum JobKind {
    /// Steps that change a state. Claims are intervals of steps, recorded by `Checkpoints`, paid when final.
    Training,
    /// Texts computed from nothing. Claims are receipts (C-12), signed off chain; tokens are paid by vouchers through `Channels`.
    Serving
}

/// @dev What a user owes a lane of its serving job by now: `tokens` since the job began, `before` of them in the epochs before. What goes
/// beyond those is owed for the receipts of `epoch`, whose claim ids have the list root (C-4) `receipts`. Epochs count from 1. EIP-712,
/// domain of `Channels`, signed by the job's user.
struct Voucher {
    uint64 job;
    uint16 stage;
    uint16 replica;
    uint32 epoch;
    uint32 before;
    uint32 tokens;
    bytes32 receipts;
}

/// @dev Terms of a job, fixed when posted. `token` 0 is ETH; `workerStake` in wei of SNO; times in seconds (`acceptBy` is a
/// timestamp). `programs` and `initialStates` have one entry per stage. `manifest` is the CID of the job's files.
/// Of a serving job `intervals` is the most tokens that a lane is paid for, each at the offer's `pricePerInterval`; `stepsPerInterval` is the
/// most tokens of a text; `programs` are list roots (C-4) of a stage's program roots by length, that for one token first;
/// and `initialStates` is empty. `continues` is the job whose key a training job takes over, 0 for none; `firstStep`, how many steps
/// came before its own (P-38).
struct JobTerms {
    JobKind kind;
    address token;
    uint16 stages;
    uint16 replicas;
    uint32 intervals;
    uint32 stepsPerInterval;
    uint40 acceptBy;
    uint40 duration;
    uint32 challengeWindow;
    uint128 workerStake;
    uint64 continues;
    uint32 firstStep;
    bytes32[] programs;
    bytes32[] initialStates;
    bytes manifest;
}

/// @dev Consecutive leaves of a tensor's tree from `firstLeaf`, and the siblings that lead to the data root.
struct LeafRange {
    uint32 firstLeaf;
    bytes leaves;
    bytes32[] siblings;
}

/// @dev Everything that convicts a worker whose signed trace is not wired to its next state (`sink` 1) or to its log of
/// tensors sent to the next (2) or previous (3) stage.
struct WiringProof {
    Claim claim;
    uint64 committedAt;
    BoundaryLogs logs;
    StepStatement statement;
    bytes signature;
    ProgramHeader program;
    bytes32[] programMembership;
    Wiring wiring;
    uint8 sink;
    uint32 index;
    bytes32 traceRoot;
    bytes32[] traceMembership;
    bytes32 sinkRoot;
    bytes32[] sinkMembership;
}

/// @dev Signed statements about one claim that contradict each other or the claim.
struct ContradictionProof {
    Claim claim;
    uint64 committedAt;
    StepStatement first;
    bytes firstSignature;
    StepStatement second;
    bytes secondSignature;
}

/// @dev A claim with its logs, and what the worker signed towards the next (or the previous) stage as its log of tensors sent there.
struct EquivocationProof {
    Claim claim;
    uint64 committedAt;
    BoundaryLogs logs;
    bool toNext;
    bytes32 root;
    bytes signature;
}

/// @dev What an operator may draw on besides its operands. `step` counts from the first of the jobs that continue each other (P-38).
struct StepContext {
    bytes32 jobKey;
    uint32 step;
}

/// @dev Opened bytes of an operand, from `firstByte` of the tensor's canonical encoding.
struct Window {
    uint64 firstByte;
    bytes data;
}
