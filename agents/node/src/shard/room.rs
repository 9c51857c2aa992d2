//! Memory for a shard, as whoever fetches one is given it.

use async_trait::async_trait;

use super::ShardError;
use crate::budget::Hold;
use crate::footprint::Footprint;

/// Who decides whether there is memory for a shard, before anything large of it is fetched.
#[async_trait]
pub trait Room: Send + Sync {
    /// Takes what a shard needs; it is the shard's, unless it is held for the shard otherwise.
    ///
    /// # Errors
    /// [`ShardError::Memory`] if there is not as much.
    async fn take(&self, needs: Footprint) -> Result<Option<Hold>, ShardError>;
}

/// So many bytes for one shard, and nothing beside it.
#[async_trait]
impl Room for u64 {
    async fn take(&self, needs: Footprint) -> Result<Option<Hold>, ShardError> {
        let needed = needs.alone();
        if needed <= *self { Ok(None) } else { Err(ShardError::Memory { needed, left: *self, limit: *self }) }
    }
}
