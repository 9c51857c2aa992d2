//! A training step as one list of operators, and its stages: cut out of it, and put together again.
//!
//! Operators come of the compiler, or of the stages of an earlier cut ([`Whole::merged`]). They are the same, so that
//! the state after a step does not depend on how a training is cut, nor on how often it is cut anew.

mod merged;
mod segments;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tensorlink_types::operator::Operand;
use tensorlink_types::program::ConstantSlot;
use tensorlink_types::{Operator, Program, Source, StateSlot, TensorType};
use thiserror::Error;

use self::segments::segments;
use crate::step::Phase;

pub use self::merged::{Origin, Origins};

/// A step that is not cut.
#[derive(Clone, PartialEq, Debug)]
pub struct Whole {
    /// Operands refer to the operators, constants and state of the whole step, and to no neighbour.
    pub(crate) operators: Vec<Part>,
    pub(crate) constants: Vec<ConstantSlot>,
    /// A producer is one of the operators of the whole step.
    pub(crate) state: Vec<Kept>,
    /// Of one stage with all layers; its operators are those of the whole step.
    pub(crate) info: StageInfo,
    /// First micro-batch of each round.
    pub(crate) rounds: Vec<u32>,
    pub(crate) micro_batches: u32,
}

/// An operator of a step.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Part {
    pub(crate) operator: Operator,
    pub(crate) name: String,
    pub(crate) layer: usize,
    pub(crate) phase: Phase,
}

/// A tensor of a step's state.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Kept {
    pub(crate) slot: StateSlot,
    pub(crate) layer: usize,
}

/// What people want to know about a stage; not committed. Operator indexes have one entry for each micro-batch but
/// where it says so, and none where the stage does not compute such a tensor.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageInfo {
    /// Linear layers, half open.
    pub layers: Range<usize>,
    /// Operators that draw features (first stage; every stage of an encoder, whose blocks have to know what is
    /// padding). Each block may have its own.
    pub features: Vec<u32>,
    /// Operators that draw labels (last stage).
    pub labels: Vec<u32>,
    /// Operators whose output goes into the softmax (last stage).
    pub logits: Vec<u32>,
    /// Operators whose output is the probability of each class (last stage).
    pub probabilities: Vec<u32>,
}

/// Where the operators of a stage, and its state, stand in the whole step; not committed. By this a training can be cut
/// anew.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Each operator of the stage, in its order.
    pub operators: Vec<At>,
    /// Each tensor of its state.
    pub state: Vec<At>,
}

/// A place in a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// The layer.
    pub layer: u32,
    /// Which of the step's operators, or of its state.
    pub number: u32,
}

/// A stage that was cut out of a step.
#[derive(Clone, PartialEq, Debug)]
pub struct Cut {
    /// The step function.
    pub program: Program,
    /// Which of the step's constants each of the program's is.
    pub constants: Vec<u32>,
    /// For people and metrics.
    pub info: StageInfo,
    /// Where it was cut out.
    pub layout: Layout,
}

/// Why there are no such stages.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CutError {
    /// They do not cover the layers one after the other.
    #[error("stages {stages:?} do not cut {layers} layers into consecutive, non-empty ranges")]
    Stages {
        /// The ranges given.
        stages: Vec<Range<usize>>,
        /// Layers of the step.
        layers: usize,
    },
    /// An operator reads what no neighbour passes on.
    #[error("{0} reads what its stage does not have")]
    Foreign(String),
    /// Stages that were not cut out of one step.
    #[error("the stages are not those of one step: {0}")]
    Apart(&'static str),
}

/// Whether ranges of layers cover so many, one after the other.
///
/// # Errors
/// [`CutError::Stages`] if they do not.
pub fn check_stages(layers: usize, stages: &[Range<usize>]) -> Result<(), CutError> {
    let mut next = 0;
    for range in stages {
        if range.start != next || range.is_empty() {
            next = usize::MAX;
            break;
        }
        next = range.end;
    }
    if next == layers { Ok(()) } else { Err(CutError::Stages { stages: stages.to_vec(), layers }) }
}

impl Whole {
    /// The layers that stages are made of.
    pub const fn layers(&self) -> usize {
        self.info.layers.end
    }

    /// Shares of a step's sequences, each of which ends in labels of its own.
    pub fn shares(&self) -> usize {
        let layers = self.info.labels.iter().filter_map(|number| self.part(*number));
        layers.map(|part| part.layer).collect::<BTreeSet<_>>().len()
    }

    /// One stage for each range of layers.
    ///
    /// # Errors
    /// [`CutError`].
    pub fn cut(&self, stages: &[Range<usize>]) -> Result<Vec<Cut>, CutError> {
        check_stages(self.layers(), stages)?;
        stages.iter().map(|layers| self.stage(layers)).collect()
    }

    fn stage(&self, layers: &Range<usize>) -> Result<Cut, CutError> {
        let awaited = self.awaited(layers);
        let mut order: Vec<(u32, &Part)> = self.parts().filter(|(_, part)| layers.contains(&part.layer)).collect();
        order.sort_by_key(|(n, part)| (self.round(part.phase), part.phase, !awaited.contains(n), *n));
        let kept: Vec<(u32, &Kept)> = (0..).zip(&self.state).filter(|(_, kept)| layers.contains(&kept.layer)).collect();
        let mut stage = Stage {
            whole: self,
            layers,
            operators: order.iter().map(|(n, _)| *n).zip(0..).collect(),
            state: kept.iter().map(|(n, _)| *n).zip(0..).collect(),
            constants: Vec::new(),
            from_previous: BTreeMap::new(),
            from_next: BTreeMap::new(),
        };
        let operators = order.iter().map(|(_, part)| stage.operator(part)).collect::<Result<_, _>>()?;
        let state = kept.iter().map(|(_, kept)| stage.kept(kept)).collect::<Result<_, _>>()?;
        let (to_next, to_previous) = stage.boundaries();
        let at = |(number, layer): (u32, usize)| At { layer: layer as u32, number };
        let layout = Layout {
            operators: order.iter().map(|(n, part)| at((*n, part.layer))).collect(),
            state: kept.iter().map(|(n, kept)| at((*n, kept.layer))).collect(),
        };
        let features: BTreeSet<u32> = self.info.features.iter().copied().collect();
        let own = |of: &[u32]| of.iter().filter_map(|n| stage.operators.get(n).copied()).collect();
        let info = StageInfo {
            layers: layers.clone(),
            features: (0..).zip(&order).filter(|(_, (n, _))| features.contains(n)).map(|(index, _)| index).collect(),
            labels: own(&self.info.labels),
            logits: own(&self.info.logits),
            probabilities: own(&self.info.probabilities),
        };
        let constants = stage.constants;
        let program = Program {
            operators,
            constants: constants.iter().filter_map(|n| self.constants.get(*n as usize)).cloned().collect(),
            state,
            micro_batches: self.micro_batches,
            to_next,
            to_previous,
            from_previous: stage.from_previous.into_values().collect(),
            from_next: stage.from_next.into_values().collect(),
            segments: segments(order.iter().map(|(_, part)| part.phase)),
            names: order.iter().map(|(_, part)| part.name.clone()).collect(),
        };
        Ok(Cut { program, constants, info, layout })
    }

    fn parts(&self) -> impl Iterator<Item = (u32, &Part)> {
        (0..).zip(&self.operators)
    }

    fn part(&self, number: u32) -> Option<&Part> {
        self.operators.get(number as usize)
    }

    fn round(&self, phase: Phase) -> usize {
        match phase {
            Phase::Prepare => 0,
            Phase::Forward(mb) | Phase::Backward(mb) => self.rounds.partition_point(|first| *first <= mb),
            Phase::Update => usize::MAX,
        }
    }

    /// What a neighbour waits for in each pass, and what of the pass that comes of: it goes first, as gradients by
    /// weights can wait (Qi et al., *Zero Bubble Pipeline Parallelism*, 2023).
    fn awaited(&self, layers: &Range<usize>) -> BTreeSet<u32> {
        let is_own = |number: &u32| self.part(*number).is_some_and(|part| layers.contains(&part.layer));
        let mut open = Vec::new();
        for (_, reader) in self.parts().filter(|(_, reader)| !layers.contains(&reader.layer)) {
            open.extend(reader.reads().filter(is_own));
        }
        let mut awaited = BTreeSet::new();
        while let Some(number) = open.pop() {
            if let Some(part) = self.part(number)
                && awaited.insert(number)
            {
                open.extend(part.reads().filter(|read| self.part(*read).is_some_and(|read| read.phase == part.phase)));
            }
        }
        awaited
    }
}

impl Part {
    /// Operators whose outputs it reads.
    fn reads(&self) -> impl Iterator<Item = u32> {
        self.operator.operands.iter().filter_map(|operand| match operand.source {
            Source::Output(number) => Some(number),
            _ => None,
        })
    }

    fn foreign(&self) -> CutError {
        CutError::Foreign(self.name.clone())
    }
}

/// A stage under construction.
struct Stage<'a> {
    whole: &'a Whole,
    layers: &'a Range<usize>,
    /// Its own, by what they are in the whole step.
    operators: BTreeMap<u32, u32>,
    state: BTreeMap<u32, u32>,
    /// The step's, in the order of their first use.
    constants: Vec<u32>,
    /// Types of what the neighbours send, by micro-batch.
    from_previous: BTreeMap<u32, TensorType>,
    from_next: BTreeMap<u32, TensorType>,
}

impl Stage<'_> {
    fn operator(&mut self, part: &Part) -> Result<Operator, CutError> {
        let operands = part.operator.operands.iter().map(|operand| self.operand(part, operand));
        Ok(Operator { operands: operands.collect::<Result<_, _>>()?, ..part.operator.clone() })
    }

    /// Where the stage finds what one of its operators reads.
    fn operand(&mut self, reader: &Part, Operand { source, ty }: &Operand) -> Result<Operand, CutError> {
        let source = match *source {
            Source::Output(number) => match self.operators.get(&number) {
                Some(own) => Source::Output(*own),
                None => self.received(reader, number, ty)?,
            },
            Source::State(number) => Source::State(*self.state.get(&number).ok_or_else(|| reader.foreign())?),
            Source::Constant(number) => Source::Constant(self.constant(number)),
            Source::FromPrevious(_) | Source::FromNext(_) => return Err(reader.foreign()),
        };
        Ok(Operand { source, ty: ty.clone() })
    }

    /// What a neighbour passes on.
    fn received(&mut self, reader: &Part, number: u32, ty: &TensorType) -> Result<Source, CutError> {
        let made = self.whole.part(number).ok_or_else(|| reader.foreign())?;
        let (Phase::Forward(mb) | Phase::Backward(mb)) = made.phase else { return Err(reader.foreign()) };
        let is_previous = made.layer < self.layers.start;
        let slot = if is_previous { &mut self.from_previous } else { &mut self.from_next };
        slot.insert(mb, ty.clone());
        Ok(if is_previous { Source::FromPrevious(mb) } else { Source::FromNext(mb) })
    }

    /// A constant, registered at its first use.
    fn constant(&mut self, number: u32) -> u32 {
        let known = self.constants.iter().position(|known| *known == number);
        known.unwrap_or_else(|| {
            self.constants.push(number);
            self.constants.len().saturating_sub(1)
        }) as u32
    }

    fn kept(&self, Kept { slot, .. }: &Kept) -> Result<StateSlot, CutError> {
        let own = self.operators.get(&slot.producer).copied();
        Ok(StateSlot { producer: own.ok_or_else(|| CutError::Foreign(slot.name.clone()))?, ..slot.clone() })
    }

    /// Operators of this stage whose output a neighbour reads, one for each micro-batch.
    fn boundaries(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut to_next, mut to_previous) = (BTreeMap::new(), BTreeMap::new());
        for (_, reader) in self.whole.parts().filter(|(_, reader)| !self.layers.contains(&reader.layer)) {
            for read in reader.reads() {
                let (Some(made), Some(own)) = (self.whole.part(read), self.operators.get(&read)) else { continue };
                let (Phase::Forward(mb) | Phase::Backward(mb)) = made.phase else { continue };
                let forward = reader.layer >= self.layers.end;
                let boundary = if forward { &mut to_next } else { &mut to_previous };
                if forward == matches!(made.phase, Phase::Forward(_)) {
                    boundary.insert(mb, *own);
                }
            }
        }
        (to_next.into_values().collect(), to_previous.into_values().collect())
    }
}
