//! Geometry of the trees that are walked down: the same rules as `contracts/libraries/challenges/Dissection.sol`.

use serde::{Deserialize, Serialize};
use tensorlink_types::abi::Position;

use crate::merkle::depth;

/// Most levels that can be asked for at once.
pub const MAX_LEVELS: u8 = 8;
/// Most levels above the leaves of a tensor from which the leaves can be asked for: 8 leaves, 2 KiB.
pub const MAX_LEAF_LEVELS: u8 = 3;
/// Most levels by hints at once, which are short then.
pub const MAX_GUIDED: u8 = 10;
/// Levels that a question without hints asks for where there are more. What they cost is in
/// `tests/contracts/snapshots/challenge.json`.
const LEVELS: u8 = 6;
/// Levels by short hints where there are more, and by long ones: 1 KiB of them.
const GUIDED: u32 = 9;
const LONG_GUIDED: u32 = 7;
/// Levels that a question with short hints asks for below where they lead: 16 nodes; and one with long ones at most,
/// 128 nodes.
const BELOW: u32 = 4;
const LONG_BELOW: u32 = 7;

/// Bytes of a hint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum HintSize {
    /// For a tree whose root is known: nothing of it can be made to fit the hints.
    Short = 2,
    /// For one whose root comes with the answer: so many bits that nobody finds a node that fits them.
    Long = 8,
}

impl HintSize {
    /// In bytes.
    pub const fn bytes(self) -> usize {
        self as usize
    }

    /// Most levels that the contract takes hints of.
    pub const fn max_levels(self) -> u8 {
        match self {
            Self::Short => MAX_GUIDED,
            Self::Long => 8,
        }
    }
}

/// What a worker is asked for, as the contract numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Subject {
    /// The list of states after each step, and then its nodes.
    Steps = 1,
    /// A signed statement about a step.
    Statement = 2,
    /// Nodes of the trace.
    Trace = 3,
    /// Nodes of the state after the step.
    State = 4,
    /// The roots behind the claim's `io`.
    Logs = 5,
    /// Nodes of a boundary log.
    Log = 6,
    /// Data root of an output, and then nodes and leaves.
    Output = 7,
}

impl Subject {
    /// The subject of a position; none if the contract has no such number.
    pub const fn of(position: &Position) -> Option<Self> {
        Some(match position.subject {
            1 => Self::Steps,
            2 => Self::Statement,
            3 => Self::Trace,
            4 => Self::State,
            5 => Self::Logs,
            6 => Self::Log,
            7 => Self::Output,
            _ => return None,
        })
    }

    /// On-chain number.
    pub const fn to_number(self) -> u8 {
        self as u8
    }
}

/// Whether a position is one that the contract lets be asked for. What an endpoint says may be anything.
pub fn is_askable(position: &Position) -> bool {
    let Some(height) = position.height.checked_sub(position.guided) else { return false };
    let levels = position.levels;
    let tree = u32::from(position.height) <= 63
        && u32::from(position.height) <= depth(position.count)
        && position.guided <= MAX_GUIDED
        && levels <= height
        && levels <= MAX_LEVELS
        && (levels > 0 || height == 0)
        && leaf_of(&Position { levels: 0, ..position.clone() }, 0) < position.count;
    match Subject::of(position) {
        Some(Subject::Statement | Subject::Logs) => levels <= MAX_LEVELS && position.guided <= MAX_GUIDED,
        Some(Subject::Output) => tree && (levels < height || levels <= MAX_LEAF_LEVELS),
        Some(_) => tree,
        None => false,
    }
}

/// Whether a position is one of a tree, so that its numbers say which row is asked for: of a statement and of logs they
/// say nothing, and may be anything.
pub fn is_row(position: &Position) -> bool {
    is_askable(position) && !matches!(Subject::of(position), Some(Subject::Statement | Subject::Logs))
}

/// Whether what is asked for is a tree's last row: entries of a list, leaves of a tensor.
pub const fn is_bottom(position: &Position) -> bool {
    position.levels == position.height
}

/// Whether the position is the root of its tree.
pub fn is_root(position: &Position) -> bool {
    position.index == 0 && u32::from(position.height) == depth(position.count)
}

/// Height of the row that is asked for.
pub fn row_height(position: &Position) -> u32 {
    u32::from(position.height.saturating_sub(position.levels))
}

/// Where the row begins, at its height.
pub fn row_start(position: &Position) -> u64 {
    below(position.index, position.levels.into())
}

/// Nodes of the row; in the last row only those that are there.
pub fn row_len(position: &Position) -> u64 {
    let width = 1u64.checked_shl(position.levels.into()).unwrap_or(u64::MAX);
    if is_bottom(position) { width.min(position.count.saturating_sub(row_start(position))) } else { width }
}

/// The first leaf below a child of the row.
pub fn leaf_of(position: &Position, child: u32) -> u64 {
    let at = row_start(position).saturating_add(child.into());
    below(at, row_height(position))
}

/// The first of the nodes so many levels below the one of this index; the greatest number where there are not so many.
fn below(index: u64, levels: u32) -> u64 {
    1u64.checked_shl(levels).and_then(|width| index.checked_mul(width)).unwrap_or(u64::MAX)
}

/// How many levels to ask for at once below a node of this height: few large rows cost more calldata, many small ones
/// more transactions, and rows of 64 nodes cost the least. The levels are divided evenly.
pub fn levels_for(subject: Subject, height: u32) -> u8 {
    let leaves = if subject == Subject::Output { u32::from(MAX_LEAF_LEVELS) } else { u32::from(LEVELS) };
    let levels = if height <= leaves {
        height
    } else {
        let above = height.saturating_sub(leaves);
        let rows = above.div_ceil(LEVELS.into());
        above.div_ceil(rows)
    };
    u8::try_from(levels).unwrap_or(MAX_LEVELS).min(MAX_LEVELS)
}

/// How many levels to go down by hints of this size below a node of this height, and how many to ask for below that. A
/// short hint takes a sixteenth of the calldata that a node takes, and a long one a quarter; each is in the question
/// and in the answer.
pub fn guided_levels(subject: Subject, height: u32, size: HintSize) -> (u8, u8) {
    let (guided, levels) = match (subject, size) {
        // The root of an output is in the trace. One leaf says all.
        (Subject::Output, _) if height <= GUIDED => (height, 0),
        (Subject::Output, _) => {
            let rest = height.saturating_sub(GUIDED);
            let leaves = rest <= u32::from(MAX_LEAF_LEVELS);
            (GUIDED, if leaves { rest } else { rest.saturating_sub(1).min(BELOW) })
        }
        _ if height <= BELOW.saturating_add(1) => (0, height),
        (_, HintSize::Long) => {
            let guided = (height / 2).saturating_add(1).min(LONG_GUIDED);
            (guided, height.saturating_sub(guided).min(LONG_BELOW))
        }
        _ if height <= GUIDED.saturating_add(BELOW).saturating_add(1) => {
            let guided = height.saturating_sub(BELOW).min(GUIDED);
            (guided, height.saturating_sub(guided))
        }
        _ => (GUIDED, BELOW),
    };
    (u8::try_from(guided).unwrap_or(MAX_GUIDED), u8::try_from(levels).unwrap_or(MAX_LEVELS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_of_any_height_end_in_a_row_that_can_be_asked_for() {
        for subject in [Subject::Trace, Subject::Output] {
            for height in 0..=32u32 {
                let (mut left, mut rows) = (height, 0);
                loop {
                    let levels = u32::from(levels_for(subject, left));
                    assert!(levels <= u32::from(MAX_LEVELS) && (levels > 0 || left == 0));
                    if subject == Subject::Output && levels == left {
                        assert!(levels <= u32::from(MAX_LEAF_LEVELS));
                    }
                    left -= levels;
                    rows += 1;
                    if left == 0 {
                        break;
                    }
                }
                assert!(rows <= 6, "{subject:?} of height {height}: {rows} rows");
            }
        }
    }

    #[test]
    fn the_largest_game_takes_four_answers() {
        let rows = |subject, height: u32, mut size| {
            let (mut left, mut rows) = (height, 0);
            while left > 0 || rows == 0 {
                let (guided, levels) = guided_levels(subject, left, size);
                assert!(guided <= size.max_levels());
                let position = Position {
                    subject: subject.to_number(),
                    levels,
                    guided,
                    height: u8::try_from(left).unwrap(),
                    count: 1 << left,
                    ..Position::default()
                };
                assert!(is_askable(&position), "{position:?}");
                left -= u32::from(guided) + u32::from(levels);
                (rows, size) = (rows + 1, HintSize::Short);
            }
            rows
        };
        for height in 0..=32 {
            for subject in [Subject::Steps, Subject::Trace, Subject::Output] {
                assert!(rows(subject, height, HintSize::Short) <= 3);
            }
            assert!(rows(Subject::Trace, height, HintSize::Long) <= 3);
        }
        // 10,000 steps, 3,000 operators, 2^21 leaves.
        let lists = rows(Subject::Steps, 14, HintSize::Long) + rows(Subject::Trace, 12, HintSize::Long);
        assert_eq!(lists + rows(Subject::Output, 21, HintSize::Short), 4);
    }
}
