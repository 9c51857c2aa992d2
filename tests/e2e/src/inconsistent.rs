//! Answers to a challenge whose roots do not fit each other, what the worker has claimed, or its program. All else in
//! them is honest.

use serde::Deserialize;
use tensorlink_proof::challenge::position::is_bottom;
use tensorlink_proof::challenge::{Move, OwnTree};
use tensorlink_types::B256;

/// Bytes of an entry of a list.
const ENTRY: usize = 32;

/// What does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inconsistency {
    /// The list of states has one more than the interval has steps.
    Count,
    /// The first state after a step is the one that the interval began with.
    First,
    /// The last state is not the one that was claimed.
    Last,
    /// The program takes the next state from other operators.
    Wiring,
    /// The program has other operators, or the same with other attributes.
    Attributes,
    /// What the wrong output holds is not what the trace holds of it.
    DataRoot,
}

impl Inconsistency {
    /// Makes an answer inconsistent, if it is one that can be so.
    pub fn twist(self, step: &mut Move) {
        match (self, step) {
            (
                Self::Count | Self::First | Self::Last,
                Move::AnswerSteps { position, claim, steps, siblings, data, .. },
            ) if is_bottom(position) => {
                let mut states: Vec<B256> = data.chunks_exact(ENTRY).map(B256::from_slice).collect();
                let begin = claim.parentState;
                match self {
                    Self::Count => states.insert(0, begin),
                    Self::First => states.first_mut().into_iter().for_each(|state| *state = begin),
                    _ => states.last_mut().into_iter().for_each(|state| *state = begin),
                }
                *data = states.concat().into();
                // A tree of its own, as an honest list has.
                let tree = OwnTree::list(states);
                *steps = tree.root();
                *siblings = tree.prove(tree.count().saturating_sub(1));
            }
            (Self::Wiring, Move::AnswerStatement { said, .. }) => said.program.wiring = other(said.program.wiring),
            (Self::Attributes, Move::AnswerStatement { said, .. }) => {
                said.program.operators = other(said.program.operators);
            }
            (Self::DataRoot, Move::AnswerOutput { data_root, .. }) => *data_root = other(*data_root),
            _ => {}
        }
    }
}

/// A root that is not this one.
fn other(root: B256) -> B256 {
    !root
}
