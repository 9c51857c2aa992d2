//! The structs that are shared with Solidity, word for word as `contracts/types` and `contracts/interfaces`
//! declare them. Field order is part of the commitment; a vector test on both sides keeps them equal.

use alloy_primitives::{Address, B256, keccak256};
use alloy_sol_types::{Eip712Domain, SolValue, sol};

use crate::ids::{JobId, Lane};
use crate::operator;

sol! {
    /// One operand of an operator; `source` 1 output, 2 state, 3 constant, 4 from previous, 5 from next stage.
    #[derive(Debug, PartialEq, Eq)]
    struct Operand {
        uint8 source;
        uint32 index;
        uint256 tensorType;
    }

    /// One instruction of a program.
    #[derive(Debug, PartialEq, Eq)]
    struct Operator {
        uint8 opcode;
        uint256 output;
        Operand[] operands;
        int64[] attributes;
    }

    /// Preimage of a program root (rule C-5). Bit n of `edges` is set if the stage has the n-th log
    /// of [`BoundaryLogs`].
    #[derive(Debug, PartialEq, Eq)]
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

    /// Roots of the boundary tensors of an interval, one tree for each neighbour and direction (zero where there is no
    /// neighbour); `Claim.io` is the hash of its ABI encoding.
    #[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    struct BoundaryLogs {
        bytes32 fromPrevious;
        bytes32 toPrevious;
        bytes32 fromNext;
        bytes32 toNext;
    }

    /// What a worker asserts about one interval, or about one text of a serving job: a receipt. EIP-712, domain of
    /// `Checkpoints`.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Claim {
        uint64 job;
        uint16 stage;
        uint16 replica;
        uint32 interval;
        bytes32 parentState;
        bytes32 newState;
        bytes32 io;
    }

    /// The rest of the previous claim's record, by which a new claim proves that it continues it.
    #[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    struct ClaimLink {
        bytes32 parentState;
        bytes32 io;
        uint64 committedAt;
    }

    /// A worker's signed answer to an auditor about one step; about a receipt, `step` is the text's number of tokens.
    /// EIP-712, domain of `Disputes`.
    #[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    struct StepStatement {
        bytes32 claimId;
        address auditor;
        uint32 step;
        bytes32 preState;
        bytes32 postState;
        bytes32 trace;
    }

    /// What is audited: a claim on record, or a receipt in the list of a redeemed epoch, since when it is fixed. The
    /// last four are of a receipt.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct AuditedClaim {
        Claim claim;
        uint64 fixedAt;
        uint32 epoch;
        bytes32 receipts;
        uint32 index;
        bytes32[] siblings;
    }

    /// What a drawn auditor computed of a claim's last step: the state that it starts from, and the trace.
    #[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    struct AuditAnswer {
        uint32 step;
        bytes32 preState;
        bytes32 trace;
    }

    /// Boundary tensors one stage sent to a neighbour in an interval, signed by the sender. EIP-712, domain
    /// of `Disputes`.
    #[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    struct EdgeLog {
        uint64 job;
        uint16 replica;
        uint16 fromStage;
        uint16 toStage;
        uint32 interval;
        bytes32 root;
    }

    /// A worker's binding offer for one lane. EIP-712, domain of `Jobs`.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Offer {
        uint64 job;
        bytes32 terms;
        uint16 stage;
        uint16 replica;
        address worker;
        uint128 pricePerInterval;
        uint40 expires;
    }

    /// What a user owes a lane of its serving job by now: tokens since the job began, those of the epochs before among
    /// them, and the list root of the claim ids of the epoch's receipts, for which it owes the rest. EIP-712, domain
    /// of `Channels`.
    #[derive(Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    struct Voucher {
        uint64 job;
        uint16 stage;
        uint16 replica;
        uint32 epoch;
        uint32 before;
        uint32 tokens;
        bytes32 receipts;
    }

    /// Terms of a job, fixed when it is posted. `kind` is [`JobKind`]. Amounts in wei of `token` (0 for ETH), stake in
    /// wei of SNO, times in seconds. `continues` is the job whose key it takes over, 0 for none, and `firstStep` how
    /// many steps came before its own.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct JobTerms {
        uint8 kind;
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

    /// Consecutive leaves of a tensor's tree, opened against its data root (rule C-3).
    #[derive(Debug, PartialEq, Eq)]
    struct LeafRange {
        uint32 firstLeaf;
        bytes leaves;
        bytes32[] siblings;
    }

    /// Everything that convicts a worker whose signed trace is not wired to its state or its logs.
    #[derive(Debug, PartialEq, Eq)]
    struct WiringProof {
        Claim claim;
        uint64 committedAt;
        BoundaryLogs logs;
        StepStatement statement;
        bytes signature;
        ProgramHeader program;
        bytes32[] programMembership;
        uint8 sink;
        uint32 index;
        uint32 operatorIndex;
        bytes32[] wiringMembership;
        bytes32 traceRoot;
        bytes32[] traceMembership;
        bytes32 sinkRoot;
        bytes32[] sinkMembership;
    }

    /// Two signed statements about one claim that cannot both be true, or one that its claim contradicts.
    #[derive(Debug, PartialEq, Eq)]
    struct ContradictionProof {
        Claim claim;
        uint64 committedAt;
        StepStatement first;
        bytes firstSignature;
        StepStatement second;
        bytes secondSignature;
    }

    /// A claim with its logs, and another log that the worker signed towards a neighbour.
    #[derive(Debug, PartialEq, Eq)]
    struct EquivocationProof {
        Claim claim;
        uint64 committedAt;
        BoundaryLogs logs;
        bool toNext;
        bytes32 root;
        bytes signature;
    }

    /// Where a challenge stands: what is asked for, or was answered last. `subject` is numbered as the contract does.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Position {
        uint8 subject;
        uint8 levels;
        uint8 guided;
        uint8 height;
        uint64 index;
        uint64 count;
        bytes32 node;
        bytes32 facts;
        bytes32 hints;
    }

    /// What a worker has committed itself to in the course of a challenge; zero where it has not yet.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
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
        uint256 tensorType;
    }

    /// One of the descendants that were answered, and the siblings that lead from it to the node above.
    #[derive(Debug, PartialEq, Eq)]
    struct Pick {
        uint32 child;
        bytes32 digest;
        bytes32[] siblings;
    }

    /// How much is asked for: so many levels below a node, or below the one to which hints lead from there.
    #[derive(Debug, PartialEq, Eq, Default)]
    struct Question {
        uint8 levels;
        bytes hints;
    }

    /// Where hints lead in the worker's tree: which of the descendants, its node, and the siblings from there up. Empty
    /// without hints.
    #[derive(Debug, PartialEq, Eq, Default)]
    struct Way {
        uint32 child;
        bytes32 node;
        bytes32[] siblings;
        bytes hints;
    }

    /// What a worker says about a step in the course of a challenge.
    #[derive(Debug, PartialEq, Eq)]
    struct StepAnswer {
        bytes32 trace;
        bytes signature;
        ProgramHeader program;
    }

    /// What a worker says about what crossed its boundaries: logs, the neighbours' signatures of what was received, and
    /// the program.
    #[derive(Debug, PartialEq, Eq)]
    struct LogsAnswer {
        BoundaryLogs logs;
        bytes previousSignature;
        bytes nextSignature;
        ProgramHeader program;
    }

    /// A holder's attestation that it has the state which a claim ends in, and gives it to whoever asks, until that
    /// claim is final or void. EIP-712, domain of `Custody`.
    #[derive(Debug, PartialEq, Eq)]
    struct Holding {
        bytes32 claimId;
    }

    /// Who attested it (C-16): the worker of another lane of the claim's job, named by that lane, or the job's user.
    /// No signature: nobody.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Holder {
        uint16 stage;
        uint16 replica;
        bytes signature;
    }

    /// Leaves of a tensor of a list, taken modulo the tensor's leaves and cut at its end.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Part {
        uint32 tensor;
        uint32 firstLeaf;
        uint32 leaves;
    }

    /// What is to be shown, by whom, until when: up to `deadline`, and before block `untilBlock`. `kind` is
    /// [`DemandKind`]. `list` is the list root (C-4) of `tensors` tensor roots; of what was sent, the claim's `io`.
    /// `claimId` is zero where it is of a stage's files.
    #[derive(Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
    struct Demand {
        uint8 kind;
        bytes32 claimId;
        uint64 job;
        uint16 stage;
        uint16 replica;
        uint32 interval;
        uint16 holderStage;
        uint16 holderReplica;
        address holder;
        address demander;
        bytes32 list;
        uint32 tensors;
        Part part;
        uint40 deadline;
        uint40 untilBlock;
    }

    /// What a demand asked for: the tensor's place in the list, and the leaves.
    #[derive(Debug, PartialEq, Eq)]
    struct Delivery {
        uint256 tensorType;
        bytes32 dataRoot;
        bytes32[] membership;
        LeafRange range;
    }

    /// What an operator may draw on besides its operands.
    #[derive(Debug, PartialEq, Eq)]
    struct StepContext {
        bytes32 jobKey;
        uint32 step;
    }

    /// Bytes of an operand that were opened, in the tensor's canonical encoding.
    #[derive(Debug, PartialEq, Eq)]
    struct Window {
        uint64 firstByte;
        bytes data;
    }
}

/// [`WiringProof::sink`]: the state after the step.
pub const SINK_STATE: u8 = 1;
/// [`WiringProof::sink`]: the log of tensors sent to the next stage.
pub const SINK_TO_NEXT: u8 = 2;
/// [`WiringProof::sink`]: the log of tensors sent to the previous stage.
pub const SINK_TO_PREVIOUS: u8 = 3;

/// EIP-712 domain of one of the protocol's contracts: name `Tensorlink`, version `1`.
pub fn domain(chain_id: u64, contract: Address) -> Eip712Domain {
    alloy_sol_types::eip712_domain! {
        name: "Tensorlink",
        version: "1",
        chain_id: chain_id,
        verifying_contract: contract,
    }
}

/// What a job's lanes do, as `JobTerms.kind` numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum JobKind {
    /// Steps that change a state; claims are intervals of them.
    #[default]
    Training = 0,
    /// Texts computed from nothing; claims are receipts.
    Serving = 1,
}

impl JobKind {
    /// The kind of a number on chain.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Training),
            1 => Some(Self::Serving),
            _ => None,
        }
    }
}

/// What a demand asks for a part of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum DemandKind {
    /// The state that a claim ends in.
    State = 1,
    /// A stage's constants or initial state.
    Files = 2,
    /// What a claim says was sent to the previous stage.
    SentToPrevious = 3,
    /// What a claim says was sent to the next stage.
    SentToNext = 4,
}

impl DemandKind {
    /// The kind of a number on chain; none of 0, which no demand has.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::State),
            2 => Some(Self::Files),
            3 => Some(Self::SentToPrevious),
            4 => Some(Self::SentToNext),
            _ => None,
        }
    }
}

impl JobTerms {
    /// What offers for a job of a user with these terms name it by (rule P-40).
    pub fn hash_of(&self, user: Address) -> B256 {
        keccak256((user, self.clone()).abi_encode_params())
    }
}

impl Claim {
    /// The lane this claim belongs to.
    pub const fn lane(&self) -> Lane {
        Lane { job: JobId(self.job), stage: self.stage, replica: self.replica }
    }
}

impl From<&operator::Operator> for Operator {
    fn from(op: &operator::Operator) -> Self {
        let operand = |operand: &operator::Operand| {
            let (source, index) = operand.source.to_pair();
            Operand { source, index, tensorType: operand.ty.to_word() }
        };
        Self {
            opcode: op.opcode as u8,
            output: op.output.to_word(),
            operands: op.operands.iter().map(operand).collect(),
            attributes: op.attributes.clone(),
        }
    }
}
