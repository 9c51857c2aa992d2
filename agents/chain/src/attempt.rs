//! A transaction under way: its variants, which share a nonce, and the nonces that are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy::eips::eip1559::Eip1559Estimation;
use alloy::rpc::types::TransactionRequest;
use tensorlink_node::ports::ChainError;
use tensorlink_types::{B256, Bytes};

use crate::calls::Action;

/// Transactions that were given up and are not mined, which are remembered.
const GIVEN_UP: usize = 64;

/// One transaction in its variants, which share a nonce: one of them at most is ever mined.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// What it does.
    pub(crate) action: Action,
    pub(crate) request: TransactionRequest,
    pub(crate) nonce: u64,
    /// Of the last variant.
    pub(crate) fees: Eip1559Estimation,
    pub(crate) variants: Vec<(B256, Bytes)>,
    pub(crate) _flight: Flight,
}

impl Attempt {
    /// Hash of the last variant.
    pub(crate) fn hash(&self) -> B256 {
        self.variants.last().map_or(B256::ZERO, |(hash, _)| *hash)
    }

    /// An error with the transaction that it leaves behind.
    pub(crate) fn interrupted(&self, error: ChainError) -> ChainError {
        match (error, self.variants.last()) {
            (ChainError::Closed, Some((hash, _))) => ChainError::Interrupted(*hash),
            (error, _) => error,
        }
    }
}

/// Nonces of transactions that were made and are neither mined nor forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nonces(Arc<Mutex<BTreeSet<u64>>>);

impl Nonces {
    fn taken(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first nonce from `pending` on that none of ours has: the node may not have seen all of them yet.
    pub(crate) fn first(&self, pending: u64) -> Flight {
        let mut taken = self.taken();
        let mut nonce = pending;
        while taken.contains(&nonce) {
            nonce += 1;
        }
        taken.insert(nonce);
        Flight { nonces: self.clone(), nonce }
    }

    /// This nonce, unless one of ours has it.
    pub(crate) fn exactly(&self, nonce: u64) -> Option<Flight> {
        self.taken().insert(nonce).then(|| Flight { nonces: self.clone(), nonce })
    }
}

/// A nonce in use, until dropped.
#[derive(Debug)]
pub(crate) struct Flight {
    nonces: Nonces,
    pub(crate) nonce: u64,
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.nonces.taken().remove(&self.nonce);
    }
}

/// Transactions that nobody waits for any more and that may still be mined. Nothing after them is mined before they
/// are, and whoever sends the same call again takes up its transaction.
#[derive(Debug, Default)]
pub(crate) struct GivenUp(Mutex<BTreeMap<u64, Attempt>>);

impl GivenUp {
    fn attempts(&self) -> MutexGuard<'_, BTreeMap<u64, Attempt>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a transaction; of too many the first is forgotten.
    pub(crate) fn put(&self, attempt: Attempt) {
        let mut attempts = self.attempts();
        attempts.insert(attempt.nonce, attempt);
        if attempts.len() > GIVEN_UP {
            attempts.pop_first();
        }
    }

    /// The transaction that does this.
    pub(crate) fn take(&self, action: &Action) -> Option<Attempt> {
        let mut attempts = self.attempts();
        let nonce = attempts.iter().find(|(_, attempt)| attempt.action == *action).map(|(nonce, _)| *nonce)?;
        attempts.remove(&nonce)
    }

    /// The first from this nonce on and before another.
    pub(crate) fn next(&self, from: u64, before: u64) -> Option<Attempt> {
        let mut attempts = self.attempts();
        let nonce = attempts.range(from..before.max(from)).next().map(|(nonce, _)| *nonce)?;
        attempts.remove(&nonce)
    }

    /// Forgets those whose nonce is used up.
    pub(crate) fn forget_before(&self, used: u64) {
        let mut attempts = self.attempts();
        let rest = attempts.split_off(&used);
        *attempts = rest;
    }
}
