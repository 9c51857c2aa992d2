//! Transactions of one account: nonces that never collide, fees that rise until they are mined, and what became
//! of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use alloy::eips::BlockId;
use alloy::eips::eip1559::Eip1559Estimation;
use alloy::eips::eip2718::Encodable2718;
use alloy::network::{EthereumWallet, NetworkTransactionBuilder, TransactionBuilder};
use alloy::providers::Provider;
use alloy::rpc::types::{TransactionReceipt, TransactionRequest};
use alloy::signers::local::PrivateKeySigner;
use tensorlink_node::ports::chain::Deployment;
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_types::{Address, B256, Bytes, U256};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::allowance;
use crate::calls::Action;
use crate::revert::Revert;
use crate::rpc::{Failure, Rpc};
use crate::views::Views;

/// Most that is offered for a unit of gas, wei: a fee beyond it is a broken endpoint or a day to wait out.
const FEE_CAP: u128 = 1_000_000_000_000;
/// Nonces that are filled at once: more than any reorganisation undoes of one account.
const GAPS: usize = 64;
/// Gas of a transfer.
const TRANSFER_GAS: u64 = 21_000;
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
}

impl Default for Pace {
    fn default() -> Self {
        Self { poll: Duration::from_millis(150), bump_after: Duration::from_secs(20), bumps: 8 }
    }
}

/// What became of a transaction.
enum Fate {
    Mined(Box<TransactionReceipt>),
    /// Another transaction took its nonce, or the node refused it: it will never be mined.
    Lost(String),
}

/// One transaction in its variants, which share a nonce: one of them at most is ever mined.
struct Attempt<'a> {
    request: TransactionRequest,
    nonce: u64,
    fees: Eip1559Estimation,
    variants: Vec<(B256, Bytes)>,
    _flight: Flight<'a>,
}

impl Attempt<'_> {
    /// An error with the transaction that it leaves behind.
    fn interrupted(&self, error: ChainError) -> ChainError {
        match (error, self.variants.last()) {
            (ChainError::Closed, Some((hash, _))) => ChainError::Interrupted(*hash),
            (error, _) => error,
        }
    }
}

/// The only sender of an account's transactions in this process.
#[derive(Debug)]
pub(crate) struct Sender {
    rpc: Arc<Rpc>,
    deployment: Deployment,
    signer: PrivateKeySigner,
    wallet: EthereumWallet,
    pace: Pace,
    /// Held from the choice of a nonce to the broadcast, and, where an allowance is used up, to the receipt.
    turn: Mutex<()>,
    /// Nonces of transactions that were made and are neither mined nor given up.
    in_flight: StdMutex<BTreeSet<u64>>,
}

impl Sender {
    pub(crate) fn new(rpc: Arc<Rpc>, deployment: Deployment, signer: PrivateKeySigner, pace: Pace) -> Self {
        let wallet = EthereumWallet::from(signer.clone());
        let (turn, in_flight) = (Mutex::new(()), StdMutex::new(BTreeSet::new()));
        Self { rpc, deployment, signer, wallet, pace, turn, in_flight }
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
        let (approval, main) = allowance::steps(views, &self.signer, call, now).await?;
        if main.spends.is_none() {
            return self.settle(&main, Some(turn)).await;
        }
        // Allowances and permits are one for each contract: the next such call waits for the receipt of this.
        if let Some(approval) = approval {
            self.settle(&approval, None).await?;
        }
        let receipt = self.settle(&main, None).await;
        drop(turn);
        receipt
    }

    /// Sends one transaction until it is mined. Lets go of the turn once it is broadcast.
    async fn settle(
        &self,
        action: &Action,
        mut turn: Option<MutexGuard<'_, ()>>,
    ) -> Result<TransactionReceipt, ChainError> {
        let mut reason = String::new();
        for _ in 0..TRIES {
            let mut attempt = self.prepare(action).await?;
            let fate = match self.broadcast_first(&mut attempt).await {
                Ok(None) => {
                    drop(turn.take());
                    self.watch(&mut attempt).await
                }
                Ok(Some(lost)) => Ok(lost),
                Err(error) => Err(error),
            };
            match fate.map_err(|error| attempt.interrupted(error))? {
                Fate::Mined(receipt) if receipt.status() => return Ok(*receipt),
                Fate::Mined(receipt) => return Err(self.why_reverted(&attempt, &receipt).await.into()),
                Fate::Lost(why) => {
                    warn!(nonce = attempt.nonce, why, "the transaction is lost; making another");
                    reason = why;
                }
            }
            if turn.is_none() {
                self.rpc.pause(self.pace.poll).await?;
            }
        }
        Err(ChainError::Unavailable(reason))
    }

    /// Gas, fees and nonce; finds out here what cannot succeed.
    async fn prepare(&self, action: &Action) -> Result<Attempt<'_>, ChainError> {
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
        fees.max_fee_per_gas = fees.max_fee_per_gas.min(FEE_CAP);
        fees.max_priority_fee_per_gas = fees.max_priority_fee_per_gas.min(fees.max_fee_per_gas);
        let needed = action.value.saturating_add(U256::from(gas).saturating_mul(U256::from(fees.max_fee_per_gas)));
        if balance < needed {
            return Err(poor(needed));
        }
        let flight = Flight::first(&self.in_flight, self.pending_nonce().await?);
        let nonce = flight.nonce;
        let mut request = request.with_nonce(nonce).with_gas_limit(gas);
        request.set_chain_id(self.deployment.chain_id);
        Ok(Attempt { request, nonce, fees, variants: Vec::new(), _flight: flight })
    }

    /// The first nonce that no transaction has that the node knows.
    async fn pending_nonce(&self) -> Result<u64, Failure> {
        let account = self.account();
        self.rpc.ask("nonce", |p| async move { p.get_transaction_count(account).pending().await }).await
    }

    /// Signs a variant with the attempt's present fees, and hands it to the node.
    async fn broadcast(&self, attempt: &mut Attempt<'_>) -> Result<(), Failure> {
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
    async fn broadcast_first(&self, attempt: &mut Attempt<'_>) -> Result<Option<Fate>, ChainError> {
        let payload = match self.broadcast(attempt).await {
            // Without an answer it may be on its way all the same.
            Ok(()) | Err(Failure::Unavailable(_)) => return Ok(None),
            Err(Failure::Closed) => return Err(ChainError::Closed),
            Err(Failure::Refused(payload)) => payload,
        };
        // A request repeated after a lost answer is refused, too: what counts is whether the node has it.
        let Some((hash, _)) = attempt.variants.last().cloned() else { return Ok(None) };
        match self.rpc.ask("transaction", |p| async move { p.get_transaction_by_hash(hash).await }).await {
            Ok(None) => Ok(Some(Fate::Lost(format!("it refuses the transaction: {payload}")))),
            Ok(Some(_)) | Err(Failure::Refused(_) | Failure::Unavailable(_)) => Ok(None),
            Err(Failure::Closed) => Err(ChainError::Closed),
        }
    }

    /// Waits for the receipt of any variant, and raises the fee meanwhile.
    async fn watch(&self, attempt: &mut Attempt<'_>) -> Result<Fate, ChainError> {
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
                    let hash = attempt.variants.last().map_or(B256::ZERO, |(hash, _)| *hash);
                    return Err(ChainError::Pending(hash));
                }
                bumps += 1;
                since = Instant::now();
                self.bump(attempt).await?;
                self.fill_gaps(attempt).await?;
            }
            self.rpc.pause(self.pace.poll).await?;
        }
    }

    async fn look(&self, attempt: &Attempt<'_>, looks: &mut u32) -> Result<Option<Fate>, Failure> {
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
        Ok((*looks >= LOOKS).then(|| Fate::Lost("another transaction of this account took its nonce".into())))
    }

    /// Replaces the transaction by one that pays an eighth more, or the market's fee if that is higher, and hands it to
    /// the node anew: it may have lost the last one.
    async fn bump(&self, attempt: &mut Attempt<'_>) -> Result<(), ChainError> {
        let market = self.rpc.ask("fees", |p| async move { p.estimate_eip1559_fees().await }).await;
        let raised = |old: u128| old.saturating_add(old.div_ceil(8)).saturating_add(1);
        let (mut fee, mut tip) = (raised(attempt.fees.max_fee_per_gas), raised(attempt.fees.max_priority_fee_per_gas));
        if let Ok(market) = market {
            // The estimate leaves room for blocks that get dearer; where that goes beyond the cap, the block itself
            // may not.
            fee = fee.max(market.max_fee_per_gas.min(FEE_CAP));
            tip = tip.max(market.max_priority_fee_per_gas);
        }
        // At the cap the last variant stays: a node takes no replacement for the same fee.
        if fee <= FEE_CAP {
            attempt.fees = Eip1559Estimation { max_fee_per_gas: fee, max_priority_fee_per_gas: tip.min(fee) };
        }
        info!(nonce = attempt.nonce, max_fee = attempt.fees.max_fee_per_gas, "not mined yet: raising the fee");
        match self.broadcast(attempt).await {
            Err(Failure::Closed) => Err(ChainError::Closed),
            // Refused because it is mined or known, or no answer: the next look tells.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// A reorganisation may undo transactions that this one follows, for good: their sender has seen them mined and
    /// does not send them again. Then nothing after them is ever mined, unless something else takes their nonces:
    /// transfers of nothing to ourselves.
    async fn fill_gaps(&self, attempt: &Attempt<'_>) -> Result<(), ChainError> {
        for _ in 0..GAPS {
            let gap = match self.pending_nonce().await {
                Ok(pending) if pending < attempt.nonce => pending,
                Err(Failure::Closed) => return Err(ChainError::Closed),
                Ok(_) | Err(_) => return Ok(()),
            };
            // Whoever else sends from here takes the first nonce that is free, and raises its own fee.
            let Some(_flight) = Flight::exactly(&self.in_flight, gap) else { return Ok(()) };
            warn!(nonce = gap, "a reorganisation has left a gap; filling it");
            match self.send_nothing(gap, attempt.fees).await {
                Ok(()) => {}
                Err(Failure::Closed) => return Err(ChainError::Closed),
                // Looked at again when the fee is raised next.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// A transfer of nothing to ourselves.
    async fn send_nothing(&self, nonce: u64, fees: Eip1559Estimation) -> Result<(), Failure> {
        let account = self.account();
        let mut request = TransactionRequest::default()
            .with_from(account)
            .with_to(account)
            .with_nonce(nonce)
            .with_gas_limit(TRANSFER_GAS)
            .with_max_fee_per_gas(fees.max_fee_per_gas)
            .with_max_priority_fee_per_gas(fees.max_priority_fee_per_gas);
        request.set_chain_id(self.deployment.chain_id);
        let signed = request.build(&self.wallet).await.map_err(|error| Failure::Unavailable(error.to_string()))?;
        self.send_raw(signed.encoded_2718().into()).await
    }

    async fn send_raw(&self, raw: Bytes) -> Result<(), Failure> {
        self.rpc
            .ask("transaction", |provider| {
                let raw = raw.clone();
                async move { provider.send_raw_transaction(&raw).await.map(|_| ()) }
            })
            .await
    }

    /// The revert of a mined transaction, by executing it once more: on the state before its block, and if that lets it
    /// pass, on the one after it, as what forestalled it is in the same block.
    async fn why_reverted(&self, attempt: &Attempt<'_>, receipt: &TransactionReceipt) -> Revert {
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

/// A nonce in use, until dropped.
struct Flight<'a> {
    nonces: &'a StdMutex<BTreeSet<u64>>,
    nonce: u64,
}

impl<'a> Flight<'a> {
    /// The first nonce from `pending` on that none of ours has: the node may not have seen all of them yet.
    fn first(nonces: &'a StdMutex<BTreeSet<u64>>, pending: u64) -> Self {
        let mut taken = lock(nonces);
        let mut nonce = pending;
        while taken.contains(&nonce) {
            nonce += 1;
        }
        taken.insert(nonce);
        Self { nonces, nonce }
    }

    /// This nonce, unless one of ours has it.
    fn exactly(nonces: &'a StdMutex<BTreeSet<u64>>, nonce: u64) -> Option<Self> {
        lock(nonces).insert(nonce).then_some(Self { nonces, nonce })
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        lock(self.nonces).remove(&self.nonce);
    }
}

fn lock(nonces: &StdMutex<BTreeSet<u64>>) -> std::sync::MutexGuard<'_, BTreeSet<u64>> {
    nonces.lock().unwrap_or_else(PoisonError::into_inner)
}
