//! The statements that a node knows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tensorlink_types::{Address, U256};

use super::payments::{Payment, Payments};
use super::statement::{SignedSpeed, Unfounded};
use crate::ports::chain::Deployment;

/// Workers of whom statements are kept, and statements of each in each token that jobs are paid in: those for which
/// most was paid.
const WORKERS: usize = 4_096;
const OF_WORKER: usize = 8;
/// Seconds for which a statement says something.
const TELLS: u64 = 14 * 86_400;
/// Seconds by which others' clocks may be ahead.
const AHEAD: u64 = 600;
/// Least seconds between two statements about one job: each costs a look at a signature.
const BETWEEN: u64 = 60;

/// A statement, and what was paid for what it says.
#[derive(Clone, PartialEq, Debug)]
pub struct Told {
    /// The statement.
    pub signed: SignedSpeed,
    /// What the worker was paid in that job by now.
    pub payment: Payment,
    /// When that was, seconds since 1970: whoever pays no more cannot say the same again as if it were new.
    pub at: u64,
}

/// Statements about workers, each by a user that paid the worker.
#[derive(Debug)]
pub struct Observed {
    deployment: Deployment,
    payments: Arc<Payments>,
    known: Mutex<HashMap<Address, Vec<SignedSpeed>>>,
}

impl Observed {
    /// None yet, of jobs of this deployment.
    pub fn new(deployment: Deployment, payments: Arc<Payments>) -> Self {
        Self { deployment, payments, known: Mutex::default() }
    }

    /// Takes a statement in, in place of an older one about the same job, or of one for which less was paid.
    ///
    /// # Errors
    /// [`Unfounded`] for one that is not kept.
    pub fn take(&self, signed: SignedSpeed, now: u64) -> Result<(), Unfounded> {
        if !signed.is_possible() {
            return Err(Unfounded::Impossible);
        }
        if !is_timely(signed.at(), now) {
            return Err(Unfounded::Untimely);
        }
        // What was known before anybody's signature was looked at costs little.
        let payment = self.payments.of(signed.job(), signed.worker()).ok_or(Unfounded::Unpaid)?;
        if !is_timely(payment.at, now) {
            return Err(Unfounded::Untimely);
        }
        let is_known =
            |known: &SignedSpeed| known.job() == signed.job() && known.at().saturating_add(BETWEEN) > signed.at();
        if self.known().get(&signed.worker()).is_some_and(|known| known.iter().any(is_known)) {
            return Err(Unfounded::NoRoom);
        }
        signed.check(payment.user, &self.deployment)?;
        self.put(signed, &payment, now)
    }

    /// Takes in those of many that can be; how many there were, and those that are not known to be paid for.
    pub fn take_all(&self, statements: Vec<SignedSpeed>, now: u64) -> (usize, Vec<SignedSpeed>) {
        let mut unpaid = Vec::new();
        let mut taken: usize = 0;
        for signed in statements {
            match self.take(signed.clone(), now) {
                Ok(()) => taken = taken.saturating_add(1),
                Err(Unfounded::Unpaid) => unpaid.push(signed),
                Err(error) => tracing::debug!(worker = %signed.worker(), job = %signed.job(), "a speed: {error}"),
            }
        }
        (taken, unpaid)
    }

    fn put(&self, signed: SignedSpeed, payment: &Payment, now: u64) -> Result<(), Unfounded> {
        let mut known = self.known();
        if known.len() >= WORKERS && !known.contains_key(&signed.worker()) {
            known.values_mut().for_each(|of_worker| of_worker.retain(|known| is_timely(known.at(), now)));
            known.retain(|_, of_worker| !of_worker.is_empty());
            if known.len() >= WORKERS {
                return Err(Unfounded::NoRoom);
            }
        }
        let of_worker = known.entry(signed.worker()).or_default();
        of_worker.retain(|known| known.job() != signed.job() && is_timely(known.at(), now));
        let paid = |known: &SignedSpeed| self.payments.of(known.job(), known.worker());
        // Whatever is not paid for any more has to go first.
        let amount = |known: &SignedSpeed| match paid(known) {
            Some(other) if other.token != payment.token => None,
            other => Some(other.map_or(U256::ZERO, |other| other.amount)),
        };
        let in_token = of_worker.iter().enumerate().filter_map(|(at, known)| Some((amount(known)?, at)));
        let in_token: Vec<(U256, usize)> = in_token.collect();
        if in_token.len() >= OF_WORKER {
            let least = in_token.into_iter().min().filter(|(amount, _)| *amount <= payment.amount);
            let (_, least) = least.ok_or(Unfounded::NoRoom)?;
            of_worker.remove(least);
        }
        of_worker.push(signed);
        Ok(())
    }

    /// What is known of a worker, as far as it was paid for it and the time is not over.
    pub fn of(&self, worker: Address, now: u64) -> Vec<Told> {
        let known = self.known().get(&worker).cloned().unwrap_or_default();
        let told = |signed: SignedSpeed| {
            let payment = self.payments.of(signed.job(), worker)?;
            let at = signed.at().min(payment.at);
            is_timely(at, now).then_some(Told { signed, payment, at })
        };
        known.into_iter().filter_map(told).collect()
    }

    /// All statements, for the disk.
    pub fn all(&self) -> Vec<SignedSpeed> {
        self.known().values().flatten().cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Address, Vec<SignedSpeed>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_timely(at: u64, now: u64) -> bool {
    at <= now.saturating_add(AHEAD) && now.saturating_sub(at) <= TELLS
}
