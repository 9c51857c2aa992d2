//! Questions and answers of [`crate::ports::Protocol::Rpc`].

use serde::{Deserialize, Serialize};
use tensorlink_types::abi::{BoundaryLogs, Offer, StepStatement};
use tensorlink_types::{ClaimId, JobId, Lane, TensorRoot};

/// Asked of a worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Request {
    /// A user asks for a binding offer for a lane of its posted job. The worker fetches and checks the shard first.
    Quote(Lane),
    /// A user asks whether the worker is ready to run its lane.
    Ready(JobId),
    /// A user asks for the final state of a finished lane.
    FinalState(Lane),
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
    /// An auditor asks for one operator's output of one step.
    Output {
        /// The claim.
        claim: ClaimId,
        /// The step.
        step: u32,
        /// Index of the operator in the program.
        operator: u32,
    },
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
    /// To `FinalState`: CID of the state file.
    FinalState(Vec<u8>),
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
    /// To `Output`: canonical bytes without padding.
    Output(Vec<u8>),
    /// The worker will not or cannot; the reason is for people.
    Declined(String),
}

/// What it takes to re-execute an interval. Files are fetched by CID from the worker.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct IntervalRecord {
    /// CID of the state file before the interval: canonical bytes of all state tensors, one after another.
    pub state: Vec<u8>,
    /// CID of the received boundary tensors: for each step, first all from the previous stage, then all from the next.
    pub inputs: Vec<u8>,
    /// The claim's boundary logs.
    pub logs: BoundaryLogs,
}
