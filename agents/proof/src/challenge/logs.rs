//! Another's boundary logs as far as they are known.

use alloy_primitives::B256;
use tensorlink_types::abi::{BoundaryLogs, Claim};

use super::descent::learned;
use super::game::TreeId;
use super::position::{is_bottom, row_start};
use super::{Game, OwnTree, Subject};
use crate::commit::{Boundary, BoundaryLists, Logs, io_root};
use crate::merkle::{Entries, List, OpeningError};

/// The claim's logs as far as they are known.
pub(super) struct KnownLogs<'a> {
    pub(super) claim: &'a Claim,
    /// Roots of all, where they were told.
    pub(super) roots: Option<BoundaryLogs>,
    boundaries: Vec<(Boundary, &'a List, Learned)>,
}

impl<'a> KnownLogs<'a> {
    /// Of the claim of a game, next to one's own.
    pub(super) fn new(game: &'a Game, own: &'a BoundaryLists) -> Self {
        let given = || game.logs.as_ref().map(|(logs, _)| logs.clone());
        let roots = if io_root(&own.roots()) == game.claim.io { Some(own.roots()) } else { given() };
        let mut boundaries = Vec::new();
        for boundary in Boundary::ALL {
            let Some((log, theirs)) = own.get(boundary).zip(roots.as_ref()) else { continue };
            boundaries.push((boundary, log, Learned::new(game, (Subject::Log, boundary.root(theirs)), log)));
        }
        Self { claim: &game.claim, roots, boundaries }
    }
}

impl Logs for KnownLogs<'_> {
    fn roots(&self) -> BoundaryLogs {
        self.roots.clone().unwrap_or(BoundaryLogs {
            fromPrevious: B256::ZERO,
            toPrevious: B256::ZERO,
            fromNext: B256::ZERO,
            toNext: B256::ZERO,
        })
    }

    fn boundary(&self, boundary: Boundary) -> Option<&dyn Entries> {
        let (_, own, learned) = self.boundaries.iter().find(|(at, ..)| *at == boundary)?;
        if own.root() == learned.root { Some(*own) } else { Some(learned) }
    }
}

/// Entries of another's log that were answered, with their paths.
struct Learned {
    root: B256,
    entries: Vec<(u64, B256, Vec<B256>)>,
}

impl Learned {
    fn new(game: &Game, id: TreeId, own: &List) -> Self {
        let tree = OwnTree::list(own.items().iter().copied());
        let known = learned(game, id, &tree);
        let entry = |index| Some((index, Entries::item(&known, index)?, known.prove(index).ok()?));
        let rows = game.answers(id).iter().filter(|row| is_bottom(&row.position));
        let indices = rows.flat_map(|row| (row_start(&row.position)..).zip(row.data.chunks(32)).map(|(i, _)| i));
        Self { root: id.1, entries: indices.filter_map(entry).collect() }
    }

    fn find(&self, index: u64) -> Option<&(u64, B256, Vec<B256>)> {
        self.entries.iter().find(|(at, ..)| *at == index)
    }
}

impl Entries for Learned {
    fn root(&self) -> B256 {
        self.root
    }

    fn item(&self, index: u64) -> Option<B256> {
        self.find(index).map(|(_, item, _)| *item)
    }

    fn prove(&self, index: u64) -> Result<Vec<B256>, OpeningError> {
        let unknown = OpeningError::OutOfRange { first: index, count: 1, total: self.entries.len() as u64 };
        self.find(index).map(|(.., siblings)| siblings.clone()).ok_or(unknown)
    }
}
