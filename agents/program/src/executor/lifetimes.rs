//! How long the tensors of a step are wanted, and how many there are at once.

use std::collections::{BTreeMap, BTreeSet};

use tensorlink_types::{Operator, Program, Segment, Source, TensorType};

use crate::fused::{Fusions, readers};

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

/// Bytes on the device of a step's tensors at once, at most: constants and state, what is received, each output until
/// its last reader has run, and beside an operator as much again as it reads and writes. Segments run in the
/// program's order, in which every forward pass of a round comes before the backward passes: no other order holds more.
/// Saturates.
pub fn peak(program: &Program) -> u64 {
    let lifetimes = Lifetimes::of(program);
    let output = |index: usize| program.operators.get(index).map_or(0, |operator| operator.output.byte_len());
    let mut pending = lifetimes.readers.clone();
    let mut read = |index: usize, alive: &mut u64| {
        let Some(left) = pending.get_mut(index) else { return };
        *left = left.saturating_sub(1);
        if *left == 0 {
            *alive = alive.saturating_sub(output(index));
        }
    };
    let handed: BTreeSet<usize> =
        program.to_next.iter().chain(&program.to_previous).map(|output| *output as usize).collect();
    let mut alive = sum(held(program));
    let mut peak = alive;
    let kept = program.state.iter().map(|slot| slot.producer);
    let kept = kept.chain(program.to_next.iter().chain(&program.to_previous).copied());
    let fusions = Fusions::of_program(program, kept.map(Source::Output));
    for index in program.segments.iter().flat_map(|segment| segment.operators().clone()) {
        // What is computed as one is there at once.
        let computed: Vec<usize> = fusions.done(index as usize).collect();
        let operators = || computed.iter().filter_map(|place| program.operators.get(*place));
        alive = alive.saturating_add(sum(operators().map(|operator| &operator.output)));
        let beside = |of: &Operator| sum(of.operands.iter().map(|operand| &operand.ty).chain([&of.output]));
        peak = peak.max(alive.saturating_add(operators().map(beside).max().unwrap_or_default()));
        for operand in operators().flat_map(|operator| &operator.operands) {
            if let Source::Output(of) = operand.source {
                read(of as usize, &mut alive);
            }
        }
        for place in computed {
            if handed.contains(&place) {
                read(place, &mut alive);
            }
            for (slot, _) in lifetimes.replaced_after(place) {
                alive = alive.saturating_sub(program.state.get(*slot).map_or(0, |state| state.ty.byte_len()));
            }
        }
    }
    peak
}

/// What lies on the device through a whole step.
fn held(program: &Program) -> impl Iterator<Item = &TensorType> {
    let constants = program.constants.iter().map(|slot| &slot.ty);
    let state = program.state.iter().map(|slot| &slot.ty);
    constants.chain(state).chain(&program.from_previous).chain(&program.from_next)
}

fn sum<'a>(types: impl Iterator<Item = &'a TensorType>) -> u64 {
    types.fold(0, |sum, ty| sum.saturating_add(ty.byte_len()))
}
