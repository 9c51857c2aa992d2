//! Where blocks are kept.

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_node::ports::StoreError;

/// A place for the blocks of files. It need not be honest: whoever reads a block verifies it.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// A block that is here. Searches no network.
    async fn block(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError>;

    /// Stores all blocks of a file and pins it. The blocks are verified and complete, and none occurs twice.
    async fn keep(&self, root: &Cid, blocks: Vec<(Cid, Bytes)>) -> Result<(), StoreError>;

    /// Puts a verified block in place of one that is here and damaged; does nothing if it is not here.
    async fn mend(&self, cid: &Cid, block: Bytes) -> Result<(), StoreError>;

    /// Whether the file is pinned here, hence whole.
    async fn has(&self, root: &Cid) -> Result<bool, StoreError>;

    /// Unpins a file; no error if it is not pinned.
    async fn release(&self, root: &Cid) -> Result<(), StoreError>;

    /// A block from whatever network the backend has behind it. May take half a minute.
    async fn search(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError>;
}
