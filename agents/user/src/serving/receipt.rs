//! Checks a receipt against the tensors that were sent and got. A wrong one is not paid for.

use tensorlink_node::wire::rpc::Receipt;
use tensorlink_proof::commit::receipt::{Crossed, receipt};
use tensorlink_proof::commit::{Contracts, SignatureError, verify_signer};
use tensorlink_types::{Address, ClaimId, Lane, TensorRoot};
use thiserror::Error;

/// What is wrong with a receipt.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ReceiptFault {
    /// There is none.
    #[error("the last answer brought no receipt")]
    Absent,
    /// Of another number of tokens.
    #[error("the receipt is for {actual} tokens, {expected} were sent")]
    Tokens {
        /// Tokens sent.
        expected: u32,
        /// Tokens in the receipt.
        actual: u32,
    },
    /// Its logs are not the roots of the tensors that were sent and got.
    #[error("the receipt's logs are not of the tensors that were sent and got")]
    Logs,
    /// Its claim is not this lane's about this text.
    #[error("the receipt claims something else than was asked for")]
    Claim,
    /// Not signed by the lane's worker.
    #[error("the receipt is not signed: {0}")]
    Signature(#[from] SignatureError),
}

/// What a receipt has to be about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// The lane.
    pub lane: Lane,
    /// Its worker.
    pub worker: Address,
    /// Number of the text.
    pub text: u32,
    /// Tokens of the text.
    pub tokens: u32,
    /// Root of the whole tensor that was sent.
    pub sent: TensorRoot,
    /// Root of the controls of the whole text, if the stage chooses tokens.
    pub controls: Option<TensorRoot>,
    /// Root of the whole tensor that was got.
    pub got: TensorRoot,
}

impl Due {
    /// Checks a receipt; the id of its claim.
    ///
    /// # Errors
    /// [`ReceiptFault`].
    pub fn check(&self, contracts: &Contracts, signed: &Receipt) -> Result<ClaimId, ReceiptFault> {
        if signed.tokens != self.tokens {
            return Err(ReceiptFault::Tokens { expected: self.tokens, actual: signed.tokens });
        }
        let crossed = Crossed { from_previous: self.sent, from_next: self.controls, to_next: self.got };
        let (claim, logs) = receipt(self.lane, self.text, &crossed);
        if signed.logs != logs.roots() {
            return Err(ReceiptFault::Logs);
        }
        if signed.claim != claim {
            return Err(ReceiptFault::Claim);
        }
        let id = contracts.claim_id(&claim);
        verify_signer(&signed.signature, id.0, self.worker)?;
        Ok(id)
    }
}
