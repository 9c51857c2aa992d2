//! The chain port over one job that runs. The chain is not on the way of a text: a role asks it when it starts, and
//! then hears nothing. What workers redeem lies in the job's folder, for a user signs little ahead of it.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use tensorlink_node::ports::chain::{
    Call, Chain, ChainError, Deployment, Event, EventAt, Head, JobView, LaneView, Mined, Parameters, Receipt,
    RedeemedView, Role, Seed, StakeView,
};
use tensorlink_proof::commit::epoch_record;
use tensorlink_types::abi::Voucher;
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};
use tokio::sync::mpsc;

use super::job::{JOB, Job};

/// A chain with one job.
pub(super) struct Ledger {
    account: Address,
    deployment: Deployment,
    view: JobView,
    workers: Vec<Address>,
    programs: Vec<B256>,
    events: Vec<EventAt>,
    folder: PathBuf,
}

impl Ledger {
    /// The chain as `account` sees it, which is told of these events. All processes have the same `folder`.
    pub(super) fn new(job: &Job, folder: &Path, account: Address, events: Vec<Event>) -> anyhow::Result<Self> {
        let at = |(log_index, event)| EventAt {
            block: 0,
            block_hash: B256::ZERO,
            timestamp: 1,
            log_index,
            transaction: B256::ZERO,
            event,
        };
        let deployment = Deployment::nowhere(1);
        let events = (0..).zip(events).map(at).collect();
        let (view, workers, programs) = (job.view()?, job.workers()?, job.programs.clone());
        Ok(Self { account, deployment, view, workers, programs, events, folder: folder.to_owned() })
    }

    /// Where it stands what a lane has redeemed.
    fn redeemed_at(&self, stage: u16) -> PathBuf {
        self.folder.join(format!("redeemed-{stage}.json"))
    }

    fn redeem(&self, voucher: &Voucher) -> std::io::Result<()> {
        let (epoch, tokens, at) = (voucher.epoch, voucher.tokens, 1);
        let redeemed = RedeemedView { epoch, tokens, at, record: epoch_record(voucher.receipts, at) };
        // Whole or not at all, for whoever reads it meanwhile.
        let written = self.redeemed_at(voucher.stage).with_extension("new");
        std::fs::write(&written, serde_json::to_vec(&redeemed)?)?;
        std::fs::rename(written, self.redeemed_at(voucher.stage))
    }
}

/// For what no role of a job that runs asks while it computes.
fn silent<T>() -> Result<T, ChainError> {
    Err(ChainError::Unavailable("a bench has no chain".to_owned()))
}

#[async_trait]
impl Chain for Ledger {
    fn account(&self) -> Address {
        self.account
    }

    fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    async fn head(&self) -> Result<Head, ChainError> {
        Ok(Head { number: 0, hash: B256::ZERO, timestamp: 1 })
    }

    async fn events(&self, _: u64) -> Result<mpsc::Receiver<EventAt>, ChainError> {
        let (sender, receiver) = mpsc::channel(self.events.len().max(1));
        let events = self.events.clone();
        tokio::spawn(async move {
            for event in events {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
            // Silence, not an end.
            sender.closed().await;
        });
        Ok(receiver)
    }

    async fn past_events(&self, _: u64, _: u64) -> Result<Vec<EventAt>, ChainError> {
        Ok(self.events.clone())
    }

    async fn send(&self, call: Call) -> Result<Receipt, ChainError> {
        let Call::Redeem { voucher, .. } = call else { return silent() };
        self.redeem(&voucher).map_err(|error| ChainError::Unavailable(error.to_string()))?;
        Ok(Receipt { transaction: B256::ZERO, block: 0, gas: 0, events: Vec::new() })
    }

    async fn simulate(&self, _: &Call) -> Result<u64, ChainError> {
        silent()
    }

    async fn parameters(&self) -> Result<Parameters, ChainError> {
        Ok(Parameters::default())
    }

    async fn job(&self, job: JobId) -> Result<Option<JobView>, ChainError> {
        Ok(Some(self.view.clone()).filter(|_| job == JOB))
    }

    async fn job_count(&self) -> Result<u64, ChainError> {
        Ok(JOB.0)
    }

    async fn program_root(&self, _: JobId, stage: u16) -> Result<B256, ChainError> {
        self.programs.get(usize::from(stage)).copied().map_or_else(silent, Ok)
    }

    async fn initial_state(&self, _: JobId, _: u16) -> Result<B256, ChainError> {
        Ok(B256::ZERO)
    }

    async fn assignment(&self, lane: Lane) -> Result<(Address, u128), ChainError> {
        self.workers.get(usize::from(lane.stage)).map_or_else(silent, |worker| Ok((*worker, 1)))
    }

    async fn redeemed(&self, lane: Lane) -> Result<RedeemedView, ChainError> {
        let unavailable = |error: std::io::Error| ChainError::Unavailable(error.to_string());
        match std::fs::read(self.redeemed_at(lane.stage)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unavailable(error.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(RedeemedView::default()),
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn lane(&self, _: Lane) -> Result<LaneView, ChainError> {
        silent()
    }

    async fn record(&self, _: Lane, _: u32) -> Result<B256, ChainError> {
        Ok(B256::ZERO)
    }

    async fn seal(&self, _: Lane, _: u32) -> Result<B256, ChainError> {
        Ok(B256::ZERO)
    }

    async fn is_too_late(&self, _: Lane) -> Result<bool, ChainError> {
        Ok(false)
    }

    async fn open_challenge(&self, _: ClaimId) -> Result<Option<U256>, ChainError> {
        Ok(None)
    }

    async fn stake(&self, _: Address, _: Role) -> Result<StakeView, ChainError> {
        Ok(StakeView { bonded: 1, ..StakeView::default() })
    }

    async fn is_validator(&self, _: Address) -> Result<bool, ChainError> {
        Ok(false)
    }

    async fn validator_since(&self, _: Address) -> Result<u64, ChainError> {
        silent()
    }

    async fn validators_before(&self, _: u64) -> Result<u64, ChainError> {
        silent()
    }

    async fn seed(&self, _: u64) -> Result<Option<Seed>, ChainError> {
        silent()
    }

    async fn balance(&self, _: Address, _: Address) -> Result<U256, ChainError> {
        Ok(U256::ZERO)
    }

    async fn mined(&self, _: B256) -> Result<Option<Mined>, ChainError> {
        Ok(None)
    }

    async fn deposit_left(&self, _: U256) -> Result<U256, ChainError> {
        Ok(U256::ZERO)
    }

    async fn base_fee(&self) -> Result<U256, ChainError> {
        Ok(U256::ZERO)
    }

    async fn gas_credit(&self, _: Address) -> Result<U256, ChainError> {
        Ok(U256::ZERO)
    }

    async fn credit(&self, _: Address, _: Address) -> Result<U256, ChainError> {
        Ok(U256::ZERO)
    }
}
