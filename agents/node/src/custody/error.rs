//! Why a state is not kept.

use tensorlink_proof::commit::sign::SignatureError;
use thiserror::Error;

use crate::files::FileError;
use crate::journal::JournalError;
use crate::ports::{ChainError, StoreError};
use crate::shard::ShardError;

/// Why a state is not kept. Its text goes to who asked.
#[derive(Debug, Error)]
pub enum KeepError {
    /// It is not the asking worker's, or not on chain.
    #[error("no claim of yours on chain is this one")]
    Unknown,
    /// The claim is final, or its job is over: nobody needs an attestation for it.
    #[error("the claim is final already")]
    Final,
    /// So many states are being fetched, or kept of that lane until they are final, as this node does at once.
    #[error("as many states are kept as this node does at once: ask again later")]
    Busy,
    /// It took too long to fetch.
    #[error("the state did not arrive in time: ask again later")]
    Late,
    /// A fetch of the lane's was in vain, or one to be mirrored took its part of the time: it has to wait so many
    /// seconds.
    #[error("the file before was wrong, did not arrive, or was mirrored just now: ask again in {0} s")]
    Paused(u64),
    /// It is to be mirrored, and that of a newer claim of its lane is.
    #[error("the state of a newer claim is here")]
    Older,
    /// It is not the claim's.
    #[error("the state is not the one that the claim ends in")]
    OtherState,
    /// It is more than we can check now.
    #[error("to check the state takes {needed} bytes of memory, this node has {left} left")]
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes that nothing else needs.
        left: u64,
    },
    /// The chain could not be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The program could not be had.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The state could not be had.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file is not a state.
    #[error(transparent)]
    File(#[from] FileError),
    /// Our disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// We could not sign.
    #[error(transparent)]
    Sign(#[from] SignatureError),
}
