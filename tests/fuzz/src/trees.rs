//! Another's tree as its answers tell it, and openings of trees.

use alloy_primitives::{B256, Bytes, keccak256};
use tensorlink_num::Tensor;
use tensorlink_num::tensor::Mantissas;
use tensorlink_proof::challenge::position::{is_bottom, is_row, row_start};
use tensorlink_proof::challenge::way::follow;
use tensorlink_proof::challenge::{Known, OwnTree, Row, Subject};
use tensorlink_proof::merkle::{
    ITEM, LEAF, LEAF_BYTES, List, NODE, TensorTree, depth, verify_membership, verify_range,
};
use tensorlink_types::TensorType;
use tensorlink_types::abi::{LeafRange, Position};

use crate::feed::Feed;

/// Most answers about a tree here.
const MAX_ANSWERS: usize = 16;

fn hash(domain: u8, bytes: &[u8]) -> B256 {
    keccak256([&[domain], bytes].concat())
}

/// Whether an answer leads to its node: slowly, as the contract's reader does it.
pub(crate) fn hashes_to(position: &Position, data: &[u8], list: bool) -> bool {
    let bottom = is_bottom(position);
    let unit = if bottom && !list { LEAF_BYTES } else { 32 };
    let digest = |entry: &[u8]| match (bottom, list) {
        (false, _) => B256::from_slice(entry),
        (true, list) => hash(if list { ITEM } else { LEAF }, entry),
    };
    let mut row: Vec<B256> = data.chunks_exact(unit).map(digest).collect();
    row.resize(1 << position.levels, B256::ZERO);
    while row.len() > 1 {
        row = row.chunks_exact(2).map(|pair| hash(NODE, &[pair[0].0, pair[1].0].concat())).collect();
    }
    row[0] == position.node
}

/// A list of digests, or a tensor of bytes.
enum Content {
    List(Vec<B256>),
    Tensor(Tensor),
}

impl Content {
    /// Leaves of which some are of the second kind.
    fn new(list: bool, kinds: &[bool]) -> Self {
        if list {
            return Self::List(kinds.iter().map(|kind| B256::repeat_byte(u8::from(*kind) + 1)).collect());
        }
        // The last leaf is not full.
        let length = kinds.len() * LEAF_BYTES - 3;
        let mantissas = (0..length).map(|at| i8::from(kinds[at / LEAF_BYTES]) + 1).collect();
        Self::Tensor(Tensor::new(vector(length), Mantissas::I8(mantissas)).expect("small numbers"))
    }

    fn tree(&self) -> OwnTree<'_> {
        match self {
            Self::List(items) => OwnTree::list(items.iter().copied()),
            Self::Tensor(tensor) => OwnTree::tensor(tensor),
        }
    }
}

fn vector(length: usize) -> TensorType {
    TensorType::new(8, 0, &[length as u32]).expect("a vector")
}

fn position(feed: &mut Feed<'_>, subject: Subject, count: u64) -> Position {
    Position {
        subject: subject.to_number(),
        levels: feed.byte() % 10,
        guided: 0,
        height: feed.byte() % 8,
        index: feed.number(),
        count,
        ..Position::default()
    }
}

fn padded(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(length, 0);
    bytes
}

/// Answers about another's tree that differs from one's own; in some inputs answers that the contract would not
/// let pass.
///
/// # Panics
/// Where a rule is broken.
pub fn known(bytes: &[u8]) {
    let mut feed = Feed::new(bytes);
    let (list, honest) = (feed.below(2) == 0, feed.below(4) != 0);
    let count = feed.below(if list { 40 } else { 9 }) + 1;
    let differs: Vec<bool> = feed.take(count).iter().map(|byte| byte % 4 == 1).collect();
    let differs: Vec<bool> = (0..count).map(|at| differs.get(at).copied().unwrap_or_default()).collect();
    let (mine, other) = (Content::new(list, &vec![false; count]), Content::new(list, &differs));
    let (own, theirs) = (mine.tree(), other.tree());
    let subject = if list { Subject::Trace } else { Subject::Output };
    let mut known = Known::new(&own, theirs.root());
    assert_eq!(known.agrees(), !differs.contains(&true));
    for _ in 0..MAX_ANSWERS {
        if feed.is_over() {
            break;
        }
        let mut at = position(&mut feed, subject, count as u64);
        if honest {
            at.node = theirs.levels().node(at.height.into(), at.index);
            // Hints of any kind lead somewhere below it.
            let kind = feed.byte();
            at.guided = (kind % 6).min(at.height);
            let hints = match (at.guided, kind < 128) {
                (0, _) => Bytes::new(),
                (levels, true) => Bytes::copy_from_slice(&padded(feed.take(64), 6 + (2 << levels))),
                (levels, false) => Bytes::copy_from_slice(&padded(feed.take(256), 8 << levels)),
            };
            let Some((way, end)) = follow(&theirs, &at, &hints) else { continue };
            assert_eq!((way.siblings.len(), end.height), (at.guided.into(), at.height - at.guided));
            assert!(end.index << end.height < at.count, "the way ends above a leaf");
            let Some(data) = theirs.row(&end) else { continue };
            assert!(is_row(&end) && hashes_to(&end, &data, list), "a row leads to its node");
            known.learn(&Row { position: end, siblings: way.siblings, data: data.into() });
            assert_eq!(known.node(at.height.into(), at.index), Some(at.node));
        } else {
            at.count = if feed.below(4) == 0 { feed.number() } else { at.count };
            at.subject = feed.byte() % 9;
            let length = feed.below(256) * 4;
            let siblings = (0..feed.below(70)).map(|_| B256::repeat_byte(feed.byte())).collect();
            known.learn(&Row { position: at, siblings, data: Bytes::copy_from_slice(feed.take(length)) });
        }
    }
    for index in 0..count as u64 + 2 {
        let (proven, opened, entry) = (known.prove(index), known.open(index), known.entry(index));
        let _ = known.node(index as u32, index);
        if !honest {
            continue;
        }
        assert!(entry.is_none() || entry == theirs.entry(index), "what is known of another's tree is in it");
        if let (Ok(siblings), Some(entry), true) = (proven, entry, list) {
            let item = B256::from_slice(&entry);
            assert_eq!(verify_membership(theirs.root(), count as u64, index, item, &siblings), Ok(()));
        }
        if let (Ok(range), false) = (opened, list) {
            assert_eq!(verify_range(theirs.root(), count as u64, &range), Ok(()));
        }
    }
    let first = known.first_leaf();
    if honest && !known.agrees() {
        let leaf = first.unwrap_or_else(|unknown| unknown);
        assert!(leaf < count as u64, "leaf {leaf} of {count}");
        if first.is_ok() {
            assert_eq!(differs.iter().position(|differs| *differs), Some(leaf as usize), "the first that differs");
        }
    }
    let at = position(&mut feed, subject, count as u64);
    let pick = known.pick(&at, feed.byte().into());
    // Another position than an answered one is never picked from.
    if let (Some(pick), true, true) = (pick, honest, is_row(&at)) {
        let index = row_start(&at) + u64::from(pick.child);
        let item = theirs.entry(index).filter(|_| list).map(|item| B256::from_slice(&item));
        let node = Some(theirs.levels().node(u32::from(at.height - at.levels), index));
        assert_eq!(Some(pick.digest), if is_bottom(&at) && list { item } else { node });
    }
}

/// An opening of a list and one of a tensor, with bytes changed: only what is really there passes.
///
/// # Panics
/// Where a rule is broken.
pub fn openings(bytes: &[u8]) {
    let mut feed = Feed::new(bytes);
    let count = feed.below(70) + 1;
    let list = List::new((0..count).map(|at| B256::repeat_byte(at as u8 + 1)));
    let index = feed.below(count) as u64;
    let honest = list.prove(index).expect("an index of the list");
    let (mut siblings, mut at, mut length) = (honest.clone(), index, count as u64);
    match feed.below(6) {
        0 => {
            siblings.pop();
        }
        1 => siblings.push(B256::ZERO),
        2 => at = feed.number(),
        3 => length = feed.number(),
        4 => change(&mut siblings, &mut feed),
        _ => {}
    }
    let item = B256::repeat_byte(index as u8 + 1);
    let passes = verify_membership(list.root(), length, at, item, &siblings).is_ok();
    // Another length of the same depth is another list only if the contract's program says so.
    let same = siblings == honest && at == index && depth(length) == depth(count as u64) && index < length;
    assert_eq!(passes, same, "{index} of {count} as {at} of {length}");
    range(&mut feed);
}

fn range(feed: &mut Feed<'_>) {
    let leaves = feed.below(20) + 1;
    let data: Vec<u8> = (0..leaves * LEAF_BYTES - 5).map(|at| (at % 100) as u8).collect();
    let tree = TensorTree::from_bytes(vector(data.len()), &data).expect("bytes of the type");
    let first = feed.below(leaves) as u64;
    let honest = tree.open(first, feed.below(leaves - first as usize) as u64 + 1).expect("leaves of the tensor");
    let LeafRange { mut firstLeaf, leaves: opened, mut siblings } = honest.clone();
    let mut opened = opened.to_vec();
    match feed.below(6) {
        0 => firstLeaf = feed.number() as u32,
        1 => opened.truncate(feed.number() as usize),
        2 => change(&mut siblings, feed),
        3 => opened.extend([0; LEAF_BYTES]),
        4 => {
            let at = feed.number() as usize % opened.len();
            opened[at] ^= feed.byte();
        }
        _ => {}
    }
    let given = LeafRange { firstLeaf, leaves: opened.into(), siblings };
    assert_eq!(verify_range(tree.data_root(), leaves as u64, &given).is_ok(), given == honest);
}

fn change(siblings: &mut [B256], feed: &mut Feed<'_>) {
    let at = feed.below(siblings.len());
    if let Some(sibling) = siblings.get_mut(at) {
        sibling.0[feed.below(32)] ^= feed.byte();
    }
}
