//! What a challenger does next, or why it can do nothing.

use alloy_primitives::{B256, Bytes};
use tensorlink_num::Tensor;
use tensorlink_types::abi::{ContradictionProof, WiringProof};
use thiserror::Error;

use super::Move;
use crate::commit::Boundary;
use crate::commit::program::ProgramTooLarge;
use crate::fraud::{ElementProof, FraudError};

/// All tensors of one operator of a step, one's own.
#[derive(Clone, Debug)]
pub struct Tensors {
    /// Absolute step.
    pub step: u32,
    /// Operator.
    pub operator: u32,
    /// Its output.
    pub output: Tensor,
    /// Its operands, in order.
    pub operands: Vec<Tensor>,
}

/// What to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Next {
    /// Ask.
    Ask(Box<Move>),
    /// Compute the tensors of this operator, and ask again with them.
    Tensors {
        /// Absolute step.
        step: u32,
        /// Operator.
        operator: u32,
    },
    /// Convict: this element is wrong.
    Element(Box<ElementProof>),
    /// Convict: this output did not go where the program sends it.
    Wiring(Box<WiringProof>),
    /// Convict: the worker has signed two statements about one step.
    Contradiction(Box<ContradictionProof>),
    /// Convict the neighbour: what the worker received is another log than one's own execution took in, and its sender
    /// signed it.
    Equivocation {
        /// Over which boundary the worker received it.
        boundary: Boundary,
        /// The log.
        root: B256,
        /// The sender's signature.
        signature: Bytes,
    },
}

/// Why there is nothing to ask and nothing to prove. The challenge will be lost to the worker.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Stuck {
    /// It is not the challenger's turn.
    #[error("it is not the challenger's turn")]
    Turn,
    /// Everything that the worker has answered is what one's own execution gives.
    #[error("the claim is what our own execution gives: there is no fault to prove")]
    NoFault,
    /// One's own execution does not cover the claim or its program; execute it again.
    #[error("our own execution does not cover the claim ({0})")]
    Own(&'static str),
    /// A proof could not be built, or would be refused.
    #[error(transparent)]
    Fraud(#[from] FraudError),
}

impl From<ProgramTooLarge> for Stuck {
    fn from(error: ProgramTooLarge) -> Self {
        Self::Fraud(error.into())
    }
}
