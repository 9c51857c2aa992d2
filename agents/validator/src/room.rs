//! Memory for what is audited: who finds none waits until others give it back.

use std::time::Duration;

use async_trait::async_trait;
use tensorlink_node::budget::Hold;
use tensorlink_node::footprint::Footprint;
use tensorlink_node::shard::{Room, ShardError};
use tensorlink_program::engine::Engine;

use crate::auditor::Auditor;

/// Longest wait for memory. Who waits may have what others wait for.
const WAIT: Duration = Duration::from_secs(60);

#[async_trait]
impl<E> Room for Auditor<E>
where
    E: Engine + Send + 'static,
{
    async fn take(&self, needs: Footprint) -> Result<Option<Hold>, ShardError> {
        // A repetition beside it never is.
        let needed = needs.lane;
        if let Some(hold) = self.memory.take(needed) {
            return Ok(Some(hold));
        }
        self.stages.forget();
        let hold = tokio::select! {
            hold = self.memory.wait(needed) => hold,
            () = self.ports.clock.sleep(WAIT) => None,
        };
        let (left, limit) = (self.memory.left(), self.memory.total());
        hold.map(Some).ok_or(ShardError::Memory { needed, left, limit })
    }
}
