//! The structs that are shared with Solidity, as `contracts/types` declares them, and what agents know of them besides.
//! Field order is part of the commitment; a vector test on both sides keeps them equal.

mod structs;

use alloy_primitives::{Address, B256, keccak256};
use alloy_sol_types::{Eip712Domain, SolValue};

use crate::ids::{JobId, Lane};
use crate::operator;

pub use self::structs::*;

/// [`WiringProof::sink`]: the state after the step.
pub const SINK_STATE: u8 = 1;
/// [`WiringProof::sink`]: the log of tensors sent to the next stage.
pub const SINK_TO_NEXT: u8 = 2;
/// [`WiringProof::sink`]: the log of tensors sent to the previous stage.
pub const SINK_TO_PREVIOUS: u8 = 3;

/// EIP-712 domain of one of the protocol's contracts: name `Tensorlink`, version `1`.
pub fn domain(chain_id: u64, contract: Address) -> Eip712Domain {
    alloy_sol_types::eip712_domain! {
        name: "Tensorlink",
        version: "1",
        chain_id: chain_id,
        verifying_contract: contract,
    }
}

/// What a job's lanes do, as `JobTerms.kind` numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum JobKind {
    /// Steps that change a state; claims are intervals of them.
    #[default]
    Training = 0,
    /// Texts computed from nothing; claims are receipts.
    Serving = 1,
}

impl JobKind {
    /// The kind of a number on chain.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Training),
            1 => Some(Self::Serving),
            _ => None,
        }
    }
}

/// What a demand asks for a part of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum DemandKind {
    /// The state that a claim ends in.
    State = 1,
    /// A stage's constants or initial state.
    Files = 2,
    /// What a claim says was sent to the previous stage.
    SentToPrevious = 3,
    /// What a claim says was sent to the next stage.
    SentToNext = 4,
}

impl DemandKind {
    /// The kind of a number on chain; none of 0, which no demand has.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::State),
            2 => Some(Self::Files),
            3 => Some(Self::SentToPrevious),
            4 => Some(Self::SentToNext),
            _ => None,
        }
    }
}

impl JobTerms {
    /// What offers for a job of a user with these terms name it by (rule P-40).
    pub fn hash_of(&self, user: Address) -> B256 {
        keccak256((user, self.clone()).abi_encode_params())
    }
}

impl Claim {
    /// The lane this claim belongs to.
    pub const fn lane(&self) -> Lane {
        Lane { job: JobId(self.job), stage: self.stage, replica: self.replica }
    }
}

impl From<&operator::Operator> for Operator {
    fn from(op: &operator::Operator) -> Self {
        let operand = |operand: &operator::Operand| {
            let (source, index) = operand.source.to_pair();
            Operand { source, index, tensorType: operand.ty.to_word() }
        };
        Self {
            opcode: op.opcode as u8,
            output: op.output.to_word(),
            operands: op.operands.iter().map(operand).collect(),
            attributes: op.attributes.clone(),
        }
    }
}
