//! The structs that are shared with Solidity.
//! Written by script/bindings from `contracts/types`. An enum is its number here.

use alloy_sol_types::sol;

sol! {
    /// One operand of an operator.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Operand {
        /// Where the tensor comes from: 1 output of an operator, 2 state, 3 constants, 4 previous stage, 5 next stage.
        uint8 source;
        /// Which one there: the operator, the state tensor, the constant, or, from a neighbour, the micro-batch.
        uint32 index;
        /// The tensor's type.
        uint256 tensorType;
    }

    /// One instruction of a program. Opcodes and attributes: `agents/num/SPEC.md`, rule N-(opcode + 10).
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Operator {
        /// Number of the operation, from 1.
        uint8 opcode;
        /// Type of the output.
        uint256 output;
        /// The operands, in the rule's order.
        Operand[] operands;
        /// The attributes, in the rule's order.
        int64[] attributes;
    }

    /// Preimage of a program root (C-5): the step function of one pipeline stage.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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
        /// List root (C-4) of the operators, as words, whose outputs leave the step: for each state tensor the one that
        /// is its next value, then for each micro-batch the one that goes to the next stage, then to the previous
        /// stage.
        bytes32 wiring;
    }

    /// Roots of the boundary logs of an interval (C-8); zero where there is no neighbour. Leaf `local step ·
    /// microBatches + micro-batch` of each.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// What a worker asserts about one interval, or, in a serving job, about one text: a receipt (C-12). EIP-712,
    /// domain of `Checkpoints`; its digest is the claim's id.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// The rest of the previous claim's record; proves that a claim continues it. Ignored for interval 0.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct ClaimLink {
        /// The previous claim's `parentState`.
        bytes32 parentState;
        /// The previous claim's `io`.
        bytes32 io;
        /// When the previous claim was committed, as a Unix timestamp.
        uint64 committedAt;
    }

    /// What a worker signs for an auditor about one step. EIP-712, domain of `Disputes`.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// What one stage sent to a neighbour in an interval. EIP-712, domain of `Disputes`.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// A worker's binding offer for one lane of one job. EIP-712, domain of `Jobs`.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// What a user owes a lane of its serving job by now. EIP-712, domain of `Channels`, signed by the job's user.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// Terms of a job, fixed when it is posted. Bounds: `TermsBounds`.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct JobTerms {
        /// Training or serving.
        uint8 kind;
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
        /// For each stage its program root (C-5); in a serving job, the list root (C-13) of its program roots by
        /// length.
        bytes32[] programs;
        /// For each stage the state root (C-6) that it starts from; empty in a serving job.
        bytes32[] initialStates;
        /// CID of the job's files, at most 128 bytes.
        bytes manifest;
    }

    /// Consecutive leaves of a tensor's tree.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct LeafRange {
        /// The first leaf, from 0.
        uint32 firstLeaf;
        /// The leaves, 256 bytes each.
        bytes leaves;
        /// Siblings that lead to the data root (C-3).
        bytes32[] siblings;
    }

    /// Everything that convicts a worker whose signed trace is not wired to its next state or to its log of tensors
    /// sent.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// Signed statements about one claim that contradict each other or the claim.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// A claim, and a log that its worker signed to a neighbour and that is not the claim's.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// What an operator may draw on besides its operands.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct StepContext {
        /// Key of random draws (C-10).
        bytes32 jobKey;
        /// The step, counted from the first of the jobs that continue each other (P-38).
        uint32 step;
    }

    /// Opened bytes of an operand.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Window {
        /// Where they begin in the tensor's canonical encoding (C-1).
        uint64 firstByte;
        /// The bytes.
        bytes data;
    }

    /// What is audited: a claim on record, fixed when it was committed; or a receipt in the list of an epoch, fixed
    /// when the epoch was redeemed.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct AuditedClaim {
        /// The claim, or the receipt.
        Claim claim;
        /// When it was fixed, as a Unix timestamp.
        uint64 fixedAt;
        /// Of a receipt: its epoch; otherwise 0.
        uint32 epoch;
        /// Of a receipt: list root (C-4) of the epoch's receipts; otherwise zero.
        bytes32 receipts;
        /// Of a receipt: its place in the list; otherwise 0.
        uint32 index;
        /// Of a receipt: siblings from its place to the list root; otherwise empty.
        bytes32[] siblings;
    }

    /// What an auditor computed of a claim's last step, as a `StepStatement` of an honest worker has it.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct AuditAnswer {
        /// The step: absolute, from 0; of a receipt, the text's number of tokens.
        uint32 step;
        /// State root (C-6) before the step.
        bytes32 preState;
        /// Trace root (C-7) of the step.
        bytes32 trace;
    }

    /// Where a challenge stands: what is asked for, or was answered last. The chain keeps its hash. Asked for are the
    /// descendants of `node` that lie `levels` below it, or below the node that the hints lead to.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Position {
        /// What is asked for.
        uint8 subject;
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

    /// What a worker has committed itself to in the course of a challenge; zero where it has not yet.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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
        uint256 tensorType;
    }

    /// One of the descendants that were answered.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Pick {
        /// Which of them, from 0.
        uint32 child;
        /// In the bottom row of a list the entry, elsewhere the node.
        bytes32 digest;
        /// Siblings that lead from it to the node above.
        bytes32[] siblings;
    }

    /// How much is asked for.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Question {
        /// How many levels below the position's node, or below the node to which the hints lead.
        uint8 levels;
        /// The hints (P-39); empty for none.
        bytes hints;
    }

    /// Where hints lead in the worker's tree (`Dissection.follow`). All zero or empty where a question has no hints.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// What a worker says about the step that it was asked about.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct StepAnswer {
        /// Trace root (C-7) of the step.
        bytes32 trace;
        /// Its signature of the statement, 65 bytes.
        bytes signature;
        /// Header of the stage's program.
        ProgramHeader program;
    }

    /// What a worker says about the tensors that it exchanged with its neighbours.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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

    /// What a holder signs: it has the state which a claim ends in, and gives it to whoever asks, until that claim is
    /// final or void. EIP-712, domain of `Custody`.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Holding {
        /// EIP-712 digest of the claim (C-9).
        bytes32 claimId;
    }

    /// Who signed a `Holding` (C-16): the worker of another lane of the claim's job, named by that lane, or the job's
    /// user, whatever lane is named.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Holder {
        /// Stage of the holder's lane.
        uint16 stage;
        /// Replica of the holder's lane.
        uint16 replica;
        /// Its signature, 65 bytes; empty for nobody.
        bytes signature;
    }

    /// Leaves of a tensor of a list. Whoever demands them need not know the tensor's type, and cannot ask for what is
    /// not there: the first leaf is taken modulo the tensor's leaves, and the part is cut at the tensor's end.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Part {
        /// The tensor's place in the list, from 0.
        uint32 tensor;
        /// The first leaf, from 0.
        uint32 firstLeaf;
        /// How many leaves, 1 to 64.
        uint32 leaves;
    }

    /// A demand: what has to be shown, by whom, until when. It is open up to and including `deadline`, and before block
    /// `untilBlock`: on a chain that makes no blocks nobody loses time.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Demand {
        /// What data.
        uint8 kind;
        /// EIP-712 digest of the claim (C-9); zero for a stage's files.
        bytes32 claimId;
        /// Id of the job.
        uint64 job;
        /// Stage of the claim's lane, or whose files they are.
        uint16 stage;
        /// Replica of the claim's lane; for files, of the holder's.
        uint16 replica;
        /// The claim's interval; 0 for files.
        uint32 interval;
        /// Stage of the holder's lane.
        uint16 holderStage;
        /// Replica of the holder's lane.
        uint16 holderReplica;
        /// Who has to show it.
        address holder;
        /// Who demanded it, and put up the bond.
        address demander;
        /// List root (C-4) of tensor roots. Of what was sent, whose list only the neighbours know, the claim's `io`:
        /// the hash of its logs (C-8).
        bytes32 list;
        /// Number of tensors in the list.
        uint32 tensors;
        /// What has to be shown of it.
        Part part;
        /// Last timestamp at which it is open.
        uint40 deadline;
        /// Block before which it is open in any case.
        uint40 untilBlock;
    }

    /// What a demand asked for.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Delivery {
        /// The tensor's type.
        uint256 tensorType;
        /// The tensor's data root (C-2).
        bytes32 dataRoot;
        /// Siblings from the tensor's place to the list root.
        bytes32[] membership;
        /// The leaves.
        LeafRange range;
    }
}
