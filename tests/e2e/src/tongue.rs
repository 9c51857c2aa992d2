//! A chain over which a worker answers challenges badly.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use tensorlink_node::ports::chain::{
    Call, Chain, ChainError, Deployment, EventAt, Head, JobView, LaneView, Mined, Parameters, Receipt, Role, Seed,
    StakeView,
};
use tensorlink_proof::challenge::{Move, Subject};
use tensorlink_types::{Address, B256, JobId, Lane, U256};
use tokio::sync::mpsc;

/// How it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tongue {
    /// Everything but the last question: what the wrong output holds.
    SilentAtLast,
    /// With nodes that are none.
    Junk,
}

/// An honest chain, on which a worker answers as its tongue likes.
pub struct Tied(pub Arc<dyn Chain>, pub Tongue);

impl Tied {
    /// What is sent in place of a call.
    fn said(&self, mut call: Call) -> Result<Call, ChainError> {
        let Call::Challenge { step, .. } = &mut call else { return Ok(call) };
        match (self.1, &mut **step) {
            (Tongue::SilentAtLast, Move::AnswerOutput { .. }) => return Err(silent()),
            (Tongue::SilentAtLast, Move::Answer { position, .. }) if Subject::of(position) == Some(Subject::Output) => {
                return Err(silent());
            }
            (Tongue::Junk, Move::AnswerSteps { data, .. } | Move::AnswerStatement { data, .. }) => {
                *data = vec![0x5a; data.len()].into();
            }
            _ => {}
        }
        Ok(call)
    }
}

fn silent() -> ChainError {
    ChainError::Reverted { name: "Silent".to_owned(), arguments: "()".to_owned() }
}

#[async_trait]
impl Chain for Tied {
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
        self.0.events(from).await
    }

    async fn past_events(&self, from: u64, to: u64) -> Result<Vec<EventAt>, ChainError> {
        self.0.past_events(from, to).await
    }

    async fn send(&self, call: Call) -> Result<Receipt, ChainError> {
        self.0.send(self.said(call)?).await
    }

    async fn simulate(&self, call: &Call) -> Result<u64, ChainError> {
        self.0.simulate(&self.said(call.clone())?).await
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

    async fn redeemed(&self, lane: Lane) -> Result<(u32, u32), ChainError> {
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

    async fn window(&self, job: JobId, stage: u16, interval: u32) -> Result<u64, ChainError> {
        self.0.window(job, stage, interval).await
    }

    async fn stake(&self, account: Address, role: Role) -> Result<StakeView, ChainError> {
        self.0.stake(account, role).await
    }

    async fn is_validator(&self, account: Address) -> Result<bool, ChainError> {
        self.0.is_validator(account).await
    }

    async fn validators(&self, account: Address) -> Result<(u64, u64), ChainError> {
        self.0.validators(account).await
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

    async fn credit(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        self.0.credit(account, token).await
    }
}
