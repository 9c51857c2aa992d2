//! The challenger's side: from what is known by now to the next question, or to the proof.
//!
//! Each time the way to the first fault is gone from the start, over what the worker has answered so far; where an
//! answer is missing, it is asked for. So it does not matter who asked what before, or whether this node was restarted
//! in between.

use alloy_primitives::{B256, keccak256};
use tensorlink_num::Tensor;
use tensorlink_types::abi::{Question, StepStatement};
use tensorlink_types::{Program, TensorRoot};

use super::descent::{Approach, Found, Missing, approach, first_difference, learned};
use super::logs::KnownLogs;
use super::next::{Next, Stuck, Tensors};
use super::way::{guided, guided_from_root, plainly};
use super::{Game, Known, Move, OwnTree, Subject, Turn};
use crate::commit::{Boundary, BoundaryLists, state_root, trace_root};
use crate::fraud::{Case, FraudError, Prover, Signed, Sink, StepLists};
use crate::merkle::tensor::leaf_count;
use crate::merkle::{Entries, LEAF_BYTES, depth};

/// One's own execution of the claim, from the same parent state and inputs.
#[derive(Clone, Copy, Debug)]
pub struct Challenger<'a> {
    /// What the chain knows of the claim.
    pub case: &'a Case,
    /// The stage's program.
    pub program: &'a Program,
    /// When the claim was committed.
    pub committed_at: u64,
    /// Number of the first step.
    pub first_step: u32,
    /// Tensor roots of the state before the first step and after each.
    pub states: &'a [Vec<TensorRoot>],
    /// Roots of the operators' outputs, for each step.
    pub traces: &'a [Vec<TensorRoot>],
    /// Boundary logs.
    pub logs: &'a BoundaryLists,
    /// What the worker signed about the claim's last step to accuse an auditor, where that is not what one's own
    /// execution gives: it is made to sign about that step once more, however right its claim is.
    pub accusation: Option<&'a Signed>,
    /// What the worker could not know when it made its claim: hints are salted by it.
    pub salt: B256,
}

impl Challenger<'_> {
    /// What to do next in a game. `tensors` are those that [`Next::Tensors`] asked for.
    ///
    /// # Errors
    /// [`Stuck`].
    pub fn next(&self, game: &Game, tensors: Option<&Tensors>) -> Result<Next, Stuck> {
        if game.turn != Turn::Asking {
            return Err(Stuck::Turn);
        }
        let logs = KnownLogs::new(game, self.logs);
        if let Some(next) = self.equivocation(game) {
            return Ok(next);
        }
        let (local, logged) = match self.first_wrong_state(game)? {
            Found::Missing(question) => return Ok(Next::Ask(question)),
            Found::Leaf(local) => (local, None),
            Found::Agrees if self.accusation.is_some() => (self.last_step(), Some((Sink::State, 0))),
            Found::Agrees => match self.first_wrong_log(game, &logs)? {
                Err(question) => return Ok(Next::Ask(question)),
                Ok((sink, index, local)) => (local, Some((sink, index))),
            },
        };
        let said = match self.statement(game, local)? {
            Err(question) => return Ok(Next::Ask(question)),
            Ok(said) => said,
        };
        let prover = self.prover(&logs)?;
        if let Some(accusation) = self.accusation.filter(|accusation| contradict(accusation, &said)) {
            return Ok(Next::Contradiction(Box::new(prover.contradiction(&said, accusation)?)));
        }
        let index = usize::try_from(local).map_err(|_| Stuck::Own("step"))?;
        let (before, after) = (self.states.get(index), self.states.get(index.saturating_add(1)));
        let (before, after) = before.zip(after).ok_or(Stuck::Own("state"))?;
        let own_trace = OwnTree::list(self.traces.get(index).ok_or(Stuck::Own("trace"))?.iter().copied());
        let trace = learned(game, (Subject::Trace, said.statement.trace), &own_trace);
        let (own_before, own_after) = (OwnTree::list(before.iter().copied()), OwnTree::list(after.iter().copied()));
        let state = learned(game, (Subject::State, said.statement.postState), &own_after);
        let before = Known::new(&own_before, said.statement.preState);
        let lists = StepLists { said: &said, trace: &trace, before: &before, after: &state };

        let id = (Subject::Trace, said.statement.trace);
        match first_difference(game, id, &trace, self.salt(game), || self.restart(game, Subject::Trace, &own_trace)) {
            Found::Missing(question) => Ok(Next::Ask(question)),
            Found::Leaf(operator) => {
                let at = Wrong { operator, trace: &trace, lists: &lists, received: logs.roots.is_some() };
                self.element(game, &prover, &at, tensors)
            }
            Found::Agrees => {
                let (sink, index) = match logged {
                    Some(found) => found,
                    None => {
                        let id = (Subject::State, said.statement.postState);
                        let restart = || self.restart(game, Subject::State, &own_after);
                        match first_difference(game, id, &state, self.salt(game), restart) {
                            Found::Missing(question) => return Ok(Next::Ask(question)),
                            Found::Leaf(index) => (Sink::State, narrow(index)?),
                            Found::Agrees => return Err(Stuck::NoFault),
                        }
                    }
                };
                Ok(Next::Wiring(Box::new(prover.wiring_of(&lists, sink, index)?)))
            }
        }
    }

    /// The claim's last step, counted from its first.
    fn last_step(&self) -> u64 {
        u64::from(self.case.work.steps()).saturating_sub(1)
    }

    /// Whether the worker was sent, by its neighbour's own attestation, something else than what that neighbour's
    /// record says.
    fn equivocation(&self, game: &Game) -> Option<Next> {
        let ((theirs, signatures), own) = (game.logs.as_ref()?, self.logs.roots());
        let boundary = Boundary::ALL
            .into_iter()
            .find(|boundary| signatures.at(*boundary).is_some() && boundary.root(theirs) != boundary.root(&own))?;
        Some(Next::Equivocation { boundary, root: boundary.root(theirs), signature: signatures.at(boundary)?.clone() })
    }

    /// The first step of the claim after which the worker's state is not one's own, counted from the claim's first.
    fn first_wrong_state(&self, game: &Game) -> Result<Found, Stuck> {
        let own: Vec<B256> = self.states.iter().skip(1).map(|state| state_root(state)).collect();
        if own.len() as u64 != u64::from(self.case.work.steps()) {
            return Err(Stuck::Own("states"));
        }
        if let [own] = own.as_slice() {
            return Ok(if *own == game.claim.newState { Found::Agrees } else { Found::Leaf(0) });
        }
        let tree = OwnTree::list(own);
        let id = (Subject::Steps, game.facts.steps);
        let known = learned(game, id, &tree);
        Ok(first_difference(game, id, &known, self.salt(game), || self.restart(game, Subject::Steps, &tree)))
    }

    /// Where the worker logged as sent what its operators did not give: sink, micro-batch and step.
    fn first_wrong_log(&self, game: &Game, logs: &KnownLogs<'_>) -> Result<Result<(Sink, u32, u64), Missing>, Stuck> {
        let Some(theirs) = &logs.roots else {
            return Ok(Err(Box::new(Move::AskLogs { position: game.position.clone() })));
        };
        let own = self.logs.roots();
        if *theirs == own {
            // States and logs are right: at most a trace is wrong that leads nowhere. The only step of a claim can be
            // looked at.
            return if self.case.work.steps() == 1
                && self.traces.first().is_some_and(|own| trace_root(own) != game.facts.trace)
            {
                Ok(Ok((Sink::State, 0, 0)))
            } else {
                Err(Stuck::NoFault)
            };
        }
        for (boundary, sink) in [(Boundary::ToPrevious, Sink::ToPrevious), (Boundary::ToNext, Sink::ToNext)] {
            let root = boundary.root(theirs);
            if root == boundary.root(&own) {
                continue;
            }
            let own = self.logs.get(boundary).ok_or(Stuck::Own("log"))?;
            let tree = OwnTree::list(own.items().iter().copied());
            let known = learned(game, (Subject::Log, root), &tree);
            let ask = || Move::AskLog {
                position: game.position.clone(),
                facts: game.facts.clone(),
                claim: game.claim.clone(),
                logs: theirs.clone(),
                boundary: boundary.number(),
                question: guided(Subject::Log, &tree, (known.height(), 0), self.salt(game)),
            };
            return Ok(match first_difference(game, (Subject::Log, root), &known, self.salt(game), ask) {
                Found::Missing(question) => Err(question),
                Found::Agrees => return Err(Stuck::NoFault),
                Found::Leaf(entry) => {
                    let per_step = u64::from(self.program.micro_batches);
                    let local = entry.checked_div(per_step).ok_or(Stuck::Own("micro-batches"))?;
                    Ok((sink, narrow(entry.saturating_sub(local.saturating_mul(per_step)))?, local))
                }
            });
        }
        // Only what was received differs: the sender's attestation decides, which `next` has looked at.
        Err(Stuck::NoFault)
    }

    /// The worker's signed statement on a step of the claim.
    fn statement(&self, game: &Game, local: u64) -> Result<Result<Signed, Missing>, Stuck> {
        let step = self.first_step.checked_add(narrow(local)?).ok_or(Stuck::Own("step"))?;
        if let Some(said) = game.stated().filter(|said| said.statement.step == step) {
            return Ok(Ok(said));
        }
        let tree = OwnTree::list(self.states.iter().skip(1).map(|state| state_root(state)));
        let id = (Subject::Steps, game.facts.steps);
        let known = learned(game, id, &tree);
        let pick = match approach(game, id, &known, (local, self.salt(game))) {
            Approach::There(pick) => pick,
            Approach::On(question) => return Ok(Err(question)),
            Approach::Again => {
                let question = plainly(Subject::Steps, known.height());
                return Ok(Err(Box::new(Self::again(game, Subject::Steps, question))));
            }
        };
        let (pre_state, pre_siblings) = match local.checked_sub(1) {
            None => (game.claim.parentState, Vec::new()),
            Some(before) => {
                let state = Entries::item(&known, before).ok_or(Stuck::Own("state before the step"))?;
                (state, known.prove(before).map_err(FraudError::from)?)
            }
        };
        let question = self.about_statement(local, self.salt(game))?;
        Ok(Err(Box::new(Move::AskStatement {
            position: game.position.clone(),
            facts: game.facts.clone(),
            claim: game.claim.clone(),
            pick,
            pre_state,
            pre_siblings,
            question,
        })))
    }

    /// From the first wrong output to its first wrong element.
    fn element(
        &self,
        game: &Game,
        prover: &Prover<'_>,
        wrong: &Wrong<'_>,
        tensors: Option<&Tensors>,
    ) -> Result<Next, Stuck> {
        let (operator, step) = (narrow(wrong.operator)?, wrong.lists.said.statement.step);
        let op = self.program.operators.get(operator as usize).ok_or(Stuck::Own("operator"))?;
        let theirs = wrong.trace.item(wrong.operator).ok_or(Stuck::Own("output"))?;
        let Some(tensors) = tensors.filter(|tensors| (tensors.step, tensors.operator) == (step, operator)) else {
            return Ok(Next::Tensors { step, operator });
        };
        let own = OwnTree::tensor(&tensors.output);
        if own.count() != leaf_count(&op.output) {
            return Err(Stuck::Own("type of an output"));
        }
        let question = self.about_output(game, prover, wrong, &own)?;
        let Some(root) = game.output_root(theirs) else { return Ok(Next::Ask(question)) };
        let id = (Subject::Output, root);
        let known = learned(game, id, &own);
        let leaf = match first_difference(game, id, &known, self.salt(game), || *question) {
            Found::Missing(question) => return Ok(Next::Ask(question)),
            Found::Agrees => return Err(Stuck::NoFault),
            Found::Leaf(leaf) => leaf,
        };
        if op.receives() && !wrong.received {
            return Ok(Next::Ask(Box::new(Move::AskLogs { position: game.position.clone() })));
        }
        let (mine, other) = own.entry(leaf).zip(known.entry(leaf)).ok_or(Stuck::Own("leaf"))?;
        let width = op.output.width().bytes();
        let differs = |(mine, other): (&[u8], &[u8])| mine != other;
        let at = mine.chunks(width).zip(other.chunks(width)).position(differs).ok_or(Stuck::Own("leaf"))?;
        let per_leaf = (LEAF_BYTES / width) as u64;
        let element = leaf.saturating_mul(per_leaf).saturating_add(at as u64);
        let operands: Vec<&Tensor> = tensors.operands.iter().collect();
        Ok(Next::Element(Box::new(prover.element_of(wrong.lists, operator, element, &known, &operands)?)))
    }

    fn prover<'b>(&'b self, logs: &'b KnownLogs<'b>) -> Result<Prover<'b>, Stuck> {
        // A proof takes nothing of the claim but what the game's claim is.
        let claim = logs.claim;
        Ok(Prover::new(*self.case, self.program, claim, self.committed_at, logs)?)
    }

    /// The question for the first wrong output, or one that leads to where it can be asked.
    fn about_output(
        &self,
        game: &Game,
        prover: &Prover<'_>,
        wrong: &Wrong<'_>,
        own: &OwnTree<'_>,
    ) -> Result<Missing, Stuck> {
        let (operator, trace) = (narrow(wrong.operator)?, wrong.trace);
        let op = self.program.operators.get(operator as usize).ok_or(Stuck::Own("operator"))?;
        let id = (Subject::Trace, wrong.lists.said.statement.trace);
        Ok(match approach(game, id, trace, (wrong.operator, self.salt(game))) {
            Approach::There(pick) => Box::new(Move::AskOutput {
                position: game.position.clone(),
                facts: game.facts.clone(),
                pick,
                operator: op.into(),
                membership: prover.operator_membership(operator).map_err(FraudError::from)?,
                question: guided(Subject::Output, own, (depth(own.count()), 0), self.salt(game)),
            }),
            Approach::On(question) => question,
            Approach::Again => {
                let question = plainly(Subject::Trace, trace.height());
                Box::new(Self::again(game, Subject::Trace, question))
            }
        })
    }

    /// The question that opens a challenge: for the list of states, or, of a claim of one step, for its statement.
    ///
    /// # Errors
    /// [`Stuck::Own`].
    pub fn opening(&self) -> Result<Question, Stuck> {
        let salt = self.salted(0);
        if self.case.work.steps() == 1 {
            return self.about_statement(0, salt);
        }
        let tree = OwnTree::list(self.states.iter().skip(1).map(|state| state_root(state)));
        Ok(guided_from_root(Subject::Steps, &tree, salt))
    }

    /// How much to ask for of the trace of a step, counted from the claim's first, with its statement.
    fn about_statement(&self, local: u64, salt: B256) -> Result<Question, Stuck> {
        let trace = usize::try_from(local).ok().and_then(|at| self.traces.get(at)).ok_or(Stuck::Own("trace"))?;
        let tree = OwnTree::list(trace.iter().copied());
        let mut question = guided_from_root(Subject::Trace, &tree, salt);
        // The contract does not know yet how high the tree is, and wants one level at least.
        question.levels = question.levels.max(1);
        Ok(question)
    }

    /// Asks for a tree that is not one's own once more, from its root.
    fn restart(&self, game: &Game, subject: Subject, own: &OwnTree<'_>) -> Move {
        Self::again(game, subject, guided(subject, own, (depth(own.count()), 0), self.salt(game)))
    }

    fn again(game: &Game, subject: Subject, question: Question) -> Move {
        Move::AskTree { position: game.position.clone(), facts: game.facts.clone(), subject, question }
    }

    /// Another salt for each question: what hints missed by chance, the next ones find.
    fn salt(&self, game: &Game) -> B256 {
        self.salted(game.asked)
    }

    fn salted(&self, asked: u64) -> B256 {
        keccak256([self.salt.as_slice(), &asked.to_be_bytes()].concat())
    }
}

/// Whether two statements give one step two outcomes.
fn contradict(one: &Signed, other: &Signed) -> bool {
    let said = |signed: &Signed| {
        let StepStatement { step, preState, postState, trace, .. } = signed.statement;
        (step, preState, postState, trace)
    };
    one.statement.step == other.statement.step && said(one) != said(other)
}

/// The first wrong output of a step.
struct Wrong<'a> {
    /// Which operator gave it.
    operator: u64,
    /// The worker's trace.
    trace: &'a Known<'a>,
    /// The step's lists.
    lists: &'a StepLists<'a>,
    /// Whether the roots of the claim's logs are known.
    received: bool,
}

fn narrow(number: u64) -> Result<u32, Stuck> {
    u32::try_from(number).map_err(|_| Stuck::Own("number"))
}
