//! The way down another's tree to where it first differs from one's own, and what to ask for where it is not known.

use alloy_primitives::B256;
use tensorlink_types::abi::Pick;

use super::game::TreeId;
use super::position::{is_bottom, row_height, row_start};
use super::{Game, Known, Move, OwnTree, way};

/// A question that stands between here and what is wanted.
pub(super) type Missing = Box<Move>;

/// What is found on the way down a tree.
pub(super) enum Found {
    /// The tree is one's own.
    Agrees,
    /// The first entry or leaf that is not one's own.
    Leaf(u64),
    /// Ask this first.
    Missing(Missing),
}

/// A tree with all that was answered about it.
pub(super) fn learned<'a>(game: &Game, id: TreeId, own: &'a OwnTree<'a>) -> Known<'a> {
    let mut known = Known::new(own, id.1);
    for row in game.answers(id) {
        known.learn(row);
    }
    known
}

/// Goes down a tree to its first difference, and asks on where it is not known further; `salt` is for hints.
pub(super) fn first_difference(
    game: &Game,
    id: TreeId,
    known: &Known<'_>,
    salt: B256,
    restart: impl FnOnce() -> Move,
) -> Found {
    if known.agrees() {
        return Found::Agrees;
    }
    match known.first_leaf() {
        Ok(leaf) => Found::Leaf(leaf),
        Err(leaf) => Found::Missing(match approach(game, id, known, (leaf, salt)) {
            Approach::On(question) => question,
            // There it would be known.
            Approach::There(_) | Approach::Again => Box::new(restart()),
        }),
    }
}

/// How to get to a leaf from where the game stands.
pub(super) enum Approach {
    /// Its row is out.
    There(Pick),
    /// Ask this.
    On(Missing),
    /// The game stands elsewhere: ask for the tree again.
    Again,
}

pub(super) fn approach(game: &Game, id: TreeId, known: &Known<'_>, (leaf, salt): (u64, B256)) -> Approach {
    let position = &game.position;
    let above = leaf.checked_shr(position.height.into()).unwrap_or_default();
    if game.tree() != Some(id) || above != position.index {
        return Approach::Again;
    }
    let height = row_height(position);
    let child = leaf.checked_shr(height).unwrap_or_default().saturating_sub(row_start(position));
    let Some(pick) = u32::try_from(child).ok().and_then(|child| known.pick(position, child)) else {
        return Approach::Again;
    };
    if is_bottom(position) {
        return Approach::There(pick);
    }
    let at = (height, row_start(position).saturating_add(pick.child.into()));
    // Hints lead to a difference, and where there is none to anywhere.
    let question = match known.own().levels().node(at.0, at.1) == pick.digest {
        true => way::plainly(id.0, height),
        false => way::guided(id.0, known.own(), at, salt),
    };
    Approach::On(Box::new(Move::Ask { position: position.clone(), pick, question }))
}
