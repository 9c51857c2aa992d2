//! Content-addressed storage.

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_types::Address;
use thiserror::Error;

/// Why content could not be stored or fetched.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Nobody asked has it. Retry later or ask others.
    #[error("{0} was not found here or with any of the peers asked")]
    NotFound(Cid),
    /// What arrived does not hash to its CID; the sender is broken or lying.
    #[error("bytes for {cid} from {from} do not match it")]
    Mismatch {
        /// What was asked for.
        cid: Cid,
        /// Who sent it.
        from: String,
    },
    /// The content exceeds the bound the caller gave.
    #[error("{cid} exceeds {limit} bytes")]
    TooLarge {
        /// What was asked for.
        cid: Cid,
        /// The bound.
        limit: u64,
    },
    /// The CID is of a kind this store does not speak.
    #[error("{0} is not a UnixFS file in CIDv1 with SHA-256")]
    Unsupported(Cid),
    /// The disk budget is used up. Free space or raise it.
    #[error("storing {needed} bytes would exceed the budget of {budget}: raise `store.budget` or unpin")]
    Full {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        budget: u64,
    },
    /// Another process has the files open: two of one node's would undo each other's work.
    #[error("{0} is in use by another process: stop it, or give another --data-dir")]
    InUse(String),
    /// Disk or daemon failed.
    #[error("store failure: {0}; check the disk, or the IPFS daemon's address")]
    Backend(String),
}

/// Files by CID (UnixFS, CIDv1, SHA-256, raw leaves, 256 KiB chunks: the same file has the same CID in every store).
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Stores and pins a file.
    async fn put(&self, content: Bytes) -> Result<Cid, StoreError>;

    /// Returns a file of at most `limit` bytes, from here or from one of `holders`; every byte is verified, and kept.
    async fn get(&self, cid: &Cid, holders: &[Address], limit: u64) -> Result<Bytes, StoreError>;

    /// Whether the whole file is here.
    async fn has(&self, cid: &Cid) -> Result<bool, StoreError>;

    /// Allows the file to be dropped.
    async fn unpin(&self, cid: &Cid) -> Result<(), StoreError>;
}
