//! What a worker might do in place of its interval.

use std::ops::Range;

use anyhow::Result;
use serde_json::Value;
use tensorlink_native::{Floats, Precision, State, Task};
use tensorlink_training::calibrate::job_key;
use tensorlink_training::step::StepGraph;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cheat {
    /// Operands of products in bfloat16.
    Bf16,
    /// In each step, the first micro-batch in place of the second: computed once, counted twice.
    MicroBatch,
    /// The same in one step.
    MicroBatchOnce,
    /// The last step is not taken.
    Update,
    /// Rows drawn by another key.
    Data,
}

impl Cheat {
    pub(super) const ALL: [Self; 5] = [Self::Bf16, Self::MicroBatch, Self::MicroBatchOnce, Self::Update, Self::Data];

    /// For people.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16 for f32",
            Self::MicroBatch => "a micro-batch skipped in each step",
            Self::MicroBatchOnce => "a micro-batch skipped in one step",
            Self::Update => "weights not updated in one step",
            Self::Data => "another seed's data",
        }
    }

    /// Whether it is one where this precision was asked for.
    pub(super) fn saves(self, precision: Precision) -> bool {
        self != Self::Bf16 || precision == Precision::F32
    }

    /// The interval as this cheat has it.
    pub(super) fn run(
        self,
        floats: &dyn Floats,
        (task, before): (&Task, &State),
        steps: Range<u32>,
        precision: Precision,
    ) -> Result<State> {
        let last = steps.end.saturating_sub(1);
        let run = |task: &Task, from: &State, steps, precision| {
            Ok::<_, anyhow::Error>(floats.run(task, from, steps, precision)?.0)
        };
        match self {
            Self::Bf16 => run(task, before, steps, Precision::Bf16),
            Self::MicroBatch => run(&skipping(task)?, before, steps, precision),
            Self::MicroBatchOnce => {
                let until = run(task, before, steps.start..last, precision)?;
                run(&skipping(task)?, &until, last..steps.end, precision)
            }
            Self::Update => run(task, before, steps.start..last, precision),
            Self::Data => run(&Task { key: job_key(u64::MAX), ..task.clone() }, before, steps, precision),
        }
    }
}

/// The task with the first micro-batch's rows for those of the second. Graphs are changed by who writes them: as
/// their bytes.
fn skipping(task: &Task) -> Result<Task> {
    let mut graph = serde_json::to_value(&task.graph)?;
    let nodes = graph.pointer_mut("/nodes").and_then(Value::as_array_mut).into_iter().flatten();
    let rows = nodes.filter_map(|node| node.pointer_mut("/op/Sample/first_row"));
    let mut rows: Vec<&mut Value> = rows.filter(|row| **row != 0).collect();
    let second = rows.iter().filter_map(|row| row.as_u64()).min();
    for row in rows.iter_mut().filter(|row| row.as_u64() == second) {
        **row = 0.into();
    }
    Ok(Task { graph: serde_json::from_value::<StepGraph>(graph)?, ..task.clone() })
}
