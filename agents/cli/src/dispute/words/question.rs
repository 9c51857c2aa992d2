//! What a worker is asked for, in words.

use tensorlink_proof::challenge::Subject;
use tensorlink_proof::challenge::position::{is_bottom, is_root, leaf_of, row_height, row_len};
use tensorlink_types::abi::Position;

use super::numbers::{count, span};
use super::operator;
use crate::dispute::facts::Question;

/// A question as its object: "a signed statement on step 30 …".
pub(super) fn question(asked: &Question) -> String {
    let (position, step) = (&asked.position, asked.step.unwrap_or_default());
    let (first, last) = leaves(position);
    match asked.subject {
        Subject::Steps => {
            let root =
                if position.node.is_zero() { "the root of the list of states after each step, and " } else { "" };
            // Entry 0 is the state after the first step.
            let steps = span(first.saturating_add(1), last.saturating_add(1));
            match is_bottom(position) {
                true => format!("{root}the states after the interval's steps {steps}"),
                false => format!("{root}{} over the interval's steps {steps}", nodes(position)),
            }
        }
        Subject::Statement => format!(
            "a signed statement on step {step}: the state before it, the state after it and the root of its trace, \
             with nodes of the trace"
        ),
        Subject::Trace => match is_bottom(position) {
            true => format!("the roots of the outputs of operators {} in step {step}", span(first, last)),
            false => format!("{} of the trace of step {step}, over operators {}", nodes(position), span(first, last)),
        },
        Subject::State => match is_bottom(position) {
            true => format!("the roots of the state's tensors {} after step {step}", span(first, last)),
            false => format!("{} of the state after step {step}, over tensors {}", nodes(position), span(first, last)),
        },
        Subject::Logs => {
            "the roots of its logs of all tensors received and sent, with the senders' signatures".to_owned()
        }
        Subject::Log => match is_bottom(position) {
            true => format!("entries {} of a log of tensors received or sent", span(first, last)),
            false => {
                format!("{} of a log of tensors received or sent, over entries {}", nodes(position), span(first, last))
            }
        },
        Subject::Output => {
            let of = asked.operator.as_ref().map_or_else(|| "one operator".to_owned(), |named| operator(named, None));
            let root = if is_root(position) { "its data root and " } else { "" };
            let part = match is_bottom(position) {
                true => format!("leaves {}, of 256 bytes each", span(first, last)),
                false => nodes(position),
            };
            format!("the output of {of} in step {step}: {root}{part}")
        }
    }
}

fn nodes(position: &Position) -> String {
    let nodes = count(row_len(position), "node");
    if position.guided > 0 { format!("{nodes} (where hints lead)") } else { nodes }
}

/// First and last leaf below the row that is asked for.
fn leaves(position: &Position) -> (u64, u64) {
    // Hints may lead anywhere below the node.
    let position = &Position { levels: position.levels.saturating_add(position.guided), guided: 0, ..position.clone() };
    let first = leaf_of(position, 0);
    let wide = row_len(position).checked_shl(row_height(position)).unwrap_or(u64::MAX);
    (first, first.saturating_add(wide).min(position.count).saturating_sub(1).max(first))
}
