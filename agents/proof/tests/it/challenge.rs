//! Trees that are walked down, and what an endpoint may make of them. Whole games are in `tests/games`.

use alloy_primitives::{Address, B256, Bytes};
use proptest::prelude::*;
use tensorlink_proof::challenge::position::{is_askable, is_bottom, leaf_of, levels_for, row_height, row_start};
use tensorlink_proof::challenge::{Game, Known, OwnTree, Subject, Told, Turn};
use tensorlink_proof::merkle::{Entries, depth, verify_membership};
use tensorlink_types::ClaimId;
use tensorlink_types::abi::{Claim, Facts, Position};

fn items(count: u64) -> Vec<B256> {
    (0..count).map(|i| B256::from(alloy_primitives::U256::from(i + 1))).collect()
}

fn claim() -> Claim {
    Claim { job: 1, stage: 0, replica: 0, interval: 0, parentState: B256::ZERO, newState: B256::ZERO, io: B256::ZERO }
}

fn root_of(tree: &OwnTree<'_>, subject: Subject) -> Position {
    let height = depth(tree.count());
    Position {
        subject: subject.to_number(),
        levels: levels_for(subject, height),
        height: height as u8,
        index: 0,
        count: tree.count(),
        node: tree.root(),
        facts: B256::ZERO,
    }
}

/// Walks from the root to the first difference; the challenger learns what the worker's tree answers.
fn walk(own: &OwnTree<'_>, theirs: &OwnTree<'_>) -> u64 {
    let mut known = Known::new(own, theirs.root());
    let mut position = root_of(theirs, Subject::Trace);
    loop {
        known.learn(&position, &theirs.row(&position).expect("the worker has it").into());
        let leaf = match known.first_leaf() {
            Ok(leaf) => {
                let item = Entries::item(&known, leaf).expect("it was answered");
                let siblings = known.prove(leaf).expect("its path is known");
                verify_membership(theirs.root(), theirs.count(), leaf, item, &siblings).expect("the path leads up");
                return leaf;
            }
            Err(leaf) => leaf,
        };
        let child = (leaf >> row_height(&position)) - row_start(&position);
        let pick = known.pick(&position, child as u32).expect("it was answered");
        assert_eq!(leaf_of(&position, pick.child) >> row_height(&position), leaf >> row_height(&position));
        let height = row_height(&position);
        position = Position {
            levels: levels_for(Subject::Trace, height),
            height: height as u8,
            index: row_start(&position) + child,
            node: pick.digest,
            ..position
        };
        assert!(is_askable(&position));
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
        prop_assert_eq!(walk(&own, &theirs), from);
    }

    /// Whatever an endpoint tells of a challenge, it costs no more than a row, and nothing fails.
    #[test]
    fn events_of_any_kind_are_survived(
        subject in any::<u8>(), levels in any::<u8>(), height in any::<u8>(), index in any::<u64>(),
        count in any::<u64>(), data in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let position = Position { subject, levels, height, index, count, node: B256::ZERO, facts: B256::ZERO };
        let mut game = Game::new(ClaimId::default(), claim(), Address::ZERO, Address::ZERO);
        let data = Bytes::from(data);
        for told in [
            Told::Asked { deadline: 0, position: position.clone() },
            Told::Established { facts: Facts::default() },
            Told::Stated { signature: data.clone() },
            Told::Answered { deadline: 0, position: position.clone(), data: data.clone() },
        ] {
            game.apply(&told);
        }
        prop_assert_eq!(game.turn, Turn::Asking);
        let _ = (game.at_bottom(), game.stated(), is_bottom(&position));
        for size in [1, 7, count % 5000 + 1] {
            let own = OwnTree::list(items(size));
            prop_assert!(own.row(&position).is_none(), "no node is zero");
            let mut known = Known::new(&own, B256::repeat_byte(9));
            known.learn(&position, &data);
            let _ = (known.first_leaf(), known.pick(&position, levels.into()), known.prove(index), known.open(index));
        }
    }
}
