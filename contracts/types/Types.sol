// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.28;

/// @dev Structs that the contracts share with the Rust agents; `script/bindings` writes theirs from these.

/// @dev Packed type of a tensor, from the top: bits (8), exponent (16, two's complement), rank (8), 96 zero bits, four
/// dimensions of 32 bits, outermost first, absent ones 0. Read through `TensorTypes`.
type TensorType is uint256;

/// @dev One operand of an operator.
struct Operand {
    /// Where the tensor comes from: 1 output of an operator, 2 state, 3 constants, 4 previous stage, 5 next stage.
    uint8 source;
    /// Which one there: the operator, the state tensor, the constant, or, from a neighbour, the micro-batch.
    uint32 index;
    /// The tensor's type.
    TensorType tensorType;
}

/// @dev One instruction of a program. Opcodes and attributes: `agents/num/SPEC.md`, rule N-(opcode + 10).
struct Operator {
    /// Number of the operation, from 1.
    uint8 opcode;
    /// Type of the output.
    TensorType output;
    /// The operands, in the rule's order.
    Operand[] operands;
    /// The attributes, in the rule's order.
    int64[] attributes;
}

/// @dev Preimage of a program root (C-5): the step function of one pipeline stage.
struct ProgramHeader {
    /// Number of operators.
    uint32 operatorCount;
    /// Number of constants.
    uint32 constantCount;
    /// Number of state tensors.
    uint32 stateCount;
    /// Number of micro-batches of a step.
    uint32 microBatches;
    /// Bit n is set if the stage has the n-th log of `BoundaryLogs`.
    uint8 edges;
    /// List root (C-4) of the operators.
    bytes32 operators;
    /// List root (C-4) of the constants' tensor roots.
    bytes32 constants;
    /// List root (C-4) of the operators, as words, whose outputs leave the step: for each state tensor the one that is
    /// its next value, then for each micro-batch the one that goes to the next stage, then to the previous stage.
    bytes32 wiring;
}

/// @dev Roots of the boundary logs of an interval (C-8); zero where there is no neighbour. Leaf
/// `local step · microBatches + micro-batch` of each.
struct BoundaryLogs {
    /// What was received from the previous stage.
    bytes32 fromPrevious;
    /// What was sent to the previous stage.
    bytes32 toPrevious;
    /// What was received from the next stage.
    bytes32 fromNext;
    /// What was sent to the next stage.
    bytes32 toNext;
}

/// @dev What a worker asserts about one interval, or, in a serving job, about one text: a receipt (C-12). EIP-712,
/// domain of `Checkpoints`; its digest is the claim's id.
struct Claim {
    /// Id of the job.
    uint64 job;
    /// The lane's stage.
    uint16 stage;
    /// The lane's replica.
    uint16 replica;
    /// The interval, from 0; of a receipt, the number of the text, as the user counts them from 0.
    uint32 interval;
    /// State root (C-6) before the interval; zero in a receipt.
    bytes32 parentState;
    /// State root (C-6) after the interval; zero in a receipt.
    bytes32 newState;
    /// Hash of the ABI encoding of `BoundaryLogs`.
    bytes32 io;
}

/// @dev The rest of the previous claim's record; proves that a claim continues it. Ignored for interval 0.
struct ClaimLink {
    /// The previous claim's `parentState`.
    bytes32 parentState;
    /// The previous claim's `io`.
    bytes32 io;
    /// When the previous claim was committed, as a Unix timestamp.
    uint64 committedAt;
}

/// @dev What a worker signs for an auditor about one step. EIP-712, domain of `Disputes`.
struct StepStatement {
    /// EIP-712 digest of the claim (C-9).
    bytes32 claimId;
    /// To whom it is addressed, and who gets the bounty if it convicts.
    address auditor;
    /// The step: absolute, from 0; about a receipt, the text's number of tokens.
    uint32 step;
    /// State root (C-6) before the step.
    bytes32 preState;
    /// State root (C-6) after the step.
    bytes32 postState;
    /// Trace root (C-7) of the step.
    bytes32 trace;
}

/// @dev What one stage sent to a neighbour in an interval. EIP-712, domain of `Disputes`.
struct EdgeLog {
    /// Id of the job.
    uint64 job;
    /// Replica of both lanes.
    uint16 replica;
    /// The sender's stage.
    uint16 fromStage;
    /// The receiver's stage.
    uint16 toStage;
    /// The interval.
    uint32 interval;
    /// Root of the boundary log (C-8).
    bytes32 root;
}

/// @dev A worker's binding offer for one lane of one job. EIP-712, domain of `Jobs`.
struct Offer {
    /// Id of the job.
    uint64 job;
    /// Whose job it is, and what it asks for: `keccak256(abi.encode(user, terms))` (P-40).
    bytes32 terms;
    /// The lane's stage.
    uint16 stage;
    /// The lane's replica.
    uint16 replica;
    /// Who offers, and signs.
    address worker;
    /// Price of an interval, or of a token of a serving job, in wei of the job's token.
    uint128 pricePerInterval;
    /// Last timestamp at which the offer can be accepted.
    uint40 expires;
}

/// @dev What a job's lanes do, and so what they claim and are paid for.
enum JobKind {
    /// Steps that change a state. Claims are intervals of steps, recorded by `Checkpoints`, paid when final.
    Training,
    /// Texts computed from nothing. Claims are receipts (C-12), signed off chain; tokens are paid by vouchers through
    /// `Channels`.
    Serving
}

/// @dev What a user owes a lane of its serving job by now. EIP-712, domain of `Channels`, signed by the job's user.
struct Voucher {
    /// Id of the job.
    uint64 job;
    /// The lane's stage.
    uint16 stage;
    /// The lane's replica.
    uint16 replica;
    /// Number of the epoch, from 1.
    uint32 epoch;
    /// Tokens owed for the epochs before.
    uint32 before;
    /// Tokens owed since the job began; those beyond `before` are owed for the receipts of this epoch.
    uint32 tokens;
    /// List root (C-4) of the claim ids of the epoch's receipts.
    bytes32 receipts;
}

/// @dev Terms of a job, fixed when it is posted. Bounds: `TermsBounds`.
struct JobTerms {
    /// Training or serving.
    JobKind kind;
    /// What the job pays in: SNO, or 0 for ETH.
    address token;
    /// Number of stages.
    uint16 stages;
    /// Number of replicas of each stage.
    uint16 replicas;
    /// Number of intervals; of a serving job, the most tokens that a lane is paid for.
    uint32 intervals;
    /// Steps of an interval; of a serving job, the most tokens of a text.
    uint32 stepsPerInterval;
    /// Last timestamp at which the job can be accepted and started.
    uint40 acceptBy;
    /// Seconds from the start to the deadline.
    uint40 duration;
    /// The challenge window, in seconds: of claims (P-8), or of redemptions (P-20).
    uint32 challengeWindow;
    /// What a worker locks for each lane, in wei of SNO.
    uint128 workerStake;
    /// The job whose key a training job takes over; 0 for none (P-38).
    uint64 continues;
    /// Steps that came before the job's own, in the jobs that it continues (P-38).
    uint32 firstStep;
    /// For each stage its program root (C-5); in a serving job, the list root (C-13) of its program roots by length.
    bytes32[] programs;
    /// For each stage the state root (C-6) that it starts from; empty in a serving job.
    bytes32[] initialStates;
    /// CID of the job's files, at most 128 bytes.
    bytes manifest;
}

/// @dev Consecutive leaves of a tensor's tree.
struct LeafRange {
    /// The first leaf, from 0.
    uint32 firstLeaf;
    /// The leaves, 256 bytes each.
    bytes leaves;
    /// Siblings that lead to the data root (C-3).
    bytes32[] siblings;
}

/// @dev Everything that convicts a worker whose signed trace is not wired to its next state or to its log of tensors
/// sent.
struct WiringProof {
    /// The claim.
    Claim claim;
    /// When it was committed, as a Unix timestamp; 0 for a receipt.
    uint64 committedAt;
    /// The logs behind the claim's `io`; not looked at for sink 1.
    BoundaryLogs logs;
    /// The worker's statement about the step.
    StepStatement statement;
    /// The worker's signature of the statement, 65 bytes.
    bytes signature;
    /// Header of the stage's program.
    ProgramHeader program;
    /// Siblings that lead from the program to the registered list of a serving job; empty in a training job.
    bytes32[] programMembership;
    /// Where the output should be: 1 the next state, 2 the log to the next stage, 3 the log to the previous stage.
    uint8 sink;
    /// Which entry of the sink: the state tensor, or the micro-batch.
    uint32 index;
    /// The operator that the program wires to it.
    uint32 operatorIndex;
    /// Siblings that lead from the operator to the program's wiring.
    bytes32[] wiringMembership;
    /// Tensor root that the trace has for the wired operator.
    bytes32 traceRoot;
    /// Siblings that lead from it to the trace root.
    bytes32[] traceMembership;
    /// Tensor root that the sink has.
    bytes32 sinkRoot;
    /// Siblings that lead from it to the sink's root.
    bytes32[] sinkMembership;
}

/// @dev Signed statements about one claim that contradict each other or the claim.
struct ContradictionProof {
    /// The claim.
    Claim claim;
    /// When it was committed, as a Unix timestamp; 0 for a receipt.
    uint64 committedAt;
    /// A statement of the worker; its auditor gets the bounty.
    StepStatement first;
    /// The worker's signature of it, 65 bytes.
    bytes firstSignature;
    /// Another one; not looked at if the first contradicts the claim.
    StepStatement second;
    /// The worker's signature of it, 65 bytes.
    bytes secondSignature;
}

/// @dev A claim, and a log that its worker signed to a neighbour and that is not the claim's.
struct EquivocationProof {
    /// The claim.
    Claim claim;
    /// When it was committed, as a Unix timestamp.
    uint64 committedAt;
    /// The logs behind the claim's `io`.
    BoundaryLogs logs;
    /// True: signed to the next stage; false: to the previous one.
    bool toNext;
    /// Root of the log that was signed.
    bytes32 root;
    /// The worker's signature of the `EdgeLog`, 65 bytes.
    bytes signature;
}

/// @dev What an operator may draw on besides its operands.
struct StepContext {
    /// Key of random draws (C-10).
    bytes32 jobKey;
    /// The step, counted from the first of the jobs that continue each other (P-38).
    uint32 step;
}

/// @dev Opened bytes of an operand.
struct Window {
    /// Where they begin in the tensor's canonical encoding (C-1).
    uint64 firstByte;
    /// The bytes.
    bytes data;
}
