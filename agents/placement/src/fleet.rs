//! Nodes, and how far they are from each other.

use crate::node::Profile;
use crate::number::{Invalid, counted};
use crate::proximity::{Link, Proximity};

/// The most nodes that a planner looks at.
pub const MAX_NODES: usize = 65_536;

/// All that a plan may choose from. Nodes are named by their position.
#[derive(Clone, PartialEq, Debug)]
pub struct Fleet {
    /// Each node's profile.
    pub nodes: Vec<Profile>,
    /// Their links.
    pub proximity: Proximity,
}

impl Fleet {
    /// # Errors
    /// For no nodes or more than [`MAX_NODES`], for links that are not those of the nodes, and for profiles and links
    /// that are no numbers.
    pub fn check(&self) -> Result<(), Invalid> {
        counted("nodes", self.nodes.len(), 1, MAX_NODES)?;
        counted("nodes with links", self.proximity.nodes(), self.nodes.len(), self.nodes.len())?;
        self.nodes.iter().try_for_each(Profile::check)?;
        self.proximity.check()
    }

    /// The link between two nodes; one that never delivers if either is unknown.
    pub fn link(&self, from: usize, to: usize) -> Link {
        self.proximity.link(from, to).unwrap_or(Link::NEVER)
    }
}
