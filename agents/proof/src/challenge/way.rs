//! Hints: what a challenger would find itself, in 16 or 64 bits a node, and the way that they lead down the worker's
//! tree. The same rules as `contracts/libraries/challenges/Dissection.sol`.
//!
//! Hints are of the left nodes, row after row: `salt (8 bytes) ‖ H(salt ‖ node)[..2 or 8] …`. At each node the way goes
//! to the left where the left node is not what its hint says, or where nothing lies right; else to the right. So it
//! ends at a tree's first difference from the challenger's. Hints prove nothing: where two nodes have one hint by
//! chance, the siblings show it, and one asks once more.

use alloy_primitives::{B256, Bytes, keccak256};
use tensorlink_types::abi::{Position, Question, Way};

use super::position::{HintSize, guided_levels, is_row, levels_for};
use super::{OwnTree, Row, Subject};
use crate::merkle::{depth, node};

/// Bytes of a salt.
const SALT: usize = 8;

/// A question without hints about what lies below a node of this height.
pub fn plainly(subject: Subject, height: u32) -> Question {
    Question { levels: levels_for(subject, height), hints: Bytes::new() }
}

/// A question with hints, about what lies below the node that stands at this height and index in the worker's tree.
/// `salt` is one that the worker could not know when it made the tree.
pub fn guided(subject: Subject, own: &OwnTree<'_>, at: (u32, u64), salt: B256) -> Question {
    question(subject, own, at, (HintSize::Short, salt))
}

/// A question with hints, about a tree that the worker may make up when it has seen them: its root comes with
/// the answer.
pub fn guided_from_root(subject: Subject, own: &OwnTree<'_>, salt: B256) -> Question {
    question(subject, own, (depth(own.count()), 0), (HintSize::Long, salt))
}

fn question(subject: Subject, own: &OwnTree<'_>, at: (u32, u64), (size, salt): (HintSize, B256)) -> Question {
    let (guided, levels) = guided_levels(subject, at.0, size);
    Question { levels, hints: hints(own, at, guided, (size, salt)) }
}

fn hints(own: &OwnTree<'_>, (height, index): (u32, u64), guided: u8, (size, salt): (HintSize, B256)) -> Bytes {
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
            hints.extend(hint(salt, own.levels().node(below, left)).iter().take(size.bytes()));
        }
    }
    hints.into()
}

/// The hint of a node; a short one is its beginning.
fn hint(salt: &[u8], node: B256) -> [u8; HintSize::Long.bytes()] {
    let [a, b, c, d, e, f, g, h, ..] = keccak256([salt, node.as_slice()].concat()).0;
    [a, b, c, d, e, f, g, h]
}

/// Levels that hints lead down; none if there are no hints of this length.
pub fn levels_of(hints: &[u8]) -> Option<u8> {
    if hints.is_empty() {
        return Some(0);
    }
    let size = size_of(hints);
    let long = |nodes: usize| size.bytes().checked_mul(nodes.saturating_sub(1))?.checked_add(SALT);
    (1..=size.max_levels()).find(|levels| 1usize.checked_shl((*levels).into()).and_then(long) == Some(hints.len()))
}

/// Long hints, and the salt that is as long as one, are a power of two in all; short ones never are.
const fn size_of(hints: &[u8]) -> HintSize {
    if hints.len().is_power_of_two() { HintSize::Long } else { HintSize::Short }
}

/// The way that hints lead from a position down one's own tree, and where it ends. None if the position is not of this
/// tree, or asks for something else than the hints say.
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
        let expected = hinted.chunks_exact(size_of(hints).bytes()).nth(number)?;
        let alone = right.checked_shl(below)? >= own.count();
        index = if !alone && hint(salt, node).starts_with(expected) { right } else { left };
        siblings.push(own.levels().node(below, index ^ 1));
    }
    siblings.reverse();
    let height = top.checked_sub(guided)?;
    let node = own.levels().node(height, index);
    let child = u32::try_from(index.checked_sub(position.index.checked_shl(guided)?)?).ok()?;
    let at = end(index, u8::try_from(height).ok()?, node);
    Some((Way { child, node, siblings, hints: hints.clone() }, at))
}

/// The nodes on the way of an answer and beside it, as pairs, from its position up: of what height and index,
/// and which.
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
