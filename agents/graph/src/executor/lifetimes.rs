//! How long the tensors of a step are wanted.

use std::collections::BTreeMap;

use tensorlink_types::{Program, Segment, Source};

use crate::fused::readers;

/// Of a program, the same in every step.
pub(super) struct Lifetimes {
    /// How often each output is read.
    pub(super) readers: Vec<u32>,
    /// Tensors of the state, with their producers, by the operator of the update after which nobody reads the old one
    /// and the next is there.
    replaced: BTreeMap<usize, Vec<(usize, u32)>>,
}

impl Lifetimes {
    pub(super) fn of(program: &Program) -> Self {
        let kept = program.state.iter().map(|slot| slot.producer);
        let wanted = kept.chain(program.to_next.iter().chain(&program.to_previous).copied());
        let readers = readers(&program.operators, wanted.map(Source::Output));
        let mut last_reader = vec![0u32; program.state.len()];
        for (reader, operator) in (0u32..).zip(&program.operators) {
            for operand in &operator.operands {
                if let Source::State(slot) = operand.source
                    && let Some(last) = last_reader.get_mut(slot as usize)
                {
                    *last = reader;
                }
            }
        }

        let update = program.segments.iter().find(|segment| matches!(segment, Segment::Update { .. }));
        let mut replaced: BTreeMap<usize, Vec<(usize, u32)>> = BTreeMap::new();
        for (slot, (last, state)) in last_reader.into_iter().zip(&program.state).enumerate() {
            let after = last.max(state.producer);
            // Before the update the step can begin again, and does so from the old one.
            if update.is_some_and(|update| update.operators().contains(&after)) {
                replaced.entry(after as usize).or_default().push((slot, state.producer));
            }
        }
        Self { readers, replaced }
    }

    /// What is replaced when an operator has run: places in the state, and whose outputs come there.
    pub(super) fn replaced_after(&self, operator: usize) -> &[(usize, u32)] {
        self.replaced.get(&operator).map_or(&[], Vec::as_slice)
    }
}
