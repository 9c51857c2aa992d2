//! From a worker's signed answers and one's own re-execution of an interval, or of a text, to the fault to prove, if
//! there is one.
//!
//! Pure bookkeeping over roots: executing, asking and fetching are the validator's. [`Audit::verdict`] is called again
//! with more answers until it decides; each time it names the one thing it lacks.

use tensorlink_num::Tensor;
use tensorlink_types::abi::{Claim, StepStatement};
use tensorlink_types::{Program, TensorRoot};
use thiserror::Error;

use crate::commit::{Boundary, BoundaryLists, io_root, is_receipt, state_root, trace_root};
use crate::fraud::openings::sign_extended;
use crate::fraud::verify::{check_statement, contradict, contradicts_claim};
use crate::fraud::{Case, Signed, Sink, Work};
use crate::merkle::List;
use crate::merkle::tensor::canonical_bytes;

/// What an audit found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Every statement, the claim and the logs are what the program gives: nothing can be proven, nothing should be.
    Consistent,
    /// The output of this operator is the first of its step that differs. All its operands agree. Fetch the worker's
    /// tensor, find the element with [`first_element`], prove it with [`crate::fraud::Prover::element`].
    Element {
        /// Absolute step, or a text's number of tokens.
        step: u32,
        /// Operator.
        operator: u32,
    },
    /// All outputs of the step agree, but one did not go where the program sends it. Prove it with
    /// [`crate::fraud::Prover::wiring`].
    Wiring {
        /// Absolute step, or a text's number of tokens.
        step: u32,
        /// Where it should have gone.
        sink: Sink,
        /// State tensor or micro-batch.
        index: u32,
    },
    /// Two answers, by position, that cannot both be true: one step with two outcomes, a step that does not start where
    /// the one before ended, or two numbers of tokens of one text. Equal positions: the answer contradicts the claim.
    /// Prove it with [`crate::fraud::Prover::contradiction`].
    Contradiction {
        /// Position among the answers.
        first: usize,
        /// Position among the answers.
        second: usize,
    },
}

/// What is missing for a verdict. A worker that does not give what is asked here cannot be convicted by its signatures;
/// it must be made to reveal it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Undecided {
    /// Ask the worker for a signed statement on this step (none that was given is signed and about it).
    #[error("no signed statement on step {0}: ask the worker for one")]
    Statement(u32),
    /// Ask the worker for the list of output roots that its statement commits to.
    #[error("no list of roots opens the trace of step {0}: ask the worker for it")]
    Trace(u32),
    /// Ask the worker for the list of tensor roots of the state after this step.
    #[error("no list of roots opens the state after step {0}: ask the worker for it")]
    State(u32),
    /// Ask the worker for its boundary logs; those given are not what the claim commits to.
    #[error("the boundary logs do not open the claim: ask the worker for them")]
    Logs,
    /// One's own state at the interval's start is not the claim's parent state: audit the claim before this one first.
    #[error("the claim starts from another state: audit its parent first")]
    Parent,
    /// The claim of a serving job names a state: it is no receipt, so nothing can be proven about it and nothing is
    /// paid for it.
    #[error("the claim names a state: it is no receipt, pay nothing for it")]
    Receipt,
    /// One's own re-execution does not cover the interval or the program, or is of no text that the job can have;
    /// execute it again.
    #[error("the re-execution lacks step {0}: execute the whole interval")]
    Own(u32),
}

/// A worker's answer about one step; lists are fetched only for the step they decide.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What it signed.
    pub signed: Signed,
    /// Roots of the operators' outputs, if it gave them.
    pub trace: Option<Vec<TensorRoot>>,
    /// Roots of the state after the step, if it gave them.
    pub post_state: Option<Vec<TensorRoot>>,
}

/// One's own re-execution of an interval, from the claim's parent state and the worker's logged inputs; or of a text,
/// from no state.
#[derive(Clone, Debug)]
pub struct OwnInterval {
    /// Number of the first step; of a text: its number of tokens, as the worker's logged inputs show it.
    pub first_step: u32,
    /// Tensor roots of the state before the first step.
    pub state: Vec<TensorRoot>,
    /// For each step, the roots of the operators' outputs in program order.
    pub traces: Vec<Vec<TensorRoot>>,
}

/// A claim under audit.
#[derive(Clone, Copy, Debug)]
pub struct Audit<'a> {
    /// What the chain knows.
    pub case: &'a Case,
    /// The stage's program.
    pub program: &'a Program,
    /// The claim.
    pub claim: &'a Claim,
    /// Its boundary logs, as the worker gave them.
    pub logs: &'a BoundaryLists,
    /// One's own results.
    pub own: &'a OwnInterval,
}

impl Audit<'_> {
    /// Compares, in order of the steps, so that everything before a fault is known to agree.
    ///
    /// # Errors
    /// [`Undecided`]: what to ask for before calling again.
    pub fn verdict(&self, answers: &[Answer]) -> Result<Verdict, Undecided> {
        if io_root(&self.logs.roots()) != self.claim.io {
            return Err(Undecided::Logs);
        }
        let work = &self.case.work;
        if matches!(work, Work::Serving { .. }) && !is_receipt(self.claim) {
            return Err(Undecided::Receipt);
        }
        if state_root(&self.own.state) != self.claim.parentState {
            return Err(Undecided::Parent);
        }
        let start = self.own.first_step;
        if !work.holds(self.claim, start) || work.local_step(start) != 0 {
            return Err(Undecided::Own(start));
        }
        let mut previous: Option<usize> = None;
        for local in 0..work.steps() {
            let step = start.saturating_add(local);
            let (at, answer) = self.answer(answers, step).ok_or(Undecided::Statement(step))?;
            if let Some(verdict) = self.contradiction(answers, at, answer, previous) {
                return Ok(verdict);
            }
            if let Some(verdict) = self.step(answer, local)? {
                return Ok(verdict);
            }
            previous = Some(at);
        }
        Ok(Verdict::Consistent)
    }

    /// The first answer that counts on a step.
    fn answer<'b>(&self, answers: &'b [Answer], step: u32) -> Option<(usize, &'b Answer)> {
        answers.iter().enumerate().find(|(_, answer)| answer.signed.statement.step == step && self.counts(answer))
    }

    fn counts(&self, answer: &Answer) -> bool {
        let Signed { statement, signature } = &answer.signed;
        check_statement(self.case, self.claim, statement, signature).is_ok()
    }

    /// A statement against the claim, the step before, and other statements on the same step.
    fn contradiction(
        &self,
        answers: &[Answer],
        at: usize,
        answer: &Answer,
        previous: Option<usize>,
    ) -> Option<Verdict> {
        let statement = &answer.signed.statement;
        let work = &self.case.work;
        if contradicts_claim(work, self.claim, statement) {
            return Some(Verdict::Contradiction { first: at, second: at });
        }
        let before = previous.and_then(|at| Some((at, answers.get(at)?)));
        if let Some((first, before)) = before
            && contradict(work, &before.signed.statement, statement)
        {
            return Some(Verdict::Contradiction { first, second: at });
        }
        // The next step of an interval is compared when its turn comes; a receipt has no other step.
        let now = |other: &StepStatement| other.step == statement.step || work.steps() == 1;
        let other = answers.iter().enumerate().find(|(_, other)| {
            let other_statement = &other.signed.statement;
            now(other_statement) && contradict(work, statement, other_statement) && self.counts(other)
        });
        other.map(|(second, _)| Verdict::Contradiction { first: at, second })
    }

    /// A statement that starts from the right state against one's own outputs.
    fn step(&self, answer: &Answer, local: u32) -> Result<Option<Verdict>, Undecided> {
        let statement = &answer.signed.statement;
        let step = statement.step;
        let own = self.own.traces.get(local as usize).filter(|own| own.len() == self.program.operators.len());
        let own = own.ok_or(Undecided::Own(step))?;
        if trace_root(own) != statement.trace {
            let theirs = answer.trace.as_ref().filter(|theirs| theirs.len() == own.len());
            let theirs = theirs.filter(|theirs| trace_root(theirs) == statement.trace).ok_or(Undecided::Trace(step))?;
            // The roots differ, so the lists do.
            let operator = first_difference(own, theirs).ok_or(Undecided::Trace(step))?;
            return Ok(Some(Verdict::Element { step, operator }));
        }
        let output = |operator: &u32| own.get(*operator as usize).copied();
        let producers = self.program.state.iter().map(|slot| &slot.producer);
        let state: Vec<TensorRoot> = producers.map(output).collect::<Option<_>>().ok_or(Undecided::Own(step))?;
        if state_root(&state) != statement.postState {
            let theirs = answer.post_state.as_ref().filter(|theirs| theirs.len() == state.len());
            let theirs = theirs.filter(|theirs| state_root(theirs) == statement.postState);
            let theirs = theirs.ok_or(Undecided::State(step))?;
            let index = first_difference(&state, theirs).ok_or(Undecided::State(step))?;
            return Ok(Some(Verdict::Wiring { step, sink: Sink::State, index }));
        }
        for (sink, boundary, sources) in [
            (Sink::ToNext, Boundary::ToNext, &self.program.to_next),
            (Sink::ToPrevious, Boundary::ToPrevious, &self.program.to_previous),
        ] {
            for (micro_batch, source) in (0u32..).zip(sources) {
                let place = u64::from(local) * u64::from(self.program.micro_batches) + u64::from(micro_batch);
                let log = self.logs.get(boundary).map(List::items).unwrap_or_default();
                let logged = usize::try_from(place).ok().and_then(|i| log.get(i)).ok_or(Undecided::Logs)?;
                if *logged != output(source).ok_or(Undecided::Own(step))?.0 {
                    return Ok(Some(Verdict::Wiring { step, sink, index: micro_batch }));
                }
            }
        }
        Ok(None)
    }
}

/// First place where two lists of roots differ; a list that ends early differs there.
pub fn first_difference(own: &[TensorRoot], theirs: &[TensorRoot]) -> Option<u32> {
    let agree = own.iter().zip(theirs).take_while(|(own, theirs)| own == theirs).count();
    if agree == own.len().max(theirs.len()) { None } else { u32::try_from(agree).ok() }
}

/// First element in which a worker's bytes differ from one's own tensor: `theirs` are canonical bytes with or without
/// padding, and an index at or above the tensor's count is in the padding, which is zero (C-1). None if they agree, or
/// are not as long as the type says.
pub fn first_element(own: &Tensor, theirs: &[u8]) -> Option<u64> {
    let width = own.ty().width().bytes();
    let bytes = canonical_bytes(own);
    let (data, padding) = theirs.split_at_checked(bytes.len())?;
    let differs = |(own, theirs): (&[u8], &[u8])| own != theirs;
    let element = bytes.chunks(width).zip(data.chunks(width)).position(differs);
    let in_padding = || {
        let nonzero = padding.chunks(width).position(|bytes| sign_extended(bytes) != Some(0))?;
        (bytes.len() / width).checked_add(nonzero)
    };
    element.or_else(in_padding).map(|element| element as u64)
}
