//! Where blocks are kept.

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use tensorlink_node::ports::StoreError;

/// A place for files and their blocks.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// A block that is here.
    async fn block(&self, cid: &Cid) -> Result<Option<Bytes>, StoreError>;

    /// Stores and pins a file.
    async fn keep(&self, content: Bytes) -> Result<Cid, StoreError>;

    /// Whether the file is pinned here, hence whole.
    async fn has(&self, root: &Cid) -> Result<bool, StoreError>;

    /// Unpins a file; no error if it is not pinned.
    async fn release(&self, root: &Cid) -> Result<(), StoreError>;

    /// A file of at most `limit` bytes from whatever network the backend has behind it.
    async fn search(&self, root: &Cid, limit: u64) -> Result<Option<Bytes>, StoreError>;
}
