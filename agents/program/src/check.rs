//! The program checker: what a program must satisfy before anybody executes it, stakes on it or commits to it.
//!
//! A [`CheckedProgram`] exists only if its program passed, so whatever takes one need not check again.

use std::ops::{Deref, Range};

use tensorlink_num::{OpError, check_operator};
use tensorlink_types::{Program, Segment, Source, TensorType};
use thiserror::Error;

/// Most operators of a stage's program.
pub const MAX_OPERATORS: usize = 1 << 17;
/// Most constants of a program, most state tensors, and most micro-batches: those that share sequences exchange one
/// parameter in each.
pub const MAX_SLOTS: usize = 1 << 12;
/// Most bytes of all tensors of a step together, constants and state included; a bound on what a worker can be made to
/// allocate.
pub const MAX_BYTES: u64 = 1 << 38;

/// A program that passed [`check`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedProgram(Program);

impl CheckedProgram {
    /// Checks a program.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn new(program: Program) -> Result<Self, ProgramError> {
        check(&program)?;
        Ok(Self(program))
    }

    /// The program.
    pub fn into_inner(self) -> Program {
        self.0
    }
}

impl Deref for CheckedProgram {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.0
    }
}

/// Why a program is refused. A worker must not stake on such a program; its author compiles it again.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProgramError {
    /// Too many of something.
    #[error("{count} {what}, at most {limit} are allowed")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        count: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// An operator breaks a rule of the arithmetic.
    #[error("operator {index} ({name}): {source}")]
    Operator {
        /// Its index.
        index: usize,
        /// Its name.
        name: String,
        /// The rule.
        source: Box<OpError>,
    },
    /// An operand refers to something that does not exist, or not yet at that point.
    #[error("operator {index}: operand {operand} reads {from:?}, which is not available in {segment:?}")]
    Wiring {
        /// The operator.
        index: usize,
        /// The operand.
        operand: usize,
        /// What it refers to.
        from: Source,
        /// Where the operator stands.
        segment: Segment,
    },
    /// An operand's type differs from that of the tensor it refers to.
    #[error("operator {index}: operand {operand} says {named}, its source is {actual}")]
    OperandType {
        /// The operator.
        index: usize,
        /// The operand.
        operand: usize,
        /// What the operand says.
        named: TensorType,
        /// What the source has.
        actual: TensorType,
    },
    /// A state tensor's producer does not exist or has another type.
    #[error("state {slot} ({name}) is produced by operator {producer}, which does not give its type")]
    State {
        /// The slot.
        slot: usize,
        /// Its name.
        name: String,
        /// The producer named.
        producer: u32,
    },
    /// A boundary is wired wrongly: not one operator of the right segment for each micro-batch.
    #[error("the boundary {boundary} must name one operator of each micro-batch's own {pass} pass")]
    Boundary {
        /// `to_next` or `to_previous`.
        boundary: &'static str,
        /// `forward` or `backward`.
        pass: &'static str,
    },
    /// Not one type for each micro-batch of what a neighbour sends.
    #[error("the boundary {0} must have one type for each micro-batch, or none at all")]
    Received(&'static str),
    /// The segments do not cover the operators once and in order, or a micro-batch lacks its passes.
    #[error(
        "segments must be: Prepare at most once; in rounds of micro-batches, Forward for each of a round, then Backward for each of it, or all Forward and no Backward; Update at most once; they must cover all operators in order (see segment {0})"
    )]
    Segments(usize),
    /// The lists of operators and names differ in length.
    #[error("{operators} operators have {names} names")]
    Names {
        /// Operators.
        operators: usize,
        /// Names.
        names: usize,
    },
}

/// Checks everything about a program that can be checked without data.
///
/// # Errors
/// The first rule it breaks.
pub fn check(program: &Program) -> Result<(), ProgramError> {
    sizes(program)?;
    let segments = segments(program)?;
    for (index, operator) in program.operators.iter().enumerate() {
        let name = || program.names.get(index).cloned().unwrap_or_default();
        check_operator(operator).map_err(|source| ProgramError::Operator {
            index,
            name: name(),
            source: Box::new(source),
        })?;
        let Some(segment) = segments.iter().find(|s| s.operators().contains(&(index as u32))) else {
            return Err(ProgramError::Segments(segments.len()));
        };
        for (position, operand) in operator.operands.iter().enumerate() {
            let Some(actual) = source_type(program, operand.source, index, segment, segments) else {
                let (from, segment) = (operand.source, segment.clone());
                return Err(ProgramError::Wiring { index, operand: position, from, segment });
            };
            if *actual != operand.ty {
                let (named, actual) = (operand.ty.clone(), actual.clone());
                return Err(ProgramError::OperandType { index, operand: position, named, actual });
            }
        }
    }
    for (slot, state) in program.state.iter().enumerate() {
        if output(program, state.producer) != Some(&state.ty) {
            let (name, producer) = (state.name.clone(), state.producer);
            return Err(ProgramError::State { slot, name, producer });
        }
    }
    boundaries(program)
}

/// Bytes of every tensor a step of the program touches, constants, state and what is received included. Saturates.
pub fn memory(program: &Program) -> u64 {
    let constants = program.constants.iter().map(|c| &c.ty);
    let state = program.state.iter().map(|s| &s.ty);
    let outputs = program.operators.iter().map(|o| &o.output);
    let received = program.from_previous.iter().chain(&program.from_next);
    constants.chain(state).chain(outputs).chain(received).fold(0, |sum, ty| sum.saturating_add(ty.byte_len()))
}

fn sizes(program: &Program) -> Result<(), ProgramError> {
    let at_most = |what, count: u64, limit: u64| {
        if count <= limit { Ok(()) } else { Err(ProgramError::TooMany { what, count, limit }) }
    };
    at_most("operators", program.operators.len() as u64, MAX_OPERATORS as u64)?;
    at_most("constants", program.constants.len() as u64, MAX_SLOTS as u64)?;
    at_most("state tensors", program.state.len() as u64, MAX_SLOTS as u64)?;
    at_most("micro-batches", program.micro_batches.into(), MAX_SLOTS as u64)?;
    at_most("bytes of tensors", memory(program), MAX_BYTES)?;
    let (operators, names) = (program.operators.len(), program.names.len());
    if operators == names { Ok(()) } else { Err(ProgramError::Names { operators, names }) }
}

/// Order and cover of the segments. The order is Prepare, then rounds of Forward a.. and Backward a.., then Update.
fn segments(program: &Program) -> Result<&[Segment], ProgramError> {
    let mut end = 0;
    let (mut forwards, mut backwards) = (0u32, 0u32);
    let mut last: Option<&Segment> = None;
    for (index, segment) in program.segments.iter().enumerate() {
        let Range { start, end: next } = *segment.operators();
        let expected = match *segment {
            Segment::Prepare { .. } => last.is_none(),
            Segment::Forward { micro_batch, .. } => {
                let goes_on = !matches!(last, Some(Segment::Backward { .. })) || backwards == forwards;
                micro_batch == forwards && goes_on
            }
            Segment::Backward { micro_batch, .. } => micro_batch == backwards && backwards < forwards,
            Segment::Update { .. } => true,
        };
        if start != end || next <= start || !expected || matches!(last, Some(Segment::Update { .. })) {
            return Err(ProgramError::Segments(index));
        }
        forwards = forwards.saturating_add(u32::from(matches!(segment, Segment::Forward { .. })));
        backwards = backwards.saturating_add(u32::from(matches!(segment, Segment::Backward { .. })));
        (end, last) = (next, Some(segment));
    }
    let complete = forwards == program.micro_batches
        && forwards > 0
        && (backwards == forwards || backwards == 0)
        && u64::from(end) == program.operators.len() as u64;
    if complete { Ok(&program.segments) } else { Err(ProgramError::Segments(program.segments.len())) }
}

fn output(program: &Program, index: u32) -> Option<&TensorType> {
    program.operators.get(index as usize).map(|operator| &operator.output)
}

/// Whether a program has no backward pass. What the next stage sends is then there before the forward pass.
pub fn forward_only(program: &Program) -> bool {
    !program.segments.iter().any(|segment| matches!(segment, Segment::Backward { .. }))
}

/// The micro-batches of each round: the forward passes of one may read what the backward passes of those before
/// it made.
pub fn rounds(program: &Program) -> Vec<Range<u32>> {
    let mut rounds: Vec<Range<u32>> = Vec::new();
    let mut is_back = true;
    for segment in &program.segments {
        match *segment {
            Segment::Forward { micro_batch, .. } => {
                let end = micro_batch.saturating_add(1);
                match rounds.last_mut().filter(|_| !is_back) {
                    Some(round) => round.end = end,
                    None => rounds.push(micro_batch..end),
                }
                is_back = false;
            }
            Segment::Backward { .. } => is_back = true,
            Segment::Prepare { .. } | Segment::Update { .. } => {}
        }
    }
    rounds
}

/// Whether the forward passes of these micro-batches do nothing but take what neighbours send, and send: an
/// operator each.
pub fn only_exchanges(program: &Program, micro_batches: &Range<u32>) -> bool {
    let computes = |segment: &Segment| match segment {
        Segment::Forward { micro_batch, operators } => micro_batches.contains(micro_batch) && operators.len() > 2,
        _ => false,
    };
    !program.segments.iter().any(computes)
}

/// Type of what an operand refers to, if it is available where the operator stands, whatever valid order the segments
/// run in.
fn source_type<'a>(
    program: &'a Program,
    source: Source,
    index: usize,
    segment: &Segment,
    segments: &[Segment],
) -> Option<&'a TensorType> {
    match source {
        Source::State(slot) => program.state.get(slot as usize).map(|slot| &slot.ty),
        Source::Constant(slot) => program.constants.get(slot as usize).map(|slot| &slot.ty),
        Source::Output(producer) => {
            let made_in = segments.iter().find(|s| s.operators().contains(&producer))?;
            let visible = (producer as usize) < index && visible(made_in, segment);
            if visible { output(program, producer) } else { None }
        }
        Source::FromPrevious(mb) => match *segment {
            Segment::Forward { micro_batch, .. } | Segment::Backward { micro_batch, .. } if micro_batch == mb => {
                program.from_previous.get(mb as usize)
            }
            _ => None,
        },
        Source::FromNext(mb) => match *segment {
            Segment::Backward { micro_batch, .. } if micro_batch == mb => program.from_next.get(mb as usize),
            Segment::Forward { micro_batch, .. } if micro_batch == mb && forward_only(program) => {
                program.from_next.get(mb as usize)
            }
            _ => None,
        },
    }
}

/// Whether a segment may read what another made, which comes before it. Backward passes run in the order of their
/// micro-batches, so that each may add to the sums of those before it; rounds one after another.
fn visible(made_in: &Segment, reader: &Segment) -> bool {
    match (made_in, reader) {
        (Segment::Prepare { .. }, _)
        | (_, Segment::Update { .. })
        | (Segment::Backward { .. }, Segment::Forward { .. }) => true,
        (
            Segment::Forward { micro_batch: made, .. },
            Segment::Forward { micro_batch: read, .. } | Segment::Backward { micro_batch: read, .. },
        ) => made == read,
        (Segment::Backward { micro_batch: made, .. }, Segment::Backward { micro_batch: read, .. }) => made <= read,
        _ => false,
    }
}

fn boundaries(program: &Program) -> Result<(), ProgramError> {
    let forward = |segment: &Segment| match *segment {
        Segment::Forward { micro_batch, .. } => Some(micro_batch),
        _ => None,
    };
    let backward = |segment: &Segment| match *segment {
        Segment::Backward { micro_batch, .. } => Some(micro_batch),
        _ => None,
    };
    for (received, types) in [("from_previous", &program.from_previous), ("from_next", &program.from_next)] {
        if !types.is_empty() && types.len() as u64 != u64::from(program.micro_batches) {
            return Err(ProgramError::Received(received));
        }
    }
    boundary(program, &program.to_next, forward)
        .ok_or(ProgramError::Boundary { boundary: "to_next", pass: "forward" })?;
    boundary(program, &program.to_previous, backward)
        .ok_or(ProgramError::Boundary { boundary: "to_previous", pass: "backward" })
}

fn boundary(program: &Program, sent: &[u32], pass: impl Fn(&Segment) -> Option<u32>) -> Option<()> {
    if sent.is_empty() {
        return Some(());
    }
    let right = |(mb, index): (u32, &u32)| {
        let made_in = program.segments.iter().find(|s| s.operators().contains(index));
        made_in.and_then(&pass) == Some(mb)
    };
    let complete = sent.len() as u64 == u64::from(program.micro_batches);
    (complete && (0..).zip(sent).all(right)).then_some(())
}
