//! The step that stages were cut out of.

use std::collections::BTreeSet;
use std::ops::Range;

use tensorlink_types::operator::Operand;
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{Operator, Program, Segment, Source, StateSlot};

use super::{At, CutError, Kept, Layout, Part, StageInfo, Whole};
use crate::step::Phase;

/// A constant or a state tensor of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The stage.
    pub stage: usize,
    /// Which of its constants, or state tensors.
    pub index: usize,
}

/// Where a step's constants and state come from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origins {
    /// Each constant, of the first stage that has it.
    pub constants: Vec<Origin>,
    /// Each state tensor.
    pub state: Vec<Origin>,
}

/// Stages of one step, first to last.
type Stages<'a> = [(&'a Program, &'a StageInfo, &'a Layout)];

/// Things with their numbers.
type Numbered<T> = Vec<(u32, T)>;

impl Whole {
    /// The step that these stages, first to last, were cut out of, and which of their constants and state are its own.
    ///
    /// # Errors
    /// [`CutError::Apart`] if they were not cut out of one step.
    pub fn merged(stages: &Stages<'_>) -> Result<(Self, Origins), CutError> {
        let Some((first, last)) = stages.first().zip(stages.last()) else {
            return Err(CutError::Apart("there is none"));
        };
        let mut merging = Merging { stages, constants: Vec::new(), origins: Origins::default(), own: Vec::new() };
        merging.constants();
        let operators = in_order(merging.operators()?)?;
        let (state, origins): (Vec<Kept>, _) = in_order(merging.state()?)?.into_iter().unzip();
        let info = merging.info(0..last.1.layers.end);
        let layers = operators.iter().map(|part| part.layer).chain(state.iter().map(|kept| kept.layer));
        if layers.into_iter().any(|layer| !info.layers.contains(&layer)) {
            return Err(CutError::Apart("a part of it is in no layer"));
        }
        merging.origins.state = origins;
        let whole = Self {
            operators,
            constants: merging.constants,
            state,
            info,
            rounds: rounds(stages),
            micro_batches: first.0.micro_batches,
        };
        Ok((whole, merging.origins))
    }
}

struct Merging<'a> {
    stages: &'a Stages<'a>,
    constants: Vec<ConstantSlot>,
    origins: Origins,
    /// Which of them each stage's are.
    own: Vec<Vec<u32>>,
}

impl Merging<'_> {
    /// Stages that read the same table have it each.
    fn constants(&mut self) {
        for (stage, (program, ..)) in self.stages.iter().enumerate() {
            let mut own = Vec::new();
            for (index, slot) in program.constants.iter().enumerate() {
                let known = self.constants.iter().position(|known| known.root == slot.root && known.ty == slot.ty);
                own.push(known.unwrap_or(self.constants.len()) as u32);
                if known.is_none() {
                    self.constants.push(slot.clone());
                    self.origins.constants.push(Origin { stage, index });
                }
            }
            self.own.push(own);
        }
    }

    /// Each operator of the step with its number.
    fn operators(&self) -> Result<Numbered<Part>, CutError> {
        let mut parts = Vec::new();
        for (stage, (program, _, layout)) in self.stages.iter().enumerate() {
            for (segment, phase) in program.segments.iter().map(|segment| (segment, phase(segment))) {
                for index in segment.operators().clone() {
                    let operator = program.operators.get(index as usize);
                    let at = layout.operators.get(index as usize);
                    let Some((operator, at)) = operator.zip(at) else {
                        return Err(CutError::Apart("a layout has fewer operators than its stage"));
                    };
                    let operands = operator.operands.iter().map(|operand| self.operand(stage, operand));
                    let operator = Operator { operands: operands.collect::<Result<_, _>>()?, ..operator.clone() };
                    let name = program.names.get(index as usize).cloned().unwrap_or_default();
                    parts.push((at.number, Part { operator, name, layer: at.layer as usize, phase }));
                }
            }
        }
        Ok(parts)
    }

    /// What an operator of a stage reads, of the whole step.
    fn operand(&self, stage: usize, Operand { source, ty }: &Operand) -> Result<Operand, CutError> {
        let received = |from: Option<usize>, sent: fn(&Program) -> &Vec<u32>, mb: u32| {
            let (program, _, layout) = from.and_then(|from| self.stages.get(from))?;
            layout.operators.get(*sent(program).get(mb as usize)? as usize)
        };
        let layout = self.stages.get(stage).map(|(_, _, layout)| *layout);
        let number = |at: Option<&At>| at.map(|at| at.number);
        let source = match *source {
            Source::Output(index) => {
                number(layout.and_then(|layout| layout.operators.get(index as usize))).map(Source::Output)
            }
            Source::State(index) => {
                number(layout.and_then(|layout| layout.state.get(index as usize))).map(Source::State)
            }
            Source::Constant(index) => {
                self.own.get(stage).and_then(|own| own.get(index as usize)).map(|own| Source::Constant(*own))
            }
            Source::FromPrevious(mb) => {
                number(received(stage.checked_sub(1), |program| &program.to_next, mb)).map(Source::Output)
            }
            Source::FromNext(mb) => {
                number(received(stage.checked_add(1), |program| &program.to_previous, mb)).map(Source::Output)
            }
        };
        let source = source.ok_or(CutError::Apart("an operator reads what no stage has"))?;
        Ok(Operand { source, ty: ty.clone() })
    }

    /// Each tensor of the step's state with its number.
    fn state(&self) -> Result<Numbered<(Kept, Origin)>, CutError> {
        let mut state = Vec::new();
        for (stage, (program, _, layout)) in self.stages.iter().enumerate() {
            for (index, slot) in program.state.iter().enumerate() {
                let producer = layout.operators.get(slot.producer as usize);
                let Some((at, producer)) = layout.state.get(index).zip(producer) else {
                    return Err(CutError::Apart("a layout has less state than its stage"));
                };
                let slot = StateSlot { producer: producer.number, ..slot.clone() };
                state.push((at.number, (Kept { slot, layer: at.layer as usize }, Origin { stage, index })));
            }
        }
        Ok(state)
    }

    /// What people want to know of it, of one stage with all layers.
    fn info(&self, layers: Range<usize>) -> StageInfo {
        let all = |of: fn(&StageInfo) -> &Vec<u32>| {
            let of_stage = |(_, info, layout): &(&Program, &StageInfo, &Layout)| -> Vec<u32> {
                of(info).iter().filter_map(|index| Some(layout.operators.get(*index as usize)?.number)).collect()
            };
            self.stages.iter().flat_map(of_stage).collect()
        };
        StageInfo {
            layers,
            features: all(|info| &info.features),
            labels: all(|info| &info.labels),
            logits: all(|info| &info.logits),
            probabilities: all(|info| &info.probabilities),
        }
    }
}

/// Everything by its number; none is missing, and none there twice.
fn in_order<T>(mut numbered: Numbered<T>) -> Result<Vec<T>, CutError> {
    numbered.sort_by_key(|(number, _)| *number);
    if (0..).zip(&numbered).any(|(expected, (number, _))| expected != *number) {
        return Err(CutError::Apart("a part of it is missing, or there twice"));
    }
    Ok(numbered.into_iter().map(|(_, value)| value).collect())
}

const fn phase(segment: &Segment) -> Phase {
    match segment {
        Segment::Prepare { .. } => Phase::Prepare,
        Segment::Forward { micro_batch, .. } => Phase::Forward(*micro_batch),
        Segment::Backward { micro_batch, .. } => Phase::Backward(*micro_batch),
        Segment::Update { .. } => Phase::Update,
    }
}

/// First micro-batch of each round: a forward pass after a backward one begins another, in whichever stage has both.
fn rounds(stages: &Stages<'_>) -> Vec<u32> {
    let mut rounds = BTreeSet::from([0]);
    for (program, ..) in stages {
        for (before, after) in program.segments.iter().zip(program.segments.iter().skip(1)) {
            if let (Phase::Backward(_), Phase::Forward(first)) = (phase(before), phase(after)) {
                rounds.insert(first);
            }
        }
    }
    rounds.into_iter().collect()
}
