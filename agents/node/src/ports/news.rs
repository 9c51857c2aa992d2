//! Events as they are told to who keeps them.

use serde::{Deserialize, Serialize};
use tensorlink_types::B256;

use super::event::EventAt;

/// A block that the chain is known by: its hash commits to all blocks up to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// Its number.
    pub block: u64,
    /// Its hash.
    pub hash: B256,
}

/// What is told to who keeps what it is told.
#[derive(Clone, PartialEq, Debug)]
pub enum News {
    /// A confirmed event.
    Event(Box<EventAt>),
    /// Every event up to this block is told.
    Until(Mark),
    /// A reorganisation has undone confirmed blocks: what was told of this block and of later ones is void, and what
    /// the chain has in their place follows.
    Undone {
        /// The first of them.
        from: u64,
    },
}
