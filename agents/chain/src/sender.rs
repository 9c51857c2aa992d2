//! Transactions of one account: nonces that never collide, fees that rise until they are mined, and what became
//! of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use alloy::eips::BlockId;
use alloy::eips::eip2718::Encodable2718;
use alloy::network::{EthereumWallet, NetworkTransactionBuilder, TransactionBuilder};
use alloy::providers::Provider;
use alloy::rpc::json_rpc::RpcError;
use alloy::rpc::types::{TransactionReceipt, TransactionRequest};
use alloy::signers::local::PrivateKeySigner;
use tensorlink_node::ports::chain::Deployment;
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_types::{Address, Bytes, U256};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::allowance;
use crate::attempt::{Attempt, GivenUp, Nonces};
use crate::calls::Action;
use crate::failure::Failure;
use crate::limits::Spending;
use crate::revert::Revert;
use crate::rpc::Rpc;
use crate::views::Views;

/// Transactions made for one call, where others took their nonces.
const TRIES: u32 = 3;
/// Looks at an account whose nonce is used up, while no receipt says by which transaction.
/// Several nodes may stand behind one endpoint, and some lag.
const LOOKS: u32 = 40;

/// How patient the sending of transactions is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Between looks for a receipt.
    pub poll: Duration,
    /// How long a transaction waits before its fee is raised.
    pub bump_after: Duration,
    /// How often it is raised before [`ChainError::Pending`].
    pub bumps: u32,
    /// Between looks at all endpoints, where there are several, and before the first new try of one that was left.
    pub recheck: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            poll: Duration::from_millis(150),
            bump_after: Duration::from_secs(20),
            bumps: 8,
            recheck: Duration::from_secs(20),
        }
    }
}

/// When a call is made, by the chain's clock (seconds), and whether it can wait for a day with room in the budget.
#[derive(Clone, Copy, Debug)]
struct When {
    now: u64,
    can_wait: bool,
}

/// What became of a transaction.
enum Fate {
    Mined(Box<TransactionReceipt>),
    /// Another transaction took its nonce, or the node refused it: it will never be mined.
    Lost(String),
}

/// The only sender of an account's transactions in this process.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) rpc: Arc<Rpc>,
    pub(crate) deployment: Deployment,
    signer: PrivateKeySigner,
    pub(crate) wallet: EthereumWallet,
    pace: Pace,
    pub(crate) spending: Spending,
    /// Held from the choice of a nonce to the broadcast, and, where an allowance is used up, to the receipt.
    turn: Mutex<()>,
    pub(crate) nonces: Nonces,
    pub(crate) given_up: GivenUp,
}

impl Sender {
    pub(crate) fn new(
        rpc: Arc<Rpc>,
        deployment: Deployment,
        signer: PrivateKeySigner,
        pace: Pace,
        spending: Spending,
    ) -> Self {
        let wallet = EthereumWallet::from(signer.clone());
        let (turn, nonces, given_up) = (Mutex::default(), Nonces::default(), GivenUp::default());
        Self { rpc, deployment, signer, wallet, pace, spending, turn, nonces, given_up }
    }

    pub(crate) const fn account(&self) -> Address {
        self.signer.address()
    }

    pub(crate) const fn signer(&self) -> &PrivateKeySigner {
        &self.signer
    }

    /// Sends a call, and what has to come before it; returns the receipt of its success. `now`: time of the
    /// newest block.
    pub(crate) async fn send(&self, call: &Call, now: u64) -> Result<TransactionReceipt, ChainError> {
        let turn = self.turn.lock().await;
        let views = Views { rpc: &self.rpc, deployment: &self.deployment };
        // What averts a loss is not held back, whatever was paid today.
        let when = When { now, can_wait: !call.averts_loss() };
        self.admit(when, U256::ZERO)?;
        let (approval, main) = allowance::steps(views, &self.signer, call, now, self.spending.max_fee()).await?;
        if main.spends.is_none() {
            return self.settle(&main, when, Some(turn)).await;
        }
        // Allowances and permits are one for each contract: the next such call waits for the receipt of this.
        if let Some(approval) = approval {
            self.settle(&approval, when, None).await?;
        }
        let receipt = self.settle(&main, when, None).await;
        drop(turn);
        receipt
    }

    fn admit(&self, When { now, can_wait }: When, cost: U256) -> Result<(), ChainError> {
        if can_wait { self.spending.admit(cost, now) } else { Ok(()) }
    }

    /// Sends one transaction until it is mined. Lets go of the turn once it is broadcast.
    async fn settle(
        &self,
        action: &Action,
        when: When,
        mut turn: Option<MutexGuard<'_, ()>>,
    ) -> Result<TransactionReceipt, ChainError> {
        let mut reason = String::new();
        for _ in 0..TRIES {
            // One that was given up and may still be mined is taken up: another would do the same once more.
            let (mut attempt, sent) = match self.given_up.take(action).await {
                Some(mut attempt) => {
                    let sent = self.raise(&mut attempt).await.map(|()| None);
                    (attempt, sent)
                }
                None => {
                    let mut attempt = self.prepare(action, when).await?;
                    let sent = self.broadcast_first(&mut attempt).await;
                    (attempt, sent)
                }
            };
            let fate = match sent {
                Ok(None) => {
                    drop(turn.take());
                    self.watch(&mut attempt, when.now).await
                }
                Ok(Some(lost)) => Ok(lost),
                Err(error) => Err(error),
            };
            match fate {
                Ok(Fate::Mined(receipt)) => {
                    let price = U256::from(receipt.effective_gas_price);
                    self.spending.paid(U256::from(receipt.gas_used).saturating_mul(price), when.now);
                    if receipt.status() {
                        return Ok(*receipt);
                    }
                    return Err(self.why_reverted(&attempt, &receipt).await.into());
                }
                Ok(Fate::Lost(why)) => {
                    warn!(nonce = attempt.nonce, why, "the transaction is lost; making another");
                    reason = why;
                }
                Err(error) => {
                    let error = attempt.interrupted(error);
                    if let ChainError::Pending(_) = error {
                        self.given_up.put(attempt);
                    }
                    return Err(error);
                }
            }
            if turn.is_none() {
                self.rpc.pause(self.pace.poll).await?;
            }
        }
        Err(ChainError::Unavailable(reason))
    }

    /// Gas, fees and nonce; finds out here what cannot succeed.
    async fn prepare(&self, action: &Action, when: When) -> Result<Attempt, ChainError> {
        let account = self.account();
        let request = TransactionRequest::default()
            .with_from(account)
            .with_to(action.to)
            .with_value(action.value)
            .with_input(action.data.clone());
        let balance = self.rpc.ask("balance", |p| async move { p.get_balance(account).await }).await?;
        let poor = |needed| ChainError::InsufficientFunds { account, asset: "ETH", balance, needed };
        if balance < action.value {
            return Err(poor(action.value));
        }
        let estimate = self.rpc.ask("gas estimate", |p| {
            let request = request.clone();
            async move { p.estimate_gas(request).await }
        });
        let gas = estimate.await?;
        // What happens before ours in its block may cost gas: a slot that is not zero any more, a longer list.
        let gas = gas.saturating_add(gas / 4).saturating_add(20_000);
        let mut fees = self.rpc.ask("fees", |p| async move { p.estimate_eip1559_fees().await }).await?;
        fees.max_fee_per_gas = fees.max_fee_per_gas.min(self.spending.max_fee());
        fees.max_priority_fee_per_gas = fees.max_priority_fee_per_gas.min(fees.max_fee_per_gas);
        let cost = U256::from(gas).saturating_mul(U256::from(fees.max_fee_per_gas));
        self.admit(when, cost)?;
        let needed = action.value.saturating_add(cost);
        if balance < needed {
            return Err(poor(needed));
        }
        let flight = self.nonces.first(self.pending_nonce().await?);
        let nonce = flight.nonce;
        let mut request = request.with_nonce(nonce).with_gas_limit(gas);
        request.set_chain_id(self.deployment.chain_id);
        Ok(Attempt { action: action.clone(), request, nonce, fees, variants: Vec::new(), _flight: flight })
    }

    /// The first nonce that no transaction has that the node knows.
    pub(crate) async fn pending_nonce(&self) -> Result<u64, Failure> {
        let account = self.account();
        self.rpc.ask("nonce", |p| async move { p.get_transaction_count(account).pending().await }).await
    }

    /// Signs a variant with the attempt's present fees, and hands it to the node.
    pub(crate) async fn broadcast(&self, attempt: &mut Attempt) -> Result<(), Failure> {
        let request = attempt
            .request
            .clone()
            .with_max_fee_per_gas(attempt.fees.max_fee_per_gas)
            .with_max_priority_fee_per_gas(attempt.fees.max_priority_fee_per_gas);
        let signed = request.build(&self.wallet).await.map_err(|error| Failure::Unavailable(error.to_string()))?;
        let (hash, raw) = (*signed.tx_hash(), Bytes::from(signed.encoded_2718()));
        if attempt.variants.last().is_none_or(|(last, _)| *last != hash) {
            attempt.variants.push((hash, raw.clone()));
        }
        debug!(%hash, nonce = attempt.nonce, max_fee = attempt.fees.max_fee_per_gas, "sending a transaction");
        self.send_raw(raw).await
    }

    /// The first broadcast; tells if it is lost for good.
    async fn broadcast_first(&self, attempt: &mut Attempt) -> Result<Option<Fate>, ChainError> {
        let payload = match self.broadcast(attempt).await {
            // Without an answer it may be on its way all the same.
            Ok(()) | Err(Failure::Unavailable(_) | Failure::Foreign { .. }) => return Ok(None),
            Err(Failure::Closed) => return Err(ChainError::Closed),
            Err(Failure::Refused(payload)) => payload,
        };
        // A request repeated after a lost answer is refused, too: what counts is whether the node has it.
        let Some((hash, _)) = attempt.variants.last().cloned() else { return Ok(None) };
        match self.rpc.ask("transaction", |p| async move { p.get_transaction_by_hash(hash).await }).await {
            Ok(None) => {
                let capped = attempt.fees.max_fee_per_gas >= self.spending.max_fee();
                let cap = if capped { "; it offers as much as --max-fee allows" } else { "" };
                Ok(Some(Fate::Lost(format!("it refuses the transaction: {payload}{cap}"))))
            }
            Ok(Some(_)) | Err(Failure::Refused(_) | Failure::Unavailable(_) | Failure::Foreign { .. }) => Ok(None),
            Err(Failure::Closed) => Err(ChainError::Closed),
        }
    }

    /// Waits for the receipt of any variant, and raises the fee meanwhile. `now`: by the chain's clock.
    async fn watch(&self, attempt: &mut Attempt, now: u64) -> Result<Fate, ChainError> {
        let (mut since, mut bumps, mut looks) = (Instant::now(), 0, 0);
        loop {
            match self.look(attempt, &mut looks).await {
                Ok(Some(fate)) => return Ok(fate),
                Err(Failure::Closed) => return Err(ChainError::Closed),
                // An endpoint that is down for a while changes nothing: the transaction may be mined meanwhile.
                Ok(None) | Err(_) => {}
            }
            if since.elapsed() >= self.pace.bump_after {
                if bumps == self.pace.bumps {
                    return Err(ChainError::Pending(attempt.hash()));
                }
                bumps += 1;
                since = Instant::now();
                self.raise(attempt).await?;
                self.clear_way(attempt, bumps, now).await?;
            }
            self.rpc.pause(self.pace.poll).await?;
        }
    }

    async fn look(&self, attempt: &Attempt, looks: &mut u32) -> Result<Option<Fate>, Failure> {
        let account = self.account();
        // The nonce first: a receipt that is missing afterwards is not one that came in between.
        let used = self.rpc.ask("nonce", |p| async move { p.get_transaction_count(account).latest().await }).await?;
        for (hash, _) in attempt.variants.iter().rev() {
            let hash = *hash;
            let receipt = self.rpc.ask("receipt", |p| async move { p.get_transaction_receipt(hash).await }).await?;
            if let Some(receipt) = receipt.filter(|receipt| receipt.block_hash.is_some()) {
                return Ok(Some(Fate::Mined(Box::new(receipt))));
            }
        }
        *looks = if used > attempt.nonce { *looks + 1 } else { 0 };
        if *looks < LOOKS {
            return Ok(None);
        }
        // Another endpoint may know better; only what none of them knows is made again.
        for (hash, _) in attempt.variants.iter().rev() {
            let hash = *hash;
            let found = self.rpc.everywhere("receipt", |p| async move { p.get_transaction_receipt(hash).await }).await;
            let mined = found.into_iter().flatten().find(|receipt| receipt.block_hash.is_some());
            if let Some(receipt) = mined {
                return Ok(Some(Fate::Mined(Box::new(receipt))));
            }
        }
        Ok(Some(Fate::Lost("another transaction of this account took its nonce".into())))
    }

    /// Hands a transaction to an endpoint. One that did not answer may have it all the same: what another one, or it
    /// when it is asked again, refuses then is not known to be lost.
    pub(crate) async fn send_raw(&self, raw: Bytes) -> Result<(), Failure> {
        let unanswered = AtomicU32::new(0);
        let sent = self.rpc.ask("transaction", |provider| {
            let (raw, unanswered) = (raw.clone(), &unanswered);
            async move {
                unanswered.fetch_add(1, Ordering::Relaxed);
                let sent = provider.send_raw_transaction(&raw).await;
                if matches!(sent, Ok(_) | Err(RpcError::ErrorResp(_))) {
                    unanswered.fetch_sub(1, Ordering::Relaxed);
                }
                sent.map(|_| ())
            }
        });
        match sent.await {
            Err(Failure::Refused(payload)) if unanswered.load(Ordering::Relaxed) > 0 => {
                Err(Failure::Unavailable(format!("no answer at first, then: {payload}")))
            }
            sent => sent,
        }
    }

    /// The revert of a mined transaction, by executing it once more: on the state before its block, and if that lets it
    /// pass, on the one after it, as what forestalled it is in the same block.
    async fn why_reverted(&self, attempt: &Attempt, receipt: &TransactionReceipt) -> Revert {
        let block = receipt.block_number.unwrap_or_default();
        for state in [block.saturating_sub(1), block] {
            let replayed = self.rpc.ask("revert", |provider| {
                let request = attempt.request.clone();
                async move { provider.call(request).block(BlockId::number(state)).await }
            });
            if let Some(revert) = replayed.await.err().and_then(|failure| failure.revert()) {
                return revert;
            }
        }
        Revert {
            name: "Unknown".into(),
            arguments: format!(" (transaction {} failed in its block)", receipt.transaction_hash),
        }
    }
}
