//! Proofs that convict, and what the contract checks of them.
//!
//! | module | what lives there |
//! |---|---|
//! | [`element`] | a proof of a wrong element |
//! | [`bytes`] | the same as the contract takes it, and back |
//! | [`case`] | what the chain knows, of training and of serving jobs |
//! | [`prover`] | [`Prover`]: builds each kind of proof and tries it before handing it out |
//! | [`openings`] | the fewest leaves that hold what an element is computed from |
//! | [`verify`] | `Disputes.proveSigned…`, check for check, in Rust |
//! | [`decode`] | operators back from their ABI form |

pub mod bytes;
pub mod case;
pub mod decode;
pub mod element;
pub mod openings;
pub mod prover;
pub mod verify;

use alloy_primitives::{B256, Bytes};
use tensorlink_num::OpError;
use tensorlink_types::abi::StepStatement;
use thiserror::Error;

pub use self::bytes::BytesError;
pub use self::case::{Case, Work};
pub use self::element::{ElementProof, OpenedTensor};
pub use self::prover::{Claimed, Prover, Sink, StepAnswer, StepLists};
pub use self::verify::{Conviction, verify_contradiction_proof, verify_element_proof, verify_wiring_proof};
use crate::commit::SignatureError;
use crate::merkle::OpeningError;

/// A worker's signed answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// What it says.
    pub statement: StepStatement,
    /// 65 bytes by the worker's key over the statement's digest.
    pub signature: Bytes,
}

/// A tensor that a proof opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opened {
    /// The output that is wrong.
    Output,
    /// An operand, by position.
    Operand(usize),
}

/// Why the contract would refuse a proof; named after the errors of `IDisputes`. None is worth a transaction.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Refusal {
    /// The claim is not the one on record, or no receipt of a serving job.
    #[error("the claim is not on record, or no receipt")]
    UnknownClaim,
    /// The statement is about another claim, a step outside the claim's interval, or a number of tokens that no
    /// text has.
    #[error("the statement is not about a step of this claim")]
    StatementMismatch,
    /// The worker did not sign.
    #[error("the worker did not sign the statement: {0}")]
    BadSignature(#[from] SignatureError),
    /// Header or wiring is not the registered program's.
    #[error("not the registered program")]
    WrongProgram,
    /// The operator is not at its place in the program, or no operator.
    #[error("not an operator of the program")]
    WrongOperator,
    /// The logs are not those the claim commits to.
    #[error("not the claim's boundary logs")]
    WrongLogs,
    /// A tensor is not where the operator takes it from.
    #[error("{0:?} is not in its commitment")]
    WrongMembership(Opened),
    /// Opened leaves do not belong to their tensor.
    #[error("opening {range} of {opened:?}: {error}")]
    WrongOpening {
        /// Which tensor.
        opened: Opened,
        /// Which of its ranges.
        range: usize,
        /// What is wrong.
        error: OpeningError,
    },
    /// The opening of the output is not one range that holds the element.
    #[error("the output is not opened where element {0} lies")]
    WrongOutput(u64),
    /// The element lies beyond the tensor's last leaf.
    #[error("the output has no element {0}")]
    ElementOutOfRange(u64),
    /// The element cannot be recomputed from what was opened.
    #[error("cannot recompute: {0}")]
    Recompute(#[from] OpError),
    /// The worker is right.
    #[error("the claim is right: there is no fault to prove")]
    NoFault,
}

/// Why a proof could not be built.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum FraudError {
    /// The program has no such operator, state tensor or micro-batch; the fault was computed for another program.
    #[error("the program has no {what} {index}")]
    OutOfProgram {
        /// Kind of thing.
        what: &'static str,
        /// Its index.
        index: u64,
    },
    /// The tensor given for the worker's output is not the one in its signed trace. Ask the worker again: what it has
    /// not shown cannot convict it.
    #[error("the worker's output opens {actual}, its trace holds {signed}")]
    NotInTrace {
        /// What the trace holds.
        signed: B256,
        /// What the given bytes open.
        actual: B256,
    },
    /// Roots given as a list of the worker's do not open what it committed to. Ask the worker again.
    #[error("the {0} does not open what the worker committed to")]
    List(&'static str),
    /// An operand differs from what the worker committed to: the first difference lies elsewhere. Compare again.
    #[error("operand {operand} is {actual}, the worker committed to {committed}: its fault lies earlier")]
    Operand {
        /// Position.
        operand: usize,
        /// What the worker committed to.
        committed: B256,
        /// Root of the tensor given.
        actual: B256,
    },
    /// An operand is missing or of another type than the operator says.
    #[error(transparent)]
    Operator(#[from] OpError),
    /// An element or leaf beyond the tensor.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The finished proof would not pass the contract.
    #[error("the proof would be refused: {0}")]
    Refused(#[from] Refusal),
}
