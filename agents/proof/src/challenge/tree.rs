//! One's own tree over a list or a tensor.

use alloy_primitives::B256;
use tensorlink_num::Tensor;
use tensorlink_types::abi::Position;

use super::position::{is_bottom, is_row, row_height, row_len, row_start};
use crate::merkle::tensor::leaf_count;
use crate::merkle::{LEAF_BYTES, Levels, TensorTree, depth};

/// A list or a tensor with every node of its tree.
#[derive(Clone, Debug)]
pub struct OwnTree<'a> {
    content: Content<'a>,
}

#[derive(Clone, Debug)]
enum Content<'a> {
    List { items: Vec<B256>, levels: Levels },
    Tensor(TensorTree<'a>),
}

impl<'a> OwnTree<'a> {
    /// Of a list (C-4).
    pub fn list(items: impl IntoIterator<Item = impl Into<B256>>) -> Self {
        let items: Vec<B256> = items.into_iter().map(Into::into).collect();
        let levels = Levels::of_list(&items);
        Self { content: Content::List { items, levels } }
    }

    /// Of a tensor (C-2).
    pub fn tensor(tensor: &'a Tensor) -> Self {
        Self { content: Content::Tensor(TensorTree::new(tensor)) }
    }

    /// Leaves.
    pub fn count(&self) -> u64 {
        match &self.content {
            Content::List { items, .. } => items.len() as u64,
            Content::Tensor(tree) => leaf_count(tree.ty()),
        }
    }

    /// Whether it is a list.
    pub const fn is_list(&self) -> bool {
        matches!(self.content, Content::List { .. })
    }

    /// Root of the list, data root of the tensor; zero of an empty list.
    pub fn root(&self) -> B256 {
        match &self.content {
            Content::List { items, .. } if items.is_empty() => B256::ZERO,
            _ => self.levels().root(),
        }
    }

    /// All nodes.
    pub const fn levels(&self) -> &Levels {
        match &self.content {
            Content::List { levels, .. } => levels,
            Content::Tensor(tree) => tree.levels(),
        }
    }

    /// Entry or leaf, 32 or 256 bytes; none beyond the last.
    pub fn entry(&self, index: u64) -> Option<Vec<u8>> {
        match &self.content {
            Content::List { items, .. } => items.get(usize::try_from(index).ok()?).map(|item| item.to_vec()),
            Content::Tensor(tree) => {
                let leaf = tree.leaves(index, index.checked_add(1)?);
                (leaf.len() == LEAF_BYTES).then_some(leaf)
            }
        }
    }

    /// Siblings of an entry or leaf, from the bottom to the root.
    pub fn prove(&self, index: u64) -> Vec<B256> {
        let sibling = |height: u32| self.levels().node(height, index.checked_shr(height).unwrap_or_default() ^ 1);
        (0..depth(self.count())).map(sibling).collect()
    }

    /// What answers a question about this tree: the entries or leaves of its last row, or nodes. None if the tree has
    /// another number of leaves, or another node at the position.
    pub fn row(&self, position: &Position) -> Option<Vec<u8>> {
        let node = self.levels().node(position.height.into(), position.index);
        if !is_row(position) || position.count != self.count() || position.node != node {
            return None;
        }
        let indices = (0..row_len(position)).map(|i| row_start(position).saturating_add(i));
        let mut data = Vec::new();
        for index in indices {
            if is_bottom(position) {
                data.extend(self.entry(index)?);
            } else {
                data.extend(self.levels().node(row_height(position), index));
            }
        }
        Some(data)
    }
}
