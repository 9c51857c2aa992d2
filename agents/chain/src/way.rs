//! Raises fees, and clears the way of a transaction: nothing is mined before everything of its account that
//! comes first.

use alloy::eips::eip1559::Eip1559Estimation;
use alloy::eips::eip2718::Encodable2718;
use alloy::network::{NetworkTransactionBuilder, TransactionBuilder};
use alloy::providers::Provider;
use alloy::rpc::types::TransactionRequest;
use tensorlink_node::ports::ChainError;
use tensorlink_types::U256;
use tracing::{info, warn};

use crate::attempt::Attempt;
use crate::failure::Failure;
use crate::sender::Sender;

/// Nonces that are filled or raised at once: more than any reorganisation undoes of one account.
const GAPS: usize = 64;
/// Gas of a transfer.
const TRANSFER_GAS: u64 = 21_000;
/// Raises after which a transaction of unknown origin that stands in the way is replaced: another program that uses the
/// key has had time to raise it.
const FOREIGN: u32 = 3;

/// The least by which a node takes a replacement, and some: geth asks for a tenth, others for an eighth.
const fn raised(fee: u128) -> u128 {
    fee.saturating_add(fee.div_ceil(8)).saturating_add(1)
}

impl Sender {
    /// Replaces the transaction by one that pays an eighth more, or the market's fee if that is higher, and hands it to
    /// the node anew: it may have lost the last one.
    pub(crate) async fn raise(&self, attempt: &mut Attempt) -> Result<(), ChainError> {
        let (cap, old) = (self.spending.max_fee(), attempt.fees);
        let market = self.rpc.ask("fees", |p| async move { p.estimate_eip1559_fees().await }).await;
        let (mut fee, mut tip) = (raised(old.max_fee_per_gas), raised(old.max_priority_fee_per_gas));
        if let Ok(market) = market {
            // The estimate leaves room for blocks that get dearer; where that goes beyond the cap, the block itself
            // may not.
            fee = fee.max(market.max_fee_per_gas.min(cap));
            tip = tip.max(market.max_priority_fee_per_gas);
        }
        // At the cap the last variant stays: a node takes no replacement for the same fee.
        if fee <= cap {
            attempt.fees = Eip1559Estimation { max_fee_per_gas: fee, max_priority_fee_per_gas: tip.min(fee) };
            info!(nonce = attempt.nonce, max_fee = fee, "not mined yet: raising the fee");
        } else {
            warn!(nonce = attempt.nonce, cap, "not mined yet, and the fee is as high as --max-fee allows");
        }
        self.hand_over(attempt).await
    }

    async fn hand_over(&self, attempt: &mut Attempt) -> Result<(), ChainError> {
        match self.broadcast(attempt).await {
            Err(Failure::Closed) => Err(ChainError::Closed),
            // Refused because it is mined or known, or no answer: the next look tells.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Sees to it that what comes before a transaction is mined: raises what was given up, fills gaps, and at last
    /// replaces what is not ours. `raises`: how often the transaction itself was raised; `now`: by the chain's clock.
    pub(crate) async fn clear_way(&self, attempt: &Attempt, raises: u32, now: u64) -> Result<(), ChainError> {
        let account = self.account();
        let used = self.rpc.ask("nonce", |p| async move { p.get_transaction_count(account).latest().await }).await;
        let used = match used {
            Ok(used) => used,
            Err(Failure::Closed) => return Err(ChainError::Closed),
            // Looked at again at the next raise.
            Err(_) => return Ok(()),
        };
        self.given_up.forget_before(used);
        self.raise_given_up(attempt, used).await?;
        self.fill_gaps(attempt, now).await?;
        if raises >= FOREIGN { self.replace_foreign(attempt, used, now).await } else { Ok(()) }
    }

    /// Raises what was given up and waits before a transaction, to what that one pays at least.
    async fn raise_given_up(&self, attempt: &Attempt, used: u64) -> Result<(), ChainError> {
        let mut from = used;
        while let Some((nonce, shared)) = self.given_up.next(from, attempt.nonce) {
            from = nonce.saturating_add(1);
            // Held until it is handed over: who makes the same call again meanwhile waits for it.
            let mut held = shared.lock().await;
            let Some(first) = held.as_mut() else { continue };
            let (old, own) = (first.fees, attempt.fees);
            // Less than an eighth more is not taken.
            if own.max_fee_per_gas >= raised(old.max_fee_per_gas) {
                let tip = raised(old.max_priority_fee_per_gas).max(own.max_priority_fee_per_gas);
                let fee = own.max_fee_per_gas;
                first.fees = Eip1559Estimation { max_fee_per_gas: fee, max_priority_fee_per_gas: tip.min(fee) };
            }
            info!(nonce, max_fee = first.fees.max_fee_per_gas, "an earlier transaction is in the way");
            self.hand_over(first).await?;
        }
        Ok(())
    }

    /// A reorganisation may undo transactions that this one follows, for good: their sender has seen them mined and
    /// does not send them again. Then nothing after them is ever mined, unless something else takes their nonces:
    /// transfers of nothing to ourselves.
    async fn fill_gaps(&self, attempt: &Attempt, now: u64) -> Result<(), ChainError> {
        for _ in 0..GAPS {
            let gap = match self.pending_nonce().await {
                Ok(pending) if pending < attempt.nonce => pending,
                Err(Failure::Closed) => return Err(ChainError::Closed),
                Ok(_) | Err(_) => return Ok(()),
            };
            // Whoever else sends from here takes the first nonce that is free, and raises its own fee.
            let Some(_flight) = self.nonces.exactly(gap) else { return Ok(()) };
            warn!(nonce = gap, "a reorganisation has left a gap; filling it");
            match self.send_nothing(gap, attempt.fees, now).await {
                Ok(()) => {}
                Err(Failure::Closed) => return Err(ChainError::Closed),
                // Looked at again when the fee is raised next.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// What was sent before this process started, or by hand, and is too cheap to be mined, holds up all that follows:
    /// transfers of nothing take its place. A node refuses them while they pay less than an eighth more.
    async fn replace_foreign(&self, attempt: &Attempt, used: u64, now: u64) -> Result<(), ChainError> {
        for nonce in (used..attempt.nonce).take(GAPS) {
            let Some(_flight) = self.nonces.exactly(nonce) else { continue };
            warn!(nonce, "a transaction that this node did not send is not mined: replacing it by an empty one");
            if let Err(Failure::Closed) = self.send_nothing(nonce, attempt.fees, now).await {
                return Err(ChainError::Closed);
            }
        }
        Ok(())
    }

    /// A transfer of nothing to ourselves. Nobody waits for it, so that what it may cost counts as paid.
    async fn send_nothing(&self, nonce: u64, fees: Eip1559Estimation, now: u64) -> Result<(), Failure> {
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
        let sent = self.send_raw(signed.encoded_2718().into()).await;
        if !matches!(sent, Err(Failure::Refused(_))) {
            let cost = U256::from(TRANSFER_GAS).saturating_mul(U256::from(fees.max_fee_per_gas));
            self.spending.paid_for_nothing(nonce, cost, now);
        }
        sent
    }
}
