//! The worker's side: an answer to whatever it is asked about its claim.

use alloy_primitives::{B256, Bytes};
use tensorlink_num::Tensor;
use tensorlink_types::TensorRoot;
use tensorlink_types::abi::{Claim, LogsAnswer, Position, ProgramHeader, StepAnswer, StepStatement, Way};
use thiserror::Error;

use super::position::is_root;
use super::way::follow;
use super::{Game, Move, OwnTree, Subject};
use crate::commit::{Boundary, BoundaryLists, Contracts, SenderSignatures, SignatureError, state_root, trace_root};
use crate::merkle::depth;

/// A claim of one's own and everything that was computed for it.
#[derive(Clone, Copy, Debug)]
pub struct Answerer<'a> {
    /// Chain and contracts.
    pub contracts: &'a Contracts,
    /// The claim.
    pub claim: &'a Claim,
    /// The stage's program.
    pub program: &'a ProgramHeader,
    /// Number of the first step.
    pub first_step: u32,
    /// Tensor roots of the state before the first step and after each.
    pub states: &'a [Vec<TensorRoot>],
    /// Roots of the operators' outputs, for each step.
    pub traces: &'a [Vec<TensorRoot>],
    /// Boundary logs.
    pub logs: &'a BoundaryLists,
    /// The neighbours' signatures of what was received.
    pub signatures: &'a SenderSignatures,
}

/// Why there is no answer yet, or none at all.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Lacking {
    /// Compute this output and ask again with it.
    #[error("output {operator} of step {step} is needed")]
    Output {
        /// Absolute step.
        step: u32,
        /// Operator.
        operator: u32,
    },
    /// The question is not about what this record holds: it is of another claim, or damaged. What is on disk must be
    /// looked at.
    #[error("the record of this claim does not hold what is asked for ({0:?})")]
    Record(Option<Subject>),
    /// The key could not sign.
    #[error(transparent)]
    Sign(#[from] SignatureError),
}

impl Answerer<'_> {
    /// The next answer in a game. `output` is the tensor that [`Lacking::Output`] asked for; `sign` signs a digest with
    /// the worker's key, and is asked to only about what this record holds.
    ///
    /// # Errors
    /// [`Lacking`].
    pub fn answer(
        &self,
        game: &Game,
        output: Option<&Tensor>,
        sign: impl FnOnce(B256) -> Result<Bytes, SignatureError>,
    ) -> Result<Move, Lacking> {
        let position = game.position.clone();
        let no_record = || Lacking::Record(game.subject());
        let row = |tree: &OwnTree<'_>| row(tree, &position, &game.hints).ok_or_else(no_record);
        let answer = |(way, data)| Ok(Move::Answer { position: position.clone(), way, data });
        match game.subject().ok_or_else(no_record)? {
            Subject::Steps => {
                let tree = OwnTree::list(self.states.iter().skip(1).map(|state| state_root(state)));
                if !position.node.is_zero() {
                    return answer(row(&tree)?);
                }
                let steps = tree.root();
                let asked = Position { node: steps, ..position.clone() };
                let (way, data) = self::row(&tree, &asked, &game.hints).ok_or_else(no_record)?;
                let last = tree.count().checked_sub(1).ok_or_else(no_record)?;
                let siblings = tree.prove(last);
                Ok(Move::AnswerSteps { position, claim: self.claim.clone(), steps, siblings, way, data })
            }
            Subject::Statement => self.statement(game, sign),
            Subject::Trace => answer(row(&OwnTree::list(self.trace(game).ok_or_else(no_record)?.iter().copied()))?),
            Subject::State => {
                let after = self.local(game).and_then(|local| self.states.get(local.checked_add(1)?));
                answer(row(&OwnTree::list(after.ok_or_else(no_record)?.iter().copied()))?)
            }
            Subject::Logs => {
                let said = LogsAnswer {
                    logs: self.logs.roots(),
                    previousSignature: self.signatures.previous.clone(),
                    nextSignature: self.signatures.next.clone(),
                    program: self.program.clone(),
                };
                let (facts, claim) = (game.facts.clone(), self.claim.clone());
                Ok(Move::AnswerLogs { position, facts, claim, said: Box::new(said) })
            }
            Subject::Log => {
                let logs = Boundary::ALL.iter().filter_map(|boundary| self.logs.get(*boundary));
                let found = logs.map(|log| OwnTree::list(log.items().iter().copied())).find_map(|tree| row(&tree).ok());
                answer(found.ok_or_else(no_record)?)
            }
            Subject::Output => {
                let operator = self.trace(game).and_then(|trace| trace.iter().position(|root| root.0 == game.output));
                let operator = operator.and_then(|at| u32::try_from(at).ok()).ok_or_else(no_record)?;
                let output = output.ok_or(Lacking::Output { step: game.facts.step, operator })?;
                let tree = OwnTree::tensor(output);
                if !is_root(&position) {
                    return answer(row(&tree)?);
                }
                let data_root = tree.root();
                let asked = Position { node: data_root, ..position.clone() };
                let (way, data) = self::row(&tree, &asked, &game.hints).ok_or_else(no_record)?;
                Ok(Move::AnswerOutput { position, facts: game.facts.clone(), data_root, way, data })
            }
        }
    }

    fn statement(
        &self,
        game: &Game,
        sign: impl FnOnce(B256) -> Result<Bytes, SignatureError>,
    ) -> Result<Move, Lacking> {
        let no_record = || Lacking::Record(Some(Subject::Statement));
        let step = game.facts.step;
        let local = step.checked_sub(self.first_step).ok_or_else(no_record)? as usize;
        let trace = self.traces.get(local).ok_or_else(no_record)?;
        let ends = self.states.get(local).zip(local.checked_add(1).and_then(|after| self.states.get(after)));
        let ends = ends.map(|(before, after)| (state_root(before), state_root(after)));
        // INVARIANT: nothing is signed that was not computed (P-15).
        if ends != Some((game.facts.preState, game.facts.postState)) || game.claim != *self.claim {
            return Err(no_record());
        }
        let statement = StepStatement {
            claimId: game.claim_id.0,
            auditor: game.challenger,
            step,
            preState: game.facts.preState,
            postState: game.facts.postState,
            trace: trace_root(trace),
        };
        let signature = sign(self.contracts.statement(&statement))?;
        let tree = OwnTree::list(trace.iter().copied());
        let height = u8::try_from(depth(tree.count())).map_err(|_| no_record())?;
        // Who asked could not tell the contract yet how high the tree is.
        let guided = game.position.guided.min(height);
        let top = Position {
            subject: Subject::Trace.to_number(),
            levels: game.position.levels.min(height.saturating_sub(guided)),
            guided,
            height,
            index: 0,
            count: tree.count(),
            node: tree.root(),
            ..Position::default()
        };
        let hints = if guided > 0 { game.hints.clone() } else { Bytes::new() };
        let (way, data) = row(&tree, &top, &hints).ok_or_else(no_record)?;
        let said = StepAnswer { trace: statement.trace, signature, program: self.program.clone() };
        Ok(Move::AnswerStatement { position: game.position.clone(), facts: game.facts.clone(), said, way, data })
    }

    fn local(&self, game: &Game) -> Option<usize> {
        game.facts.step.checked_sub(self.first_step).map(|local| local as usize)
    }

    fn trace(&self, game: &Game) -> Option<&[TensorRoot]> {
        self.traces.get(self.local(game)?).map(Vec::as_slice)
    }
}

/// Where hints lead from a position, and what is asked for there. None where the tree has another node at the position.
fn row(tree: &OwnTree<'_>, asked: &Position, hints: &Bytes) -> Option<(Way, Bytes)> {
    let (way, at) = follow(tree, asked, hints)?;
    Some((way, tree.row(&at)?.into()))
}
