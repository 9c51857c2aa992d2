//! Questions and answers of [`crate::ports::Protocol::Rpc`].

use serde::{Deserialize, Serialize};
use tensorlink_proof::commit::SenderSignatures;
use tensorlink_types::abi::{BoundaryLogs, Claim, Holder, Offer, StepStatement, Voucher};
use tensorlink_types::{ClaimId, JobId, Lane, TensorRoot};

/// Most bytes of an operator's output in one answer.
pub const OUTPUT_PIECE: usize = 4 << 20;

/// Asked of a worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// A user asks for a binding offer for a lane of its posted job. The worker fetches and checks the shard first.
    Quote(Lane),
    /// A user asks whether the worker is ready to run its lane.
    Ready(JobId),
    /// A worker asks its keeper, or its job's user, to fetch and keep the state that its claim ends in.
    Keep {
        /// The claim, on chain.
        claim: Claim,
        /// Timestamp of its block.
        committed_at: u64,
        /// CID of the state's file.
        state: Vec<u8>,
    },
    /// Anybody asks a claim's worker, or who keeps it for that worker, for the state that the claim ends in.
    EndState(ClaimId),
    /// An auditor asks for what it takes to re-execute a claim's interval.
    Interval(ClaimId),
    /// An auditor asks for signed statements about all steps of a claim.
    Statements(ClaimId),
    /// An auditor asks for the roots of the tensors sent in a claim's interval.
    SentLogs(ClaimId),
    /// An auditor asks for the tensor roots of the state after one step (absolute).
    State {
        /// The claim.
        claim: ClaimId,
        /// The step.
        step: u32,
    },
    /// An auditor asks for the roots of all operator outputs of one step (absolute).
    Trace {
        /// The claim.
        claim: ClaimId,
        /// The step.
        step: u32,
    },
    /// An auditor asks for one operator's output of one step, piece by piece: of a long text it may be larger than any
    /// message.
    Output {
        /// The claim.
        claim: ClaimId,
        /// The step.
        step: u32,
        /// Index of the operator in the program.
        operator: u32,
        /// The byte that the piece begins with.
        from: u64,
    },
    /// The user of a serving job sends the next tokens of a text through a lane.
    Advance(Advance),
    /// The user needs no more of a text and wants no receipt for it: the worker forgets it.
    Abandon {
        /// The lane.
        lane: Lane,
        /// The text.
        text: u32,
    },
    /// The user pays for what it received.
    Pay {
        /// What it owes by now.
        voucher: Voucher,
        /// Its signature (rule C-9).
        signature: Vec<u8>,
    },
    /// An auditor asks for the receipts of an epoch, in the order of the list that the voucher names.
    Receipts {
        /// The lane.
        lane: Lane,
        /// The epoch.
        epoch: u32,
    },
    /// A worker asks its keeper, or its job's user, to have the state that its newest claim ends in at hand, without
    /// attesting it, until a newer one is there.
    Mirror {
        /// The claim, on chain.
        claim: Claim,
        /// Timestamp of its block.
        committed_at: u64,
        /// CID of the state's file.
        state: Vec<u8>,
    },
}

/// The next tokens of a text. Its tokens are sent in order; what was sent may be sent again after an answer was lost,
/// and is then computed again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Advance {
    /// The lane.
    pub lane: Lane,
    /// Number of the text in the job, chosen by the user; never used twice.
    pub text: u32,
    /// Tokens of the text that were sent before these.
    pub position: u32,
    /// Rows of these tokens in each tensor that the stage receives: canonical bytes without padding.
    #[serde(with = "super::blobs")]
    pub inputs: Vec<Vec<u8>>,
    /// Whether these are the last: the answer brings the receipt, and the worker ends the text.
    pub last: bool,
}

/// A worker's receipt for a text (rule C-12).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// What it asserts.
    pub claim: Claim,
    /// Preimage of the claim's `io`.
    pub logs: BoundaryLogs,
    /// Tokens of the text.
    pub tokens: u32,
    /// The worker's signature over the claim (rule C-9).
    pub signature: Vec<u8>,
}

/// A worker's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Response {
    /// To `Quote`.
    Offer {
        /// The offer.
        offer: Offer,
        /// Its signature (rule C-9).
        signature: Vec<u8>,
    },
    /// To `Ready`.
    Ready(bool),
    /// To `Keep`: the keeper's attestation (rule C-16).
    Holding(Vec<u8>),
    /// To `EndState`: CID of the state's file.
    EndState(Vec<u8>),
    /// To `Interval`.
    Interval(IntervalRecord),
    /// To `Statements`: one per step, in order, each with its signature.
    Statements(Vec<(StepStatement, Vec<u8>)>),
    /// To `SentLogs`; empty where there is no such neighbour.
    SentLogs {
        /// To the previous stage.
        to_previous: Vec<TensorRoot>,
        /// To the next stage.
        to_next: Vec<TensorRoot>,
    },
    /// To `Trace` and `State`.
    Roots(Vec<TensorRoot>),
    /// To `Output`: of its canonical bytes without padding those that were asked for, at most [`OUTPUT_PIECE`]; none
    /// beyond the last.
    Output(#[serde(with = "serde_bytes")] Vec<u8>),
    /// To `Advance`.
    Advanced {
        /// Rows that these tokens gave, or the whole output of a stage that gives one row a text: canonical bytes
        /// without padding.
        #[serde(with = "serde_bytes")]
        output: Vec<u8>,
        /// To the last tokens of a text.
        receipt: Option<Receipt>,
    },
    /// To `Advance`, of a worker that has only this many tokens of the text, after a restart for instance: send it from
    /// there on.
    Rewind {
        /// Tokens it has.
        position: u32,
    },
    /// To `Advance`, of a worker to whom so many tokens are owed: pay first.
    Unpaid {
        /// Tokens delivered in finished texts and not covered by a voucher.
        tokens: u32,
    },
    /// To `Advance`, of a worker with too many texts at once: come back later.
    Busy,
    /// To `Abandon` and `Pay`.
    Done,
    /// To `Receipts`.
    Receipts(Vec<Claim>),
    /// The worker will not or cannot; the reason is for people.
    Declined(String),
    /// To `Quote`: never, whatever time passes; the reason is for people.
    Refused(String),
}

/// What it takes to re-execute an interval. Files are fetched by CID from the worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IntervalRecord {
    /// CID of the state file before the interval: canonical bytes of all state tensors, one after another. Of a
    /// receipt: no bytes.
    pub state: Vec<u8>,
    /// CID of the received boundary tensors: for each step, first all from the previous stage, then all from the next.
    pub inputs: Vec<u8>,
    /// The claim's boundary logs.
    pub logs: BoundaryLogs,
    /// The neighbours' signatures of what was received; of a receipt none.
    pub signatures: SenderSignatures,
    /// Who else has the state after the interval; without a signature nobody yet.
    pub holder: Holder,
}
