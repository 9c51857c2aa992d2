//! Where blocks are kept.

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_node::ports::{Owner, StoreError};

/// Files that strangers had us look at fill at most so much of the budget: one part in so many.
const QUOTES: u64 = 4;

/// A place for the blocks of files, and for who owns which. It need not be honest about blocks: whoever reads one
/// verifies it.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// A block that is here. Searches no network.
    async fn block(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError>;

    /// Stores all blocks of a file for an owner. The blocks are verified and complete, and none occurs twice. What
    /// nobody owns makes room for it, the longest unused first; it is itself stored only if there is room so. Whether
    /// the file is here now.
    ///
    /// # Errors
    /// [`StoreError::Full`] if the owner keeps files and what others own leaves no room.
    async fn keep(&self, root: &Cid, blocks: Vec<(Cid, Bytes)>, owner: Owner) -> Result<bool, StoreError>;

    /// Makes somebody an owner of a file if it is here, hence whole; whether it is.
    async fn own(&self, root: &Cid, owner: Owner) -> Result<bool, StoreError>;

    /// Puts a verified block in place of one that is here and damaged; does nothing if it is not here.
    async fn mend(&self, cid: &Cid, block: Bytes) -> Result<(), StoreError>;

    /// Whether the file is here, hence whole.
    async fn has(&self, root: &Cid) -> Result<bool, StoreError>;

    /// Lets go of a file, which is dropped if nobody else owns it; no error if the owner has none.
    async fn disown(&self, root: &Cid, owner: Owner) -> Result<(), StoreError>;

    /// Lets go of all files of an owner. They stay while there is room.
    async fn release(&self, owner: Owner) -> Result<(), StoreError>;

    /// All that own files.
    async fn owners(&self) -> Result<Vec<Owner>, StoreError>;

    /// Bytes that owners may still add.
    async fn room(&self) -> Result<u64, StoreError>;

    /// A block from whatever network the backend has behind it. May take half a minute.
    async fn search(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError>;
}

/// Bytes of a file, by its blocks.
pub(crate) fn bytes_of(blocks: &[(Cid, Bytes)]) -> u64 {
    blocks.iter().map(|(_, block)| block.len() as u64).sum()
}

/// Bytes that files looked at for quotes may take of a budget.
pub(crate) const fn share_of_quotes(budget: u64) -> u64 {
    budget / QUOTES
}

pub(crate) fn failure(error: impl std::fmt::Display) -> StoreError {
    StoreError::Backend(error.to_string())
}
