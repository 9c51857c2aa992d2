//! Operators that engines may compute as one, so that what lies between them need not leave a cache.
//!
//! | module | what lives there |
//! |---|---|
//! | [`attention`] | an attention, a few rows at a time |
//! | [`chain`] | operators in a row, and what each takes from which |
//! | `elementwise` | runs of operators that compute an element from those at its place |
//! | `sum` | gradients of several sequences, and their sum |

pub mod attention;
pub mod chain;
mod elementwise;
mod sum;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tensorlink_types::{Operator, Program, Segment, Source};

use self::attention::FusedAttention;
use self::chain::{Chain, Planned};
use crate::engine::{Engine, EngineError, StepContext};

/// Outputs with their operators' places.
type Placed<T> = Vec<(usize, T)>;

/// What to do when an operator's turn comes.
pub enum Turn<'a> {
    /// Nothing: the last of those that it is computed with does it.
    Later,
    /// The operator in this place.
    One(usize, &'a Operator),
    /// An attention, the last operator of which is in this place.
    Attention(usize, FusedAttention<&'a Operator>),
    /// A chain, of which it is the last.
    Chain(&'a Planned, Chain<&'a Operator>),
}

impl Turn<'_> {
    /// Computes what is to be computed now, from what the sources hold: outputs with their operators' places; none if a
    /// source holds nothing.
    ///
    /// # Errors
    /// Within, what the engine refuses.
    pub fn take<'t, E: Engine>(
        &self,
        engine: &E,
        find: impl Fn(Source) -> Option<&'t E::Tensor>,
        context: &StepContext,
    ) -> Option<Result<Placed<E::Tensor>, EngineError>>
    where
        E::Tensor: 't,
    {
        let (place, output) = match self {
            Self::Later => return Some(Ok(Vec::new())),
            Self::One(place, operator) => {
                let operands = operator.operands.iter().map(|operand| find(operand.source)).collect::<Option<Vec<_>>>();
                (*place, engine.execute(operator, &operands?, context))
            }
            Self::Attention(place, attention) => {
                let [query, key, table, values] = attention.operands()?.map(|operand| find(operand.source));
                (*place, engine.attend(attention, [query?, key?, table?, values?], context))
            }
            Self::Chain(planned, chain) => {
                let operands = planned.operands().map(find).collect::<Option<Vec<_>>>();
                let outputs = engine.chain(chain, &operands?, context);
                return Some(outputs.map(|outputs| planned.kept().zip(outputs).collect()));
            }
        };
        Some(output.map(|output| vec![(place, output)]))
    }
}

/// The operators of a program that are computed together, by the last of them.
#[derive(Clone, Default, Debug)]
pub struct Fusions {
    attentions: BTreeMap<usize, FusedAttention<usize>>,
    chains: BTreeMap<usize, Planned>,
    /// All but the last.
    within: BTreeSet<usize>,
}

impl Fusions {
    /// Attentions alone; `wanted` are outputs that somebody reads beside the operators.
    pub fn attentions(operators: &[Operator], wanted: impl IntoIterator<Item = Source>) -> Self {
        let readers = readers(operators, wanted);
        let mut fusions = Self::default();
        for last in 0..operators.len() {
            if let Some(attention) = attention::ending_at(operators, last, &readers) {
                fusions.within.extend(attention.places().filter(|place| *place != last));
                fusions.attentions.insert(last, attention);
            }
        }
        fusions
    }

    /// Everything in a program, which runs segment by segment.
    pub(crate) fn of_program(program: &Program, wanted: impl IntoIterator<Item = Source> + Clone) -> Self {
        let segments = program.segments.iter().map(Segment::operators);
        let segments = segments.map(|segment| segment.start as usize..segment.end as usize);
        Self::of_segments(&program.operators, segments, wanted)
    }

    /// Everything in operators that run segment by segment.
    pub(crate) fn of_segments(
        operators: &[Operator],
        segments: impl IntoIterator<Item = Range<usize>>,
        wanted: impl IntoIterator<Item = Source> + Clone,
    ) -> Self {
        let readers = readers(operators, wanted.clone());
        let mut fusions = Self::attentions(operators, wanted);
        for sum in sum::find(operators, &readers) {
            fusions.insert(Planned::new(operators, sum, &readers));
        }
        for segment in segments {
            let free = |place: &usize| !fusions.within.contains(place) && !fusions.chains.contains_key(place);
            for run in elementwise::find(operators, segment, free) {
                fusions.insert(Planned::new(operators, run, &readers));
            }
        }
        fusions
    }

    fn insert(&mut self, chain: Planned) {
        if let Some((last, others)) = chain.places().split_last() {
            self.within.extend(others);
            self.chains.insert(*last, chain);
        }
    }

    /// What to do when the turn of the operator in a place comes; none if there is no such place.
    pub fn turn<'a>(&'a self, operators: &'a [Operator], place: usize) -> Option<Turn<'a>> {
        if self.within.contains(&place) {
            return Some(Turn::Later);
        }
        if let Some(chain) = self.chains.get(&place) {
            return chain.in_program(operators).map(|links| Turn::Chain(chain, links));
        }
        if let Some(attention) = self.attentions.get(&place) {
            return attention.in_program(operators).map(|attention| Turn::Attention(place, attention));
        }
        operators.get(place).map(|operator| Turn::One(place, operator))
    }

    /// The operators that have run when this one's turn is over: itself, or all of which it is the last.
    pub fn done(&self, place: usize) -> impl Iterator<Item = usize> {
        let attention = self.attentions.get(&place).into_iter().flat_map(FusedAttention::places);
        let chain = self.chains.get(&place).into_iter().flat_map(Planned::places).copied();
        let others = attention.chain(chain).filter(move |within| *within != place);
        others.chain((!self.within.contains(&place)).then_some(place))
    }
}

/// How often each output is read; `wanted` are read beside the operators.
pub(crate) fn readers(operators: &[Operator], wanted: impl IntoIterator<Item = Source>) -> Vec<u32> {
    let mut readers = vec![0u32; operators.len()];
    let operands = operators.iter().flat_map(|operator| &operator.operands).map(|operand| operand.source);
    for source in operands.chain(wanted) {
        if let Source::Output(read) = source
            && let Some(count) = readers.get_mut(read as usize)
        {
            *count = count.saturating_add(1);
        }
    }
    readers
}
