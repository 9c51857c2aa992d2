//! Why there is no answer about a claim.

use tensorlink_node::files::FileError;
use tensorlink_node::ports::StoreError;
use tensorlink_node::replay::ReplayError;
use tensorlink_num::TensorError;
use tensorlink_proof::commit::sign::SignatureError;
use thiserror::Error;

/// Why an auditor gets no answer. Its text goes to the auditor.
#[derive(Debug, Error)]
pub(crate) enum AuditError {
    /// The data is gone.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A CID in our record is malformed.
    #[error("the record on disk is damaged: {0}")]
    Record(#[from] cid::Error),
    /// A file on disk is damaged.
    #[error("the record on disk is damaged: {0}")]
    File(#[from] FileError),
    /// The interval could not be repeated.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// No such step.
    #[error("the claim has no step {0}")]
    NoStep(u32),
    /// No such entry in the log.
    #[error("nothing was sent that is entry {0} of the log")]
    NothingSent(u32),
    /// What the device gave is no tensor of its type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// We could not sign.
    #[error(transparent)]
    Sign(#[from] SignatureError),
    /// The answer is being worked out for others. Ask again.
    #[error("busy with other audits: ask again")]
    Busy,
    /// The claim may still be undone. Ask again.
    #[error("the claim is not confirmed here yet: ask again")]
    Unconfirmed,
    /// The repetition differs from the claim: the device cannot be trusted, and nothing it says is signed.
    #[error("the repeated interval differs from the claim")]
    Unsteady,
    /// Not a question about a claim.
    #[error("not a question about a claim")]
    OffTopic,
}
