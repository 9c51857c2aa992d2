//! Chain and store of a user that posts what its own checks would not let through.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use serde::Deserialize;
use tensorlink_node::ports::{Call, ChainError, Store, StoreError};
use tensorlink_node::wire::{decode, encode};
use tensorlink_proof::commit::ProgramCommitment;
use tensorlink_types::abi::JobTerms;
use tensorlink_types::{B256, Program, Source, U256};

use crate::crooked::Twist;
use crate::pressed::Press;

/// What is wrong with the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// A wei in escrow.
    Deposit,
    /// A wei of stake.
    LittleStake,
    /// More stake than anybody has.
    MuchStake,
    /// The chain registers other programs than are published.
    OtherPrograms,
    /// The first operator of each program reads its own output; the chain registers just these programs.
    Circular,
}

/// A user's dealings.
pub struct Flawed {
    flaw: Flaw,
    /// Roots of what was published in place of programs, by the roots of those.
    roots: Mutex<BTreeMap<B256, B256>>,
}

impl Flawed {
    /// Of a user who does this.
    pub fn new(flaw: Flaw) -> Self {
        Self { flaw, roots: Mutex::default() }
    }

    fn registered(&self, terms: &mut JobTerms) {
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        for program in &mut terms.programs {
            match self.flaw {
                Flaw::OtherPrograms => *program = B256::repeat_byte(0x13),
                _ => *program = roots.get(program).copied().unwrap_or(*program),
            }
        }
    }

    /// What is published in place of a file; none if it is no program.
    fn circular(&self, content: &Bytes) -> Option<Bytes> {
        let mut program: Program = decode("program", content).ok()?;
        // Some other file may look like one.
        if encode("program", &program).ok()?.as_ref() != content.as_ref() {
            return None;
        }
        let before = ProgramCommitment::new(&program).ok()?.root();
        program.operators.first_mut()?.operands.first_mut()?.source = Source::Output(0);
        let after = ProgramCommitment::new(&program).ok()?.root();
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).insert(before, after);
        encode("program", &program).ok()
    }
}

impl Twist for Flawed {
    fn said(&self, mut call: Call) -> Result<Call, ChainError> {
        if let Call::Post { terms, deposit } = &mut call {
            match self.flaw {
                Flaw::Deposit => *deposit = U256::from(1),
                Flaw::LittleStake => terms.workerStake = 1,
                Flaw::MuchStake => terms.workerStake = u128::MAX,
                Flaw::OtherPrograms | Flaw::Circular => self.registered(terms),
            }
        }
        Ok(call)
    }
}

#[async_trait]
impl Press for Flawed {
    async fn put(&self, store: &dyn Store, content: Bytes) -> Result<Cid, StoreError> {
        let circular = if self.flaw == Flaw::Circular { self.circular(&content) } else { None };
        store.put(circular.unwrap_or(content)).await
    }
}
