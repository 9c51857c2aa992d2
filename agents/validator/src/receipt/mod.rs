//! What is different about receipts (rules C-12, C-13): the program is one of many, and a text starts from no state.

mod repeating;

use std::sync::Arc;

use tensorlink_node::serving::ServingShard;
use tensorlink_types::JobId;
use tokio::sync::Mutex;

/// The serving stage that was audited last: hashing the programs of every length again for each receipt would cost more
/// than most texts do. It keeps its memory until somebody else needs that.
#[derive(Debug, Default)]
pub struct LastStage(Mutex<Option<(JobId, u16, Arc<ServingShard>)>>);

impl LastStage {
    /// Forgets it, unless another is being fetched in its place: who is auditing with it has it for as long.
    pub(crate) fn forget(&self) {
        if let Ok(mut last) = self.0.try_lock() {
            *last = None;
        }
    }
}
