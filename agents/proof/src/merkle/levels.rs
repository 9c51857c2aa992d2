//! All nodes of a tree of either kind.

use alloy_primitives::B256;

use super::{ITEM, depth, empty_subtree, parents};
use crate::keccak::{Digest, hash_one};

/// Every level of a tree, from the leaves to the root; each without its empty subtrees on the right.
#[derive(Clone, Debug)]
pub struct Levels(Vec<Vec<Digest>>);

impl Levels {
    /// Hashes the tree over digests of leaves.
    pub fn new(leaves: Vec<Digest>) -> Self {
        let height = depth(leaves.len() as u64);
        let mut level = leaves;
        let mut levels = Vec::new();
        for below in 0..height {
            let above = parents(&level, below);
            levels.push(std::mem::replace(&mut level, above));
        }
        levels.push(level);
        Self(levels)
    }

    /// Hashes the tree of a list (C-4).
    pub fn of_list(items: &[B256]) -> Self {
        Self::new(items.iter().map(|item| hash_one(ITEM, item.as_slice())).collect())
    }

    /// A node by its height above the leaves and its index there: an empty subtree where the tree has none.
    pub fn node(&self, height: u32, index: u64) -> B256 {
        let level = self.0.get(height as usize);
        let known = level.and_then(|level| level.get(usize::try_from(index).ok()?)).copied();
        known.unwrap_or_else(|| empty_subtree(height)).into()
    }

    /// The root; zero of a tree without leaves.
    pub fn root(&self) -> B256 {
        self.0.last().and_then(|top| top.first()).copied().unwrap_or_default().into()
    }
}
