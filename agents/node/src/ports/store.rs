//! Content-addressed storage.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_types::{Address, ClaimId, Lane};
use thiserror::Error;

/// For whom a file is kept. One that has several owners stays while one of them is left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Owner {
    /// The node itself, until it lets go: what its user publishes, and what native mode computes.
    Node,
    /// A lane of this node's, until its job is settled: the shard, states, inputs.
    Lane(Lane),
    /// A lane of this node's, until its job is settled: the shard of the lane for which it is the keeper (rule P-34).
    Ward(Lane),
    /// The state that another's claim ends in, as long as the keeper may be asked for it (rule P-34).
    Holding(ClaimId),
    /// An audit of a claim, as long as this node may have to stand for what it found.
    Audit(ClaimId),
    /// Nobody: a file that was looked at, and stays while there is room beside what others own.
    Nobody,
    /// Nobody, and a stranger had us look at it: such files fill a part of the store at most.
    Quote,
}

impl Owner {
    /// Whether files stay for it. What is fetched for the others goes first when room is needed.
    pub const fn keeps(self) -> bool {
        !matches!(self, Self::Nobody | Self::Quote)
    }
}

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
    /// Others own all that the store may hold. Wait until one of them lets go, or let it hold more.
    #[error(
        "{needed} bytes do not fit beside what is needed here: the store may hold {budget}. Give a worker or validator more by --disk (`disk` in the configuration file), or wait until a job of it ends; elsewhere use another --data-dir"
    )]
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

/// Files by CID (UnixFS, CIDv1, SHA-256, raw leaves, 256 KiB chunks: the same file has the same CID in every store), as
/// one owner has them. Who owns what outlives a restart.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The same files for another owner.
    fn of(&self, owner: Owner) -> Arc<dyn Store>;

    /// Stores a file for the owner.
    async fn put(&self, content: Bytes) -> Result<Cid, StoreError>;

    /// Returns a file of at most `limit` bytes, from here or from one of `holders`; every byte is verified, and the
    /// file is kept for the owner. What nobody owns is kept if there is room, and returned all the same.
    async fn get(&self, cid: &Cid, holders: &[Address], limit: u64) -> Result<Bytes, StoreError>;

    /// Whether the whole file is here.
    async fn has(&self, cid: &Cid) -> Result<bool, StoreError>;

    /// Makes the owner one of a file that is here. Whether it is.
    async fn own(&self, cid: &Cid) -> Result<bool, StoreError>;

    /// The owner does not need the file any more: it is dropped unless another does. No error if the owner has none.
    async fn unpin(&self, cid: &Cid) -> Result<(), StoreError>;

    /// The owner needs nothing any more. What no other owns stays while there is room, and what was used last, longest.
    async fn release(&self) -> Result<(), StoreError>;

    /// All that own files here.
    async fn owners(&self) -> Result<Vec<Owner>, StoreError>;

    /// Bytes that owners may still add.
    async fn room(&self) -> Result<u64, StoreError>;
}
