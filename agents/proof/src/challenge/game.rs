//! A challenge as its events tell it.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256};
use serde::{Deserialize, Serialize};
use tensorlink_types::ClaimId;
use tensorlink_types::abi::{BoundaryLogs, Claim, Facts, Position, StepStatement};

use super::Subject;
use super::position::{is_bottom, is_root};
use super::way::top;
use crate::commit::SenderSignatures;
use crate::fraud::Signed;

/// Something that an event told of one challenge.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case")]
#[allow(missing_docs, reason = "names and units are those of the contract's events")]
pub enum Told {
    Asked { deadline: u64, position: Position, hints: Bytes },
    Answered { deadline: u64, row: Row },
    Established { facts: Facts },
    Stated { signature: Bytes },
    LogsGiven { logs: BoundaryLogs, signatures: SenderSignatures },
    Funded { amount: U256 },
    Charged { gas: u64, owed: U256, spent: bool },
    Won { silence: bool },
    Lost,
}

/// An answer about a tree: what lies below the position, and the siblings of the way that hints led from where it was
/// asked for.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Whose descendants these are.
    pub position: Position,
    /// From the position's node up.
    pub siblings: Vec<B256>,
    /// Nodes, entries or leaves.
    pub data: Bytes,
}

/// Whose move it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// The challenger's: it asks, or proves.
    Asking,
    /// The worker's.
    Answering,
    /// Anybody's, who ends it: the deposit did not cover an answer, so the challenge is lost unless the claim is void.
    Spent,
    /// Nobody's: the challenger has its bond and its deposit back.
    Won,
    /// Nobody's: the worker has the bond, and what its answers have cost.
    Lost,
}

impl Turn {
    /// Whether the challenge is not over.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Asking | Self::Answering | Self::Spent)
    }
}

/// A tree that the worker has answered about: what it is, and its root.
pub(super) type TreeId = (Subject, B256);

/// A challenge, folded from its events in order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Game {
    /// The claim.
    pub claim: Claim,
    /// Its id.
    pub claim_id: ClaimId,
    /// Who asks.
    pub challenger: Address,
    /// Who answers.
    pub worker: Address,
    /// Whose move it is.
    pub turn: Turn,
    /// Until when, seconds of block time.
    pub deadline: u64,
    /// What was put up for the worker's gas, wei of ETH.
    pub deposit: U256,
    /// How much of it the worker's answers have cost, wei of ETH.
    pub owed: U256,
    /// Questions so far: the same one may be asked twice.
    pub asked: u64,
    /// Where it stands.
    pub position: Position,
    /// Hints of the last question.
    pub hints: Bytes,
    /// What the worker has committed itself to.
    pub facts: Facts,
    /// Its last signed statement.
    statement: Option<Signature>,
    /// Its logs, if they were asked for, with its neighbours' signatures.
    pub logs: Option<(BoundaryLogs, SenderSignatures)>,
    /// Tensor root of the output that was asked for last.
    pub output: B256,
    /// Root of the tree that was answered about last.
    root: B256,
    /// Data roots of outputs that were answered about, by their tensor roots.
    outputs: BTreeMap<B256, B256>,
    /// Everything that was answered, by tree.
    answers: BTreeMap<String, Vec<Row>>,
}

/// A signature and the facts it was given under.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Signature {
    facts: Facts,
    bytes: Bytes,
}

impl Game {
    /// A challenge that has just been opened.
    pub fn new(claim_id: ClaimId, claim: Claim, challenger: Address, worker: Address) -> Self {
        Self {
            claim,
            claim_id,
            challenger,
            worker,
            turn: Turn::Answering,
            deadline: 0,
            deposit: U256::ZERO,
            owed: U256::ZERO,
            asked: 0,
            position: Position::default(),
            hints: Bytes::new(),
            facts: Facts::default(),
            statement: None,
            logs: None,
            output: B256::ZERO,
            root: B256::ZERO,
            outputs: BTreeMap::new(),
            answers: BTreeMap::new(),
        }
    }

    /// Takes in the next event.
    pub fn apply(&mut self, told: &Told) {
        match told {
            Told::Asked { deadline, position, hints } => {
                (self.turn, self.deadline, self.position) = (Turn::Answering, *deadline, position.clone());
                (self.asked, self.hints) = (self.asked.saturating_add(1), hints.clone());
                if Subject::of(position) == Some(Subject::Output) && is_root(position) {
                    self.output = position.node;
                }
            }
            Told::Answered { deadline, row } => {
                (self.turn, self.deadline, self.position) = (Turn::Asking, *deadline, row.position.clone());
                let top = top(row);
                if is_root(&top) {
                    self.root = top.node;
                    if self.subject() == Some(Subject::Output) {
                        self.outputs.insert(self.output, top.node);
                    }
                }
                if let Some(id) = self.tree() {
                    self.answers.entry(key(id)).or_default().push(row.clone());
                }
            }
            Told::Established { facts } => self.facts = facts.clone(),
            // What it says has been told just before.
            Told::Stated { signature } => {
                self.statement = Some(Signature { facts: self.facts.clone(), bytes: signature.clone() });
            }
            Told::LogsGiven { logs, signatures } => self.logs = Some((logs.clone(), signatures.clone())),
            Told::Funded { amount } => self.deposit = self.deposit.saturating_add(*amount),
            Told::Charged { owed, spent, .. } => {
                self.owed = *owed;
                if *spent {
                    (self.turn, self.deadline) = (Turn::Spent, 0);
                }
            }
            Told::Won { .. } => self.turn = Turn::Won,
            Told::Lost => self.turn = Turn::Lost,
        }
    }

    /// How much of the deposit is left, wei of ETH.
    pub fn left(&self) -> U256 {
        self.deposit.saturating_sub(self.owed)
    }

    /// What is asked for, or was answered last.
    pub const fn subject(&self) -> Option<Subject> {
        Subject::of(&self.position)
    }

    /// Whether the last row of a tree is out.
    pub const fn at_bottom(&self) -> bool {
        is_bottom(&self.position)
    }

    /// The statement that the worker signed on chain about the step in question.
    pub fn stated(&self) -> Option<Signed> {
        let Signature { facts, bytes } = self.statement.as_ref()?;
        // A later question may be about another step.
        if (facts.step, facts.preState, facts.postState) != (self.facts.step, self.facts.preState, self.facts.postState)
        {
            return None;
        }
        let statement = StepStatement {
            claimId: self.claim_id.0,
            auditor: self.challenger,
            step: facts.step,
            preState: facts.preState,
            postState: facts.postState,
            trace: facts.trace,
        };
        Some(Signed { statement, signature: bytes.clone() })
    }

    /// The tree that was answered about last.
    pub(super) fn tree(&self) -> Option<TreeId> {
        let subject = self.subject()?;
        (!matches!(subject, Subject::Statement | Subject::Logs)).then_some((subject, self.root))
    }

    /// Data root of an output that was answered about, by its tensor root.
    pub(super) fn output_root(&self, output: B256) -> Option<B256> {
        self.outputs.get(&output).copied()
    }

    /// What was answered about a tree, in order.
    pub(super) fn answers(&self, tree: TreeId) -> &[Row] {
        self.answers.get(&key(tree)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// A tree as the key of a map that can be written as JSON.
fn key((subject, root): TreeId) -> String {
    format!("{}:{root:x}", subject.to_number())
}
