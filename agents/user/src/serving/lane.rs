//! One lane as its user sees it: its worker, its account, and the words between them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tensorlink_node::Ports;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::RedeemedView;
use tensorlink_node::ports::{NetError, Protocol};
use tensorlink_node::retry::{Failure, Policy, retry};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::abi::Voucher;
use tensorlink_types::{Address, Lane};
use tokio::sync::Notify;

use super::account::{Account, AccountError, EPOCH, WAITING};
use super::fault::LaneFault;

/// Attempts to get an answer from a worker that may be restarting, or whose answer was lost.
const PATIENCE: Policy = Policy { attempts: 6, first: Duration::from_millis(250), longest: Duration::from_secs(2) };

/// Time for an answer of a worker of whom nothing else is known.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Abandoned texts that a worker is still told of.
const FORGETTABLE: usize = 64;

/// A lane of a running serving job.
#[derive(Debug)]
pub(super) struct LaneClient {
    pub(super) lane: Lane,
    pub(super) worker: Address,
    /// There is something to say to the worker.
    pub(super) wake: Notify,
    account: Mutex<Account>,
    /// Held while the lane is paid, so that vouchers arrive in their order.
    paying: tokio::sync::Mutex<()>,
    /// Texts that the worker may forget, the newest; it forgets them anyway some time.
    abandoned: Mutex<BTreeSet<u32>>,
}

impl LaneClient {
    /// Takes the lane's account up from disk. Texts have at most `longest` tokens.
    ///
    /// # Errors
    /// [`JournalError`].
    pub(super) fn open(ports: &Ports, lane: Lane, worker: Address, longest: u32) -> Result<Self, JournalError> {
        let mut account = ports.journal.read(&name(lane))?.unwrap_or_else(|| Account::new(longest));
        account.withdraw_all();
        let (account, paying, abandoned) = (Mutex::new(account), tokio::sync::Mutex::default(), Mutex::default());
        Ok(Self { lane, worker, wake: Notify::new(), account, paying, abandoned })
    }

    pub(super) fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the account to disk.
    ///
    /// # Errors
    /// [`JournalError`].
    pub(super) fn save(&self, ports: &Ports) -> Result<(), JournalError> {
        // Under its lock, so that no older state overwrites a newer.
        let account = self.account();
        ports.journal.write(&name(self.lane), &*account)
    }

    /// The text is not to be paid, and its worker may forget it.
    pub(super) fn abandon(&self, text: u32) {
        self.account().withdraw(text);
        let mut abandoned = self.abandoned.lock().unwrap_or_else(PoisonError::into_inner);
        abandoned.insert(text);
        if abandoned.len() > FORGETTABLE {
            abandoned.pop_first();
        }
        drop(abandoned);
        self.wake.notify_one();
    }

    /// Asks the worker, with patience for lost answers: every question may be asked again.
    ///
    /// # Errors
    /// [`LaneFault`].
    pub(super) async fn ask(&self, ports: &Ports, question: &Request) -> Result<Response, LaneFault> {
        self.ask_timed(ports, question).await.map(|(answer, _)| answer)
    }

    /// As [`Self::ask`], and how long the worker took for the answer that came.
    ///
    /// # Errors
    /// [`LaneFault`].
    pub(super) async fn ask_timed(&self, ports: &Ports, question: &Request) -> Result<(Response, Duration), LaneFault> {
        let body = encode("request", question)?;
        let answer = retry(ports.clock.as_ref(), PATIENCE, || async {
            let asked = Instant::now();
            let answer = ports.net.request(self.worker, Protocol::Rpc, body.clone()).await;
            answer.map(|answer| (answer, asked.elapsed())).map_err(|error| match error {
                // One long silence is enough.
                error @ (NetError::Timeout { .. }
                | NetError::Refused(_)
                | NetError::Protocol { .. }
                | NetError::TooLarge { .. }
                | NetError::Closed) => Failure::Permanent(error),
                error => Failure::Transient(error),
            })
        });
        let (answer, took) = answer.await?;
        Ok((decode("response", &answer)?, took))
    }

    /// Whether the worker answers at all, and at once.
    pub(super) async fn answers(&self, ports: &Ports) -> bool {
        let question = Request::Receipts { lane: self.lane, epoch: self.account().epoch() };
        let Ok(body) = encode("request", &question) else { return false };
        let answer = tokio::time::timeout(AT_ONCE, ports.net.request(self.worker, Protocol::Rpc, body));
        answer.await.is_ok_and(|answer| answer.is_ok())
    }

    /// Tells the worker which texts it may forget. A courtesy: one that does not hear it is not told again.
    pub(super) async fn tell_abandoned(&self, ports: &Ports) {
        let texts = std::mem::take(&mut *self.abandoned.lock().unwrap_or_else(PoisonError::into_inner));
        for text in texts {
            if let Err(fault) = self.ask(ports, &Request::Abandon { lane: self.lane, text }).await {
                tracing::debug!(lane = %self.lane, text, %fault, "the worker was not told that a text is abandoned");
                return;
            }
        }
    }

    /// Pays what is due: a voucher that fills the epoch, then one for what goes beyond. A worker that `asks` to be paid
    /// is asked for its list first, gets a voucher also for texts that came to nothing, and the last one again if
    /// there is no other: it may have lost that.
    ///
    /// # Errors
    /// [`PayFault`]; what is due stays so.
    pub(super) async fn pay(&self, ports: &Ports, asks: bool) -> Result<(), PayFault> {
        let _order = self.paying.lock().await;
        if asks {
            self.sync(ports).await?;
        }
        let mut again = asks;
        loop {
            if self.account().waits() {
                self.look(ports).await?;
            }
            let due = self.account().due(self.lane, asks);
            let repeated = due.is_none() && std::mem::take(&mut again);
            let latest = || if repeated { self.account().latest().cloned() } else { None };
            let Some(voucher) = due.or_else(latest) else {
                let account = self.account();
                return if account.waits() { Err(PayFault::Unredeemed(account.epoch())) } else { Ok(()) };
            };
            again = false;
            // What was signed for is never forgotten.
            self.save(ports)?;
            let voucher = match self.send(ports, &voucher).await {
                Ok(()) => voucher,
                // It has the next.
                Err(LaneFault::Declined(_)) if repeated => return Ok(()),
                // Or it has redeemed one of before, which has ended the epoch.
                Err(LaneFault::Declined(_)) if self.look(ports).await? => continue,
                Err(LaneFault::Declined(reason)) => {
                    tracing::debug!(lane = %self.lane, %reason, "the voucher is declined; the worker's list is asked for");
                    self.sync(ports).await?;
                    let due = self.account().due(self.lane, asks);
                    let voucher = due.filter(|due| *due != voucher).ok_or(LaneFault::Declined(reason))?;
                    self.save(ports)?;
                    self.send(ports, &voucher).await?;
                    voucher
                }
                Err(fault) => return Err(fault.into()),
            };
            self.account().taken(&voucher);
            self.save(ports)?;
        }
    }

    /// Takes over the order of the worker's receipts of the present epoch, if it has a list of it.
    async fn sync(&self, ports: &Ports) -> Result<(), LaneFault> {
        let epoch = self.account().epoch();
        let question = Request::Receipts { lane: self.lane, epoch };
        let claims = match self.ask(ports, &question).await? {
            Response::Receipts(claims) => claims,
            Response::Declined(reason) => {
                tracing::debug!(lane = %self.lane, epoch, %reason, "the worker has no list of the epoch's receipts");
                return Ok(());
            }
            _ => return Err(LaneFault::OffTopic),
        };
        // Enough for an epoch and all that waits for the next.
        let listed = claims.iter().take(EPOCH + WAITING).filter(|claim| claim.lane() == self.lane);
        let listed: Vec<_> = listed.map(|claim| (claim.interval, ports.contracts.claim_id(claim))).collect();
        let mut account = self.account();
        if account.epoch() == epoch {
            account.sync(&listed);
        }
        Ok(())
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

    /// Takes note of what the lane has redeemed, says the chain; whether that ends the epoch. A chain that cannot be
    /// asked tells nothing.
    ///
    /// # Errors
    /// [`AccountError::Stale`].
    pub(super) async fn look(&self, ports: &Ports) -> Result<bool, AccountError> {
        match ports.chain.redeemed(self.lane).await {
            Ok(redeemed) => self.redeemed(redeemed),
            Err(error) => {
                tracing::debug!(lane = %self.lane, %error, "what the lane has redeemed is not known now");
                Ok(false)
            }
        }
    }

    /// Takes note of what the lane has redeemed; whether that ends the epoch.
    ///
    /// # Errors
    /// [`AccountError::Stale`].
    pub(super) fn redeemed(&self, last: RedeemedView) -> Result<bool, AccountError> {
        let mut account = self.account();
        let before = account.epoch();
        account.redeemed(last)?;
        Ok(account.epoch() > before)
    }
}

/// Why a lane was not paid.
#[derive(Debug, thiserror::Error)]
pub(super) enum PayFault {
    #[error(transparent)]
    Lane(#[from] LaneFault),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Account(#[from] AccountError),
    /// Nothing is signed for in an epoch while so many before it are not on chain.
    #[error("the worker has not redeemed what was signed for before epoch {0}")]
    Unredeemed(u32),
}

fn name(lane: Lane) -> String {
    format!("account-{}-{}-{}", lane.job, lane.stage, lane.replica)
}
