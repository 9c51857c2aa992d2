//! A transaction under way: its variants, which share a nonce, and the nonces that are taken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy::eips::eip1559::Eip1559Estimation;
use alloy::rpc::types::TransactionRequest;
use tensorlink_node::ports::ChainError;
use tensorlink_types::{B256, Bytes};
use tokio::sync::Mutex as AsyncMutex;

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

/// A transaction that was given up, shared by who raises its fee and who takes it up: none once that is done.
pub(crate) type Shared = Arc<AsyncMutex<Option<Attempt>>>;

/// One that waits, and what it does, which can be read while its fee is raised.
#[derive(Debug)]
struct Waiting {
    action: Action,
    attempt: Shared,
}

/// Transactions that nobody waits for any more and that may still be mined. Nothing after them is mined before they
/// are, and whoever sends the same call again takes up its transaction.
#[derive(Debug, Default)]
pub(crate) struct GivenUp(Mutex<BTreeMap<u64, Waiting>>);

impl GivenUp {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a transaction; of too many the first is forgotten.
    pub(crate) fn put(&self, attempt: Attempt) {
        let mut waiting = self.waiting();
        let (nonce, action) = (attempt.nonce, attempt.action.clone());
        waiting.insert(nonce, Waiting { action, attempt: Arc::new(AsyncMutex::new(Some(attempt))) });
        if waiting.len() > GIVEN_UP {
            waiting.pop_first();
        }
    }

    /// The transaction that does this; waits while its fee is raised.
    pub(crate) async fn take(&self, action: &Action) -> Option<Attempt> {
        loop {
            let shared = self.waiting().values().find(|one| one.action == *action).map(|one| one.attempt.clone())?;
            let taken = shared.lock().await.take();
            // Who finds it gone looks for another that does the same.
            self.waiting().retain(|_, one| !Arc::ptr_eq(&one.attempt, &shared));
            if taken.is_some() {
                return taken;
            }
        }
    }

    /// The first from this nonce on and before another, with its nonce. It stays where it is.
    pub(crate) fn next(&self, from: u64, before: u64) -> Option<(u64, Shared)> {
        let waiting = self.waiting();
        waiting.range(from..before.max(from)).next().map(|(nonce, one)| (*nonce, one.attempt.clone()))
    }

    /// Forgets those whose nonce is used up.
    pub(crate) fn forget_before(&self, used: u64) {
        let mut waiting = self.waiting();
        let rest = waiting.split_off(&used);
        *waiting = rest;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tensorlink_types::Address;

    use super::*;

    fn attempt(nonces: &Nonces, what: u8) -> Attempt {
        let action = Action { to: Address::ZERO, data: vec![what].into(), value: Default::default(), spends: None };
        let fees = Eip1559Estimation { max_fee_per_gas: 1, max_priority_fee_per_gas: 1 };
        let flight = nonces.first(0);
        let nonce = flight.nonce;
        Attempt { action, request: Default::default(), nonce, fees, variants: Vec::new(), _flight: flight }
    }

    /// A call whose transaction was given up, where the next nonces come from.
    fn one_given_up() -> (Nonces, GivenUp, Action) {
        let (nonces, given_up) = (Nonces::default(), GivenUp::default());
        let first = attempt(&nonces, 1);
        let action = first.action.clone();
        given_up.put(first);
        (nonces, given_up, action)
    }

    /// Else it would take another nonce, and do the same twice.
    #[tokio::test]
    async fn a_call_that_is_made_again_while_its_fee_is_raised_waits_for_its_transaction() {
        let (nonces, given_up, action) = one_given_up();
        given_up.put(attempt(&nonces, 2));
        let (nonce, shared) = given_up.next(0, 2).unwrap();
        assert_eq!(nonce, 0);
        let mut raising = shared.lock().await;
        let mut again = Box::pin(given_up.take(&action));
        assert!(tokio::time::timeout(Duration::from_millis(20), &mut again).await.is_err(), "it waits");
        raising.as_mut().unwrap().fees.max_fee_per_gas = 2;
        drop(raising);
        let taken = again.await.unwrap();
        assert_eq!((taken.nonce, taken.fees.max_fee_per_gas), (0, 2));
        assert!(shared.lock().await.is_none() && given_up.take(&action).await.is_none(), "taken once");
        assert_eq!(given_up.next(0, 2).unwrap().0, 1, "the other one is still there");
        assert_eq!(nonces.first(0).nonce, 2, "and their nonces are taken");
    }

    #[tokio::test]
    async fn who_stops_to_raise_a_fee_loses_nothing() {
        let (_nonces, given_up, action) = one_given_up();
        let raising = async {
            let (_, shared) = given_up.next(0, 1).unwrap();
            let _held = shared.lock().await;
            std::future::pending::<()>().await;
        };
        assert!(tokio::time::timeout(Duration::from_millis(20), raising).await.is_err());
        assert!(given_up.take(&action).await.is_some());
    }
}
