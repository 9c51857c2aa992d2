//! Hints: what a challenger would find itself, in 16 bits a node, and the way that they lead down the worker's tree. The same rules as
//! `contracts/libraries/Dissection.sol`.
//!
//! Hints are of the left nodes, row after row: `salt (8 bytes) ‖ H(salt ‖ node)[..2] …`. At each node the way goes to the left where the left
//! node is not what its hint says, or where nothing lies right; else to the right. So it ends at a tree's first difference from the
//! challenger's. Hints prove nothing: where two nodes have one hint by chance, the siblings show it, and one asks without.

use alloy_primitives::{B256, Bytes, keccak256};
use tensorlink_types::abi::{Position, Question, Way};

use super::position::{MAX_GUIDED, guided_levels, is_row, levels_for};
use super::{OwnTree, Row, Subject};
use crate::merkle::node;

/// Bytes of a salt, and of a hint.
const SALT: usize = 8;
const HINT: usize = 2;

/// A question without hints about what lies below a node of this height.
pub fn plainly(subject: Subject, height: u32) -> Question {
    Question { levels: levels_for(subject, height), hints: Bytes::new() }
}

/// A question with hints, about what lies below the node that stands at this height and index in the worker's tree. `salt` is one that the
/// worker could not know when it made its claim.
pub fn guided(subject: Subject, own: &OwnTree<'_>, (height, index): (u32, u64), salt: B256) -> Question {
    let (guided, levels) = guided_levels(subject, height);
    Question { levels, hints: hints(own, (height, index), guided, salt) }
}

fn hints(own: &OwnTree<'_>, (height, index): (u32, u64), guided: u8, salt: B256) -> Bytes {
    if guided == 0 {
        return Bytes::new();
    }
    let salt = salt.get(..SALT).unwrap_or_default();
    let mut hints = salt.to_vec();
    for row in 0..u32::from(guided) {
        let below = height.saturating_sub(row).saturating_sub(1);
        let first = index.checked_shl(row).unwrap_or(u64::MAX);
        for pair in 0..1u64.checked_shl(row).unwrap_or_default() {
            let left = first.saturating_add(pair).saturating_mul(2);
            hints.extend(hint(salt, own.levels().node(below, left)));
        }
    }
    hints.into()
}

fn hint(salt: &[u8], node: B256) -> [u8; HINT] {
    let [first, second, ..] = keccak256([salt, node.as_slice()].concat()).0;
    [first, second]
}

/// Levels that hints lead down; none if there are no hints of this length.
pub fn levels_of(hints: &[u8]) -> Option<u8> {
    if hints.is_empty() {
        return Some(0);
    }
    let long = |levels: u8| 1usize.checked_shl(levels.into()).map(|nodes| SALT + HINT * nodes.saturating_sub(1));
    (1..=MAX_GUIDED).find(|levels| long(*levels) == Some(hints.len()))
}

/// The way that hints lead from a position down one's own tree, and where it ends. None if the position is not of this tree, or asks for
/// something else than the hints say.
pub fn follow(own: &OwnTree<'_>, position: &Position, hints: &Bytes) -> Option<(Way, Position)> {
    let (top, guided) = (u32::from(position.height), u32::from(position.guided));
    let known = own.levels().node(top, position.index) == position.node && position.count == own.count();
    // Of a trace less is asked for than there are hints of, if it is not so high.
    let fits = guided <= levels_of(hints)?.into() && (guided > 0 || hints.is_empty());
    if !is_row(position) || !known || !fits {
        return None;
    }
    let end = |index, height, node| Position { index, height, node, guided: 0, hints: B256::ZERO, ..position.clone() };
    if guided == 0 {
        return Some((Way::default(), end(position.index, position.height, position.node)));
    }
    let (salt, hinted) = hints.split_at_checked(SALT)?;
    let (mut index, mut siblings) = (position.index, Vec::new());
    for row in 0..guided {
        let below = top.checked_sub(row)?.checked_sub(1)?;
        let (left, right) = (index.checked_mul(2)?, index.checked_mul(2)?.checked_add(1)?);
        let node = own.levels().node(below, left);
        let pair = index.checked_sub(position.index.checked_shl(row)?)?;
        let number = usize::try_from(1u64.checked_shl(row)?.checked_sub(1)?.checked_add(pair)?).ok()?;
        let expected = hinted.chunks_exact(HINT).nth(number)?;
        let alone = right.checked_shl(below)? >= own.count();
        index = if !alone && hint(salt, node) == expected { right } else { left };
        siblings.push(own.levels().node(below, index ^ 1));
    }
    siblings.reverse();
    let height = top.checked_sub(guided)?;
    let node = own.levels().node(height, index);
    let child = u32::try_from(index.checked_sub(position.index.checked_shl(guided)?)?).ok()?;
    let at = end(index, u8::try_from(height).ok()?, node);
    Some((Way { child, node, siblings, hints: hints.clone() }, at))
}

/// The nodes on the way of an answer and beside it, as pairs, from its position up: of what height and index, and which.
pub(super) fn nodes(row: &Row) -> impl Iterator<Item = [((u32, u64), B256); 2]> {
    let mut at = (u32::from(row.position.height), row.position.index, row.position.node);
    row.siblings.iter().map(move |sibling| {
        let (height, index, below) = at;
        let above = if index & 1 == 1 { node(&sibling.0, &below.0) } else { node(&below.0, &sibling.0) };
        at = (height.saturating_add(1), index / 2, above.into());
        [((height, index ^ 1), *sibling), ((at.0, at.1), at.2)]
    })
}

/// The position from which the way of an answer leads down.
pub(super) fn top(row: &Row) -> Position {
    let Some([_, ((height, index), node)]) = nodes(row).last() else { return row.position.clone() };
    Position { height: u8::try_from(height).unwrap_or(u8::MAX), index, node, ..row.position.clone() }
}
