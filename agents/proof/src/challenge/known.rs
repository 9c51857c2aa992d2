//! Another's tree, as far as it is known.

use std::collections::BTreeMap;

use alloy_primitives::B256;
use tensorlink_types::abi::{LeafRange, Pick, Position};
use tensorlink_types::{TensorRoot, TensorType};

use super::position::{is_bottom, is_row, leaf_of, row_height, row_start};
use super::{OwnTree, Row, way};
use crate::fraud::Claimed;
use crate::keccak::hash_one;
use crate::merkle::{Entries, ITEM, LEAF, LEAF_BYTES, OpeningError, depth, node, root_from_data};

/// A worker's tree: nodes that it has given, and below those that are one's own as well, one's own.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    own: &'a OwnTree<'a>,
    root: B256,
    given: BTreeMap<(u32, u64), B256>,
    /// Entries or leaves of last rows.
    entries: BTreeMap<u64, Vec<u8>>,
}

impl<'a> Known<'a> {
    /// Of which only the root is known.
    pub fn new(own: &'a OwnTree<'a>, root: B256) -> Self {
        let given = BTreeMap::from([((depth(own.count()), 0), root)]);
        Self { own, root, given, entries: BTreeMap::new() }
    }

    /// One's own.
    pub const fn own(&self) -> &OwnTree<'a> {
        self.own
    }

    /// Whether it is one's own, and so known whole.
    pub fn agrees(&self) -> bool {
        self.root == self.own.root()
    }

    /// Takes in an answer. The contract has checked that it hashes up to its node.
    pub fn learn(&mut self, answer: &Row) {
        let Row { position, data, .. } = answer;
        if !is_row(position) || position.count != self.own.count() {
            return;
        }
        let unit = if !is_bottom(position) || self.own.is_list() { 32 } else { LEAF_BYTES };
        let height = row_height(position);
        let mut row: Vec<B256> = Vec::new();
        for (index, entry) in (row_start(position)..).zip(data.chunks(unit)) {
            let digest = if !is_bottom(position) {
                B256::try_from(entry).unwrap_or_default()
            } else {
                self.entries.insert(index, entry.to_vec());
                hash_one(if self.own.is_list() { ITEM } else { LEAF }, entry).into()
            };
            row.push(digest);
        }
        // Padding, which only a last row leaves out.
        row.resize(1usize.checked_shl(position.levels.into()).unwrap_or_default(), B256::ZERO);
        let mut start = row_start(position);
        for above in 0..=u32::from(position.levels) {
            let at = height.saturating_add(above);
            self.given.extend((start..).zip(&row).map(|(index, digest)| ((at, index), *digest)));
            row = row.chunks_exact(2).map(pair_node).collect();
            start /= 2;
        }
        self.given.extend(way::nodes(answer).flatten());
    }

    /// A node, if it is known.
    pub fn node(&self, height: u32, index: u64) -> Option<B256> {
        if let Some(given) = self.given.get(&(height, index)) {
            return Some(*given);
        }
        // Below the nearest node that was given everything is one's own, if that node is.
        let top = depth(self.own.count());
        let (at, digest) = (height..=top).find_map(|above| {
            let at = (above, index.checked_shr(above.saturating_sub(height))?);
            self.given.get(&at).map(|digest| (at, *digest))
        })?;
        let levels = self.own.levels();
        (levels.node(at.0, at.1) == digest).then(|| levels.node(height, index))
    }

    /// Height of the tree.
    pub fn height(&self) -> u32 {
        depth(self.own.count())
    }

    /// The first entry or leaf that is not one's own. Of a tree that is not known so far: the first below the node that
    /// is to be asked for.
    ///
    /// # Errors
    /// That leaf.
    pub fn first_leaf(&self) -> Result<u64, u64> {
        let mut index: u64 = 0;
        for height in (0..self.height()).rev() {
            let left = index * 2;
            let unknown = index.checked_shl(height.saturating_add(1)).unwrap_or(u64::MAX);
            let (Some(a), Some(b)) = (self.node(height, left), self.node(height, left + 1)) else {
                return Err(unknown);
            };
            let own = self.own.levels();
            // One of the two differs, or what lies above would not.
            index = if a == own.node(height, left) && b != own.node(height, left + 1) { left + 1 } else { left };
        }
        if self.entry(index).is_some() { Ok(index) } else { Err(index) }
    }

    /// A child of an answered row, with its siblings below the position's node.
    pub fn pick(&self, position: &Position, child: u32) -> Option<Pick> {
        let height = row_height(position);
        let mut index = row_start(position).checked_add(child.into())?;
        let digest = if is_bottom(position) && self.own.is_list() {
            self.entry(index).and_then(|entry| B256::try_from(entry.as_slice()).ok())?
        } else {
            self.node(height, index)?
        };
        let mut siblings = Vec::new();
        for at in height..u32::from(position.height) {
            siblings.push(self.node(at, index ^ 1)?);
            index /= 2;
        }
        (leaf_of(position, child) < self.own.count()).then_some(Pick { child, digest, siblings })
    }

    /// Entry or leaf, if it is known.
    pub fn entry(&self, index: u64) -> Option<Vec<u8>> {
        if let Some(entry) = self.entries.get(&index) {
            return Some(entry.clone());
        }
        let own = self.own.levels().node(0, index);
        (self.node(0, index)? == own).then(|| self.own.entry(index)).flatten()
    }

    /// Siblings of an entry or leaf, from the bottom to the root.
    ///
    /// # Errors
    /// [`OpeningError::OutOfRange`] beyond the last, or where not enough is known.
    pub fn prove(&self, index: u64) -> Result<Vec<B256>, OpeningError> {
        let unknown = OpeningError::OutOfRange { first: index, count: 1, total: self.own.count() };
        if index >= self.own.count() {
            return Err(unknown);
        }
        let sibling = |height: u32| self.node(height, index.checked_shr(height)? ^ 1);
        (0..depth(self.own.count())).map(sibling).collect::<Option<_>>().ok_or(unknown)
    }

    /// Opens one leaf of a tensor (C-3).
    ///
    /// # Errors
    /// As [`Self::prove`].
    pub fn open(&self, leaf: u64) -> Result<LeafRange, OpeningError> {
        let siblings = self.prove(leaf)?;
        let unknown = OpeningError::OutOfRange { first: leaf, count: 1, total: self.own.count() };
        let bytes = self.entry(leaf).ok_or(unknown.clone())?;
        let first_leaf = u32::try_from(leaf).map_err(|_| unknown)?;
        Ok(LeafRange { firstLeaf: first_leaf, leaves: bytes.into(), siblings })
    }
}

impl Entries for Known<'_> {
    fn root(&self) -> B256 {
        self.root
    }

    fn item(&self, index: u64) -> Option<B256> {
        B256::try_from(self.entry(index)?.as_slice()).ok()
    }

    fn prove(&self, index: u64) -> Result<Vec<B256>, OpeningError> {
        self.prove(index)
    }
}

impl Claimed for Known<'_> {
    fn root(&self, ty: &TensorType) -> TensorRoot {
        root_from_data(ty, self.root)
    }

    fn opening(&self, leaf: u64) -> Result<LeafRange, OpeningError> {
        self.open(leaf)
    }
}

fn pair_node(pair: &[B256]) -> B256 {
    match pair {
        [left, right] => node(&left.0, &right.0).into(),
        _ => B256::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Subject;
    use super::*;

    #[test]
    fn an_answer_about_no_tree_is_not_learned() {
        let own = OwnTree::list([B256::repeat_byte(1), B256::repeat_byte(2)]);
        let mut known = Known::new(&own, B256::repeat_byte(3));
        for subject in [Subject::Statement, Subject::Logs] {
            let subject = subject.to_number();
            for index in [0, u64::MAX] {
                let position = Position { subject, levels: 1, height: 1, index, count: 2, ..Position::default() };
                known.learn(&Row { position, siblings: vec![], data: vec![7; 64].into() });
            }
        }
        assert_eq!((known.node(0, 0), known.entry(0)), (None, None));
    }
}
