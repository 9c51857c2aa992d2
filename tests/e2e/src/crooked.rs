//! A chain over which something else is said, or heard, than what an honest role says or was told.

use std::sync::Arc;

use async_trait::async_trait;
use tensorlink_node::ports::chain::{
    Call, Chain, ChainError, Deployment, EventAt, Head, JobView, LaneView, Mined, Parameters, Receipt, RedeemedView,
    Role, Seed, StakeView,
};
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};
use tokio::sync::mpsc;

/// Events that wait for a slow reader.
const AHEAD: usize = 64;

/// What is not said or heard straight.
pub trait Twist: Send + Sync + 'static {
    /// What is sent in place of a call.
    ///
    /// # Errors
    /// Where nothing is sent.
    fn said(&self, call: Call) -> Result<Call, ChainError> {
        Ok(call)
    }

    /// What is heard in place of an event.
    fn heard(&self, at: EventAt) -> EventAt {
        at
    }
}

/// An honest chain, twisted.
pub struct Crooked<T>(pub Arc<dyn Chain>, pub Arc<T>);

#[async_trait]
impl<T: Twist> Chain for Crooked<T> {
    fn ended(&self) -> ChainError {
        self.0.ended()
    }

    fn times_undone(&self) -> Result<u64, ChainError> {
        self.0.times_undone()
    }

    fn account(&self) -> Address {
        self.0.account()
    }

    fn deployment(&self) -> &Deployment {
        self.0.deployment()
    }

    async fn head(&self) -> Result<Head, ChainError> {
        self.0.head().await
    }

    async fn events(&self, from: u64) -> Result<mpsc::Receiver<EventAt>, ChainError> {
        let mut straight = self.0.events(from).await?;
        let (sender, receiver) = mpsc::channel(AHEAD);
        let twist = self.1.clone();
        tokio::spawn(async move {
            while let Some(at) = straight.recv().await {
                if sender.send(twist.heard(at)).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    async fn past_events(&self, from: u64, to: u64) -> Result<Vec<EventAt>, ChainError> {
        self.0.past_events(from, to).await
    }

    async fn send(&self, call: Call) -> Result<Receipt, ChainError> {
        self.0.send(self.1.said(call)?).await
    }

    async fn simulate(&self, call: &Call) -> Result<u64, ChainError> {
        self.0.simulate(&self.1.said(call.clone())?).await
    }

    async fn parameters(&self) -> Result<Parameters, ChainError> {
        self.0.parameters().await
    }

    async fn job(&self, job: JobId) -> Result<Option<JobView>, ChainError> {
        self.0.job(job).await
    }

    async fn job_count(&self) -> Result<u64, ChainError> {
        self.0.job_count().await
    }

    async fn program_root(&self, job: JobId, stage: u16) -> Result<B256, ChainError> {
        self.0.program_root(job, stage).await
    }

    async fn initial_state(&self, job: JobId, stage: u16) -> Result<B256, ChainError> {
        self.0.initial_state(job, stage).await
    }

    async fn assignment(&self, lane: Lane) -> Result<(Address, u128), ChainError> {
        self.0.assignment(lane).await
    }

    async fn redeemed(&self, lane: Lane) -> Result<RedeemedView, ChainError> {
        self.0.redeemed(lane).await
    }

    async fn lane(&self, lane: Lane) -> Result<LaneView, ChainError> {
        self.0.lane(lane).await
    }

    async fn record(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        self.0.record(lane, interval).await
    }

    async fn seal(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        self.0.seal(lane, interval).await
    }

    async fn is_too_late(&self, lane: Lane) -> Result<bool, ChainError> {
        self.0.is_too_late(lane).await
    }

    async fn open_challenge(&self, claim: ClaimId) -> Result<Option<U256>, ChainError> {
        self.0.open_challenge(claim).await
    }

    async fn stake(&self, account: Address, role: Role) -> Result<StakeView, ChainError> {
        self.0.stake(account, role).await
    }

    async fn is_validator(&self, account: Address) -> Result<bool, ChainError> {
        self.0.is_validator(account).await
    }

    async fn validator_since(&self, account: Address) -> Result<u64, ChainError> {
        self.0.validator_since(account).await
    }

    async fn validators_before(&self, timestamp: u64) -> Result<u64, ChainError> {
        self.0.validators_before(timestamp).await
    }

    async fn seed(&self, period: u64) -> Result<Option<Seed>, ChainError> {
        self.0.seed(period).await
    }

    async fn balance(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        self.0.balance(account, token).await
    }

    async fn mined(&self, transaction: B256) -> Result<Option<Mined>, ChainError> {
        self.0.mined(transaction).await
    }

    async fn deposit_left(&self, challenge: U256) -> Result<U256, ChainError> {
        self.0.deposit_left(challenge).await
    }

    async fn base_fee(&self) -> Result<U256, ChainError> {
        self.0.base_fee().await
    }

    async fn gas_credit(&self, account: Address) -> Result<U256, ChainError> {
        self.0.gas_credit(account).await
    }

    async fn credit(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        self.0.credit(account, token).await
    }
}
