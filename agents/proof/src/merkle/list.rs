//! Small trees over digests (C-4), by `rs_merkle`.
//!
//! Alone, `rs_merkle` promotes an odd node unchanged, so one proof would hold for several positions. Lists are
//! therefore padded to a power of two, and a proof has exactly as many siblings as the list is deep.

use alloy_primitives::B256;
use rs_merkle::{Hasher, MerkleProof, MerkleTree};

use super::{ITEM, OpeningError, depth, node};
use crate::keccak::{Digest, hash_one};

/// Our hashes for `rs_merkle`.
#[derive(Clone)]
struct Keccak;

impl Hasher for Keccak {
    type Hash = Digest;

    fn hash(item: &[u8]) -> Digest {
        hash_one(ITEM, item)
    }

    fn concat_and_hash(left: &Digest, right: Option<&Digest>) -> Digest {
        // Over a power of two leaves only the root has no sibling: `rs_merkle` passes it through one level more.
        right.map_or(*left, |right| node(left, right))
    }
}

/// A committed list, of which enough is known to open some of its entries.
pub trait Entries: Send + Sync {
    /// Root.
    fn root(&self) -> B256;

    /// Entry at an index, if there is one and it is known.
    fn item(&self, index: u64) -> Option<B256>;

    /// Siblings of an entry, from the bottom.
    ///
    /// # Errors
    /// [`OpeningError::OutOfRange`] beyond the list, or where not enough is known.
    fn prove(&self, index: u64) -> Result<Vec<B256>, OpeningError>;
}

impl Entries for List {
    fn root(&self) -> B256 {
        self.root()
    }

    fn item(&self, index: u64) -> Option<B256> {
        self.items.get(usize::try_from(index).ok()?).copied()
    }

    fn prove(&self, index: u64) -> Result<Vec<B256>, OpeningError> {
        self.prove(index)
    }
}

/// A list of digests with its tree.
#[derive(Clone)]
pub struct List {
    items: Vec<B256>,
    tree: MerkleTree<Keccak>,
}

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("List").field("len", &self.len()).field("root", &self.root()).finish()
    }
}

impl List {
    /// Hashes the tree.
    pub fn new(items: impl IntoIterator<Item = impl Into<B256>>) -> Self {
        let items: Vec<B256> = items.into_iter().map(Into::into).collect();
        let mut leaves: Vec<Digest> = items.iter().map(|item| Keccak::hash(item.as_slice())).collect();
        if !leaves.is_empty() {
            leaves.resize(leaves.len().next_power_of_two(), [0; 32]);
        }
        Self { items, tree: MerkleTree::from_leaves(&leaves) }
    }

    /// Number of digests.
    pub const fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The digests.
    pub fn items(&self) -> &[B256] {
        &self.items
    }

    /// Root; zero if the list is empty.
    pub fn root(&self) -> B256 {
        if self.is_empty() { B256::ZERO } else { self.tree.root().unwrap_or_default().into() }
    }

    /// Siblings of a position, from the bottom.
    ///
    /// # Errors
    /// [`OpeningError::OutOfRange`].
    pub fn prove(&self, index: u64) -> Result<Vec<B256>, OpeningError> {
        match usize::try_from(index) {
            Ok(at) if at < self.len() => {
                Ok(self.tree.proof(&[at]).proof_hashes().iter().copied().map(B256::from).collect())
            }
            _ => Err(OpeningError::OutOfRange { first: index, count: 1, total: self.len() as u64 }),
        }
    }
}

/// Root of a list (C-4).
pub fn list_root(items: impl IntoIterator<Item = impl Into<B256>>) -> B256 {
    List::new(items).root()
}

/// Checks that `item` stands at `index` of a list of `count` digests.
///
/// # Errors
/// [`OpeningError::OutOfRange`], [`OpeningError::Siblings`], [`OpeningError::Root`].
pub fn verify_membership(
    root: B256,
    count: u64,
    index: u64,
    item: B256,
    siblings: &[B256],
) -> Result<(), OpeningError> {
    let actual = list_root_over(count, index, item, siblings)?;
    if actual == root { Ok(()) } else { Err(OpeningError::Root { expected: root, actual }) }
}

/// Root of the list of `count` digests that has `item` at `index`, and these siblings beside it.
///
/// # Errors
/// [`OpeningError::OutOfRange`], [`OpeningError::Siblings`] if no list has.
pub fn list_root_over(count: u64, index: u64, item: B256, siblings: &[B256]) -> Result<B256, OpeningError> {
    // INVARIANT: padding is no member.
    if index >= count {
        return Err(OpeningError::OutOfRange { first: index, count: 1, total: count });
    }
    // INVARIANT: the depth follows from the count, never from the proof.
    let (depth, actual) = (depth(count), siblings.len());
    if depth as usize != actual || depth > 32 {
        return Err(OpeningError::Siblings { expected: depth as usize, actual });
    }
    let proof = MerkleProof::<Keccak>::new(siblings.iter().map(|s| s.0).collect());
    let leaf = Keccak::hash(item.as_slice());
    let out_of_range = OpeningError::OutOfRange { first: index, count: 1, total: count };
    let (at, padded) = (usize::try_from(index), usize::try_from(1u64 << depth));
    let (Ok(at), Ok(padded)) = (at, padded) else { return Err(out_of_range) };
    Ok(proof.root(&[at], &[leaf], padded).map_err(|_| out_of_range)?.into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static PROMOTED: Cell<Option<Digest>> = const { Cell::new(None) };
    }

    /// The same hashes, recording which node had no sibling.
    #[derive(Clone)]
    struct Watched;

    impl Hasher for Watched {
        type Hash = Digest;

        fn hash(item: &[u8]) -> Digest {
            Keccak::hash(item)
        }

        fn concat_and_hash(left: &Digest, right: Option<&Digest>) -> Digest {
            if right.is_none() {
                assert_eq!(PROMOTED.replace(Some(*left)), None, "a second node without a sibling");
            }
            Keccak::concat_and_hash(left, right)
        }
    }

    #[test]
    fn only_the_root_is_ever_promoted() {
        for count in 1..=40u8 {
            let list = List::new((0..count).map(B256::repeat_byte));
            let leaves = list.tree.leaves().unwrap();
            PROMOTED.set(None);
            let watched = MerkleTree::<Watched>::from_leaves(&leaves);
            assert_eq!(watched.root(), Some(list.root().0));
            assert_eq!(PROMOTED.take(), Some(list.root().0), "{count} items");
        }
    }
}
