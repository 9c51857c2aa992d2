//! One lane as its user sees it: its worker, its account, and the words between them.
//!
//! The worker signs receipts in some order, and the account keeps the same: what ends a text in a lane (its last tokens, or that it is
//! abandoned) is said to the worker one at a time, under [`LaneClient::turn`].

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tensorlink_node::Ports;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::{NetError, Protocol};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::abi::Voucher;
use tensorlink_types::{Address, Lane};
use tokio::sync::Notify;

use super::account::{Account, AccountError};
use super::fault::LaneFault;

/// Attempts to get an answer from a worker that may be restarting, or whose answer was lost.
const PATIENCE: Policy = Policy { attempts: 5, first: Duration::from_millis(250), longest: Duration::from_secs(2) };

/// A lane of a running serving job.
#[derive(Debug)]
pub(super) struct LaneClient {
    pub(super) lane: Lane,
    pub(super) worker: Address,
    /// Held while a text ends here.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// There is something to say to the worker.
    pub(super) wake: Notify,
    book: Mutex<Book>,
}

/// What a lane is owed, and what its worker must be told before it is paid.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) account: Account,
    /// Texts that the worker may hold a receipt of, and that will not be paid.
    pub(super) abandoned: BTreeSet<u32>,
}

impl LaneClient {
    /// Takes the lane's account up from disk. Texts of unknown end are abandoned.
    ///
    /// # Errors
    /// [`JournalError`].
    pub(super) fn open(
        ports: &Ports,
        (lane, worker): (Lane, Address),
        unknown: &BTreeSet<u32>,
    ) -> Result<Self, JournalError> {
        let mut account: Account = ports.journal.read(&name(lane))?.unwrap_or_default();
        let mut abandoned: BTreeSet<u32> = account.withdraw_unfinished().into_iter().collect();
        abandoned.extend(unknown.iter().filter(|text| !account.owes(**text)));
        let book = Mutex::new(Book { account, abandoned });
        Ok(Self { lane, worker, turn: tokio::sync::Mutex::default(), wake: Notify::new(), book })
    }

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the account to disk.
    ///
    /// # Errors
    /// [`JournalError`].
    pub(super) fn save(&self, ports: &Ports) -> Result<(), JournalError> {
        let book = self.book();
        ports.journal.write(&name(self.lane), &book.account)
    }

    /// The text is not to be paid; its worker will be told. Lost at a kill, because numbers of unknown end are abandoned then anyway.
    pub(super) fn abandon(&self, text: u32) {
        let mut book = self.book();
        book.account.withdraw(text);
        book.abandoned.insert(text);
        drop(book);
        self.wake.notify_one();
    }

    /// Asks the worker, with patience for lost answers: every question may be asked again.
    ///
    /// # Errors
    /// [`LaneFault`].
    pub(super) async fn ask(&self, ports: &Ports, question: &Request) -> Result<Response, LaneFault> {
        let body = encode("request", question)?;
        let answer = retry(ports.clock.as_ref(), PATIENCE, || async {
            ports.net.request(self.worker, Protocol::Rpc, body.clone()).await.map_err(|error| match error {
                // One long silence is enough.
                error @ (NetError::Timeout { .. }
                | NetError::Refused(_)
                | NetError::Protocol { .. }
                | NetError::TooLarge { .. }
                | NetError::Closed) => Failure::Permanent(error),
                error => Failure::Transient(error),
            })
        });
        Ok(decode("response", &answer.await?)?)
    }

    /// Tells the worker of every text that will not be paid. Call it under [`Self::turn`].
    ///
    /// # Errors
    /// [`LaneFault`], with those not told left.
    pub(super) async fn tell_abandoned(&self, ports: &Ports) -> Result<(), LaneFault> {
        loop {
            let Some(text) = self.book().abandoned.first().copied() else { return Ok(()) };
            match self.ask(ports, &Request::Abandon { lane: self.lane, text }).await? {
                Response::Done => {}
                // It never heard of the text, or thinks it paid.
                Response::Declined(reason) => tracing::debug!(lane = %self.lane, text, %reason, "not abandoned"),
                _ => return Err(LaneFault::OffTopic),
            }
            self.book().abandoned.remove(&text);
        }
    }

    /// Pays what is due: at most one voucher to fill the epoch, and one for what goes beyond. `again` sends the last voucher even if the
    /// worker has taken it once.
    ///
    /// # Errors
    /// [`LaneFault`]; what is due stays so.
    pub(super) async fn pay(&self, ports: &Ports, mut again: bool) -> Result<(), PayFault> {
        loop {
            let due = {
                let mut book = self.book();
                let due = book.account.due(self.lane);
                match due {
                    Some(voucher) => Some(voucher),
                    None if again => book.account.latest().cloned(),
                    None => None,
                }
            };
            let Some(voucher) = due else { return Ok(()) };
            again = false;
            // What was signed for is never forgotten.
            self.save(ports)?;
            self.send(ports, &voucher).await?;
            self.book().account.taken(&voucher);
            self.save(ports)?;
        }
    }

    async fn send(&self, ports: &Ports, voucher: &Voucher) -> Result<(), LaneFault> {
        let signature = ports.identity.sign(ports.contracts.voucher(voucher));
        let signature = signature.map_err(|error| LaneFault::Declined(error.to_string()))?.to_vec();
        match self.ask(ports, &Request::Pay { voucher: voucher.clone(), signature }).await? {
            Response::Done => Ok(()),
            Response::Declined(reason) => Err(LaneFault::Declined(reason)),
            _ => Err(LaneFault::OffTopic),
        }
    }

    /// Takes note of what the lane has redeemed.
    ///
    /// # Errors
    /// [`AccountError::Stale`].
    pub(super) fn redeemed(&self, epoch: u32, tokens: u32) -> Result<(), AccountError> {
        self.book().account.redeemed(epoch, tokens)
    }
}

/// Why a lane was not paid.
#[derive(Debug, thiserror::Error)]
pub(super) enum PayFault {
    #[error(transparent)]
    Lane(#[from] LaneFault),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

fn name(lane: Lane) -> String {
    format!("serving-{}-{}-{}", lane.job, lane.stage, lane.replica)
}
