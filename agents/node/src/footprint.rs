//! How much memory a stage takes on a node, so that it is refused before it is fetched, and not by the system in the
//! middle of a job.
//!
//! What is counted lies in the host's memory where the device is the CPU. A node with a GPU counts the same, though a
//! part of it lies beside the GPU: it takes rather less than it could.

use serde::{Deserialize, Serialize};
use tensorlink_model::decode::bytes_per_token;
use tensorlink_model::{Plan, PlanError};
use tensorlink_program::executor::peak;
use tensorlink_types::Program;

use crate::files::file_len;
use crate::interval::inputs_len;

/// Open texts of a serving lane.
pub const MAX_TEXTS: usize = 64;
/// Bytes of their rows.
pub const MAX_TEXT_BYTES: usize = 256 << 20;
/// Requests that wait for a serving lane, and that it takes up at once.
pub const QUEUE: usize = 32;
/// Bytes of their rows.
const MAX_QUEUE_BYTES: u64 = 256 << 20;

/// Memory of a stage, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Footprint {
    /// What a worker of it holds at once, at most, while it computes.
    pub lane: u64,
    /// What it takes beside that to repeat an interval, or a text, for an auditor. A node repeats one at a time,
    /// whichever lane it is of.
    pub repeat: u64,
}

impl Footprint {
    /// A stage of a training job, with so many steps in an interval.
    pub fn training(program: &Program, steps: u32) -> Self {
        let constants = file_len(program.constants.iter().map(|slot| &slot.ty));
        let state = file_len(program.state.iter().map(|slot| &slot.ty));
        let (step, received) = (peak(program), Self::received(inputs_len(program, steps)));
        // The initial state stays; while an interval is computed the state after the one before is written to disk, as
        // tensors and as a file, beside what it received.
        let lane = sum([step, state, state, state, received.lane]);
        // Constants are the lane's. The state that it begins with is read as a file.
        let repeat = sum([step.saturating_sub(constants), state, state, received.repeat]);
        Self { lane, repeat }
    }

    /// What a stage of a training job takes for so many bytes that it receives in an interval.
    pub fn received(bytes: u64) -> Self {
        Self { lane: sum([bytes, bytes]), repeat: bytes }
    }

    /// A stage that serves texts of up to `longest` tokens, with room for the keys and values of one, which may take
    /// twice its own ([`Session`](tensorlink_model::Session)).
    ///
    /// # Errors
    /// [`PlanError`] if the plan gives no such program.
    pub fn serving(plan: &Plan, longest: u32) -> Result<Self, PlanError> {
        let program = plan.program(longest)?;
        let constants = file_len(plan.constants().iter().map(|slot| &slot.ty));
        let step = peak(&program);
        let outputs = program.to_next.iter().filter_map(|index| program.operators.get(*index as usize));
        let given = file_len(outputs.map(|operator| &operator.output));
        let inputs = inputs_len(&program, 1);
        let text = inputs.saturating_add(given);
        let texts = text.saturating_mul(MAX_TEXTS as u64).min(MAX_TEXT_BYTES as u64);
        let tokens = bytes_per_token(plan)?.saturating_mul(longest.into()).saturating_mul(2);
        Ok(Self {
            lane: sum([step, texts, tokens, queue(inputs)]),
            repeat: sum([step.saturating_sub(constants), inputs]),
        })
    }

    /// What it takes where no other lane shares the memory.
    pub const fn alone(self) -> u64 {
        self.lane.saturating_add(self.repeat)
    }
}

/// Most bytes of rows that wait for a serving lane, where the longest text has `text` bytes of them: never less than
/// that text's.
pub fn queue(text: u64) -> u64 {
    text.saturating_mul(QUEUE as u64).min(MAX_QUEUE_BYTES).max(text)
}

fn sum<const N: usize>(parts: [u64; N]) -> u64 {
    parts.into_iter().fold(0, u64::saturating_add)
}
