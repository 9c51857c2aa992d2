//! The calls of the contract, `IChallenges`.

use alloy_primitives::{B256, Bytes, U256};
use tensorlink_types::abi::{
    BoundaryLogs, Claim, Facts, LogsAnswer, Operator, Pick, Position, Question, StepAnswer, Way,
};

use super::Subject;

/// A call of `Challenges` by one of the players, or by anyone.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "names are those of the contract's parameters")]
pub enum Move {
    /// `open`: the first question about a claim on record.
    Open { claim: Claim, committed_at: u64, question: Question },
    /// `answerSteps`.
    AnswerSteps { position: Position, claim: Claim, steps: B256, siblings: Vec<B256>, way: Way, data: Bytes },
    /// `answerStatement`.
    AnswerStatement { position: Position, facts: Facts, said: StepAnswer, way: Way, data: Bytes },
    /// `answerOutput`.
    AnswerOutput { position: Position, facts: Facts, data_root: B256, way: Way, data: Bytes },
    /// `answerLogs`.
    AnswerLogs { position: Position, facts: Facts, claim: Claim, said: Box<LogsAnswer> },
    /// `answer`.
    Answer { position: Position, way: Way, data: Bytes },
    /// `ask`.
    Ask { position: Position, pick: Pick, question: Question },
    /// `askTree`.
    AskTree { position: Position, facts: Facts, subject: Subject, question: Question },
    /// `askStatement`.
    AskStatement {
        position: Position,
        facts: Facts,
        claim: Claim,
        pick: Pick,
        pre_state: B256,
        pre_siblings: Vec<B256>,
        question: Question,
    },
    /// `askOutput`.
    AskOutput {
        position: Position,
        facts: Facts,
        pick: Pick,
        operator: Operator,
        membership: Vec<B256>,
        question: Question,
    },
    /// `askLogs`.
    AskLogs { position: Position },
    /// `askLog`; `boundary` counts the fields of `BoundaryLogs`.
    AskLog { position: Position, facts: Facts, claim: Claim, logs: BoundaryLogs, boundary: u8, question: Question },
    /// `fund`, with so many wei of ETH.
    Fund { amount: U256 },
    /// `timeout`.
    Timeout,
}

impl Move {
    /// How much it asks for, if it asks for nodes.
    pub const fn question(&self) -> Option<&Question> {
        match self {
            Self::Open { question, .. }
            | Self::Ask { question, .. }
            | Self::AskTree { question, .. }
            | Self::AskStatement { question, .. }
            | Self::AskOutput { question, .. }
            | Self::AskLog { question, .. } => Some(question),
            Self::AnswerSteps { .. }
            | Self::AnswerStatement { .. }
            | Self::AnswerOutput { .. }
            | Self::AnswerLogs { .. }
            | Self::Answer { .. }
            | Self::AskLogs { .. }
            | Self::Fund { .. }
            | Self::Timeout => None,
        }
    }
}
