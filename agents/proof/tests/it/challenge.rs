//! Trees that are walked down, and what an endpoint may make of them. Whole games are in `tests/games`.

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use proptest::prelude::*;
use tensorlink_proof::challenge::position::{is_askable, is_bottom, leaf_of, row_height, row_start};
use tensorlink_proof::challenge::way::{follow, guided, guided_from_root, levels_of, plainly};
use tensorlink_proof::challenge::{Game, Known, OwnTree, Row, Subject, Told, Turn};
use tensorlink_proof::merkle::{Entries, depth, verify_membership};
use tensorlink_types::ClaimId;
use tensorlink_types::abi::{Claim, Facts, Position, Question};

fn items(count: u64) -> Vec<B256> {
    (0..count).map(|i| B256::from(U256::from(i + 1))).collect()
}

fn claim() -> Claim {
    Claim { job: 1, stage: 0, replica: 0, interval: 0, parentState: B256::ZERO, newState: B256::ZERO, io: B256::ZERO }
}

/// What is asked for of a node at this height and index, and its hints.
fn asked(tree: &OwnTree<'_>, (height, index): (u32, u64), question: Question) -> (Position, Bytes) {
    let guided = levels_of(&question.hints).expect("as long as hints are");
    let position = Position {
        subject: Subject::Trace.to_number(),
        levels: question.levels,
        guided,
        height: height as u8,
        index,
        count: tree.count(),
        node: tree.levels().node(height, index),
        facts: B256::ZERO,
        hints: if guided > 0 { keccak256(&question.hints) } else { B256::ZERO },
    };
    assert!(is_askable(&position));
    (position, question.hints)
}

/// The worker's answer.
fn answer(tree: &OwnTree<'_>, (position, hints): &(Position, Bytes)) -> Row {
    let (way, position) = follow(tree, position, hints).expect("there is one way");
    let data = tree.row(&position).expect("the worker has it").into();
    Row { position, siblings: way.siblings, data }
}

/// Walks from the root to the first difference, by hints with a salt, long ones at first, or without; the challenger
/// learns what the worker's tree answers. Also how many answers it took.
fn walk(own: &OwnTree<'_>, theirs: &OwnTree<'_>, salt: Option<B256>) -> (u64, u32) {
    let mut known = Known::new(own, theirs.root());
    let ask = |(height, index): (u32, u64)| {
        let question = match salt {
            Some(salt) if height == depth(theirs.count()) && index == 0 => guided_from_root(Subject::Trace, own, salt),
            Some(salt) if own.levels().node(height, index) != theirs.levels().node(height, index) => {
                guided(Subject::Trace, own, (height, index), salt)
            }
            _ => plainly(Subject::Trace, height),
        };
        asked(theirs, (height, index), question)
    };
    let mut question = ask((depth(theirs.count()), 0));
    let mut answers = 0;
    loop {
        let row = answer(theirs, &question);
        let position = row.position.clone();
        known.learn(&row);
        answers += 1;
        let leaf = match known.first_leaf() {
            Ok(leaf) => {
                let item = Entries::item(&known, leaf).expect("it was answered");
                let siblings = known.prove(leaf).expect("its path is known");
                verify_membership(theirs.root(), theirs.count(), leaf, item, &siblings).expect("the path leads up");
                return (leaf, answers);
            }
            Err(leaf) => leaf,
        };
        let child = (leaf >> row_height(&position)) - row_start(&position);
        let pick = known.pick(&position, child as u32).expect("it was answered");
        assert_eq!(leaf_of(&position, pick.child) >> row_height(&position), leaf >> row_height(&position));
        question = ask((row_height(&position), row_start(&position) + child));
        assert_eq!(question.0.node, pick.digest);
    }
}

proptest! {
    #[test]
    fn a_walk_ends_at_the_first_difference(count in 1u64..5000, from in any::<u64>(), rest in any::<bool>()) {
        let from = from % count;
        let mine = items(count);
        let mut other = mine.clone();
        for (i, item) in other.iter_mut().enumerate().skip(from as usize) {
            if rest || i as u64 == from {
                item.0[0] ^= 1;
            }
        }
        let (own, theirs) = (OwnTree::list(mine), OwnTree::list(other));
        let guided = walk(&own, &theirs, Some(B256::repeat_byte(7)));
        prop_assert_eq!((walk(&own, &theirs, None).0, guided.0), (from, from));
        prop_assert_eq!(guided.1, 1, "hints lead there at once");
    }

    /// Whatever the hints are, there is one way, above a leaf, and it leads up to the node.
    #[test]
    fn hints_of_any_kind_can_be_followed(
        count in 1u64..5000, at in any::<u64>(), levels in 1u8..=10, seed in any::<u8>(), long in any::<bool>(),
    ) {
        let list = items(count);
        let tree = OwnTree::list(list);
        let height = ((at % 14) as u32).min(depth(count));
        let index = (at / 14) % (((count - 1) >> height) + 1);
        let guided = u32::from(levels).min(height);
        prop_assume!(guided > 0 && !(long && guided > 8));
        let length = if long { 8u32 << guided } else { 6 + (2u32 << guided) };
        let hints: Bytes = (0..length).map(|i| seed.wrapping_mul(i as u8).wrapping_add(seed)).collect();
        let below = (height - guided).min(3);
        let asked = asked(&tree, (height, index), Question { levels: below as u8, hints });
        let (way, position) = follow(&tree, &asked.0, &asked.1).expect("there is one way");
        prop_assert_eq!(u64::from(way.child) + (index << guided), position.index);
        prop_assert!(position.index << position.height < count);
        let mut known = Known::new(&tree, tree.root());
        known.learn(&answer(&tree, &asked));
        prop_assert_eq!(known.node(height, index), Some(asked.0.node));
    }

    #[test]
    fn hints_have_their_lengths(length in 0usize..3000) {
        let long = |levels: &u8| length == 8 << levels;
        let short = |levels: &u8| length == 6 + (2 << levels);
        let expected = (1..=8).find(long).or_else(|| (1..=10).find(short)).or((length == 0).then_some(0));
        prop_assert_eq!(levels_of(&vec![7; length]), expected);
    }

    /// Whatever an endpoint tells of a challenge, it costs no more than a row, and nothing fails.
    #[test]
    fn events_of_any_kind_are_survived(
        (subject, levels, guided, height) in any::<(u8, u8, u8, u8)>(), index in any::<u64>(),
        count in any::<u64>(), data in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let position = Position { subject, levels, guided, height, index, count, ..Position::default() };
        let mut game = Game::new(ClaimId::default(), claim(), Address::ZERO, Address::ZERO);
        let data = Bytes::from(data);
        let siblings = data.chunks_exact(32).map(B256::from_slice).collect();
        let row = Row { position: position.clone(), siblings, data: data.clone() };
        for told in [
            Told::Asked { deadline: 0, position: position.clone(), hints: data.clone() },
            Told::Established { facts: Facts::default() },
            Told::Stated { signature: data.clone() },
            Told::Funded { amount: U256::MAX },
            Told::Funded { amount: U256::MAX },
            Told::Answered { deadline: 0, row: row.clone() },
            Told::Charged { gas: u64::MAX, owed: U256::MAX, spent: false },
        ] {
            game.apply(&told);
        }
        prop_assert_eq!(game.turn, Turn::Asking);
        let _ = (game.at_bottom(), game.stated(), is_bottom(&position));
        for size in [1, 7, count % 5000 + 1] {
            let own = OwnTree::list(items(size));
            prop_assert!(own.row(&position).is_none(), "no node is zero");
            prop_assert!(follow(&own, &position, &data).is_none(), "no node is zero");
            let mut known = Known::new(&own, B256::repeat_byte(9));
            known.learn(&row);
            let _ = (known.first_leaf(), known.pick(&position, levels.into()), known.prove(index), known.open(index));
        }
    }
}
