//! The contracts, as a role sees them: confirmed events in order, views, and calls that happen once.

use async_trait::async_trait;
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};
use tokio::sync::mpsc;

pub use super::call::{AuditMove, Call, CustodyMove, Mined, Receipt};
pub use super::chain_error::ChainError;
pub use super::deployment::Deployment;
pub use super::event::{Event, EventAt, Fault};
pub use super::news::{Mark, News};
pub use super::parameters::Parameters;
pub use super::role::Role;
pub use super::view::{Head, JobState, JobView, LaneView, RedeemedView, Seed, StakeView};

/// The contracts of one deployment, seen and acted on from one account.
#[async_trait]
pub trait Chain: Send + Sync + 'static {
    /// Who we are.
    fn account(&self) -> Address;

    /// Which contracts these are.
    fn deployment(&self) -> &Deployment;

    /// The newest block.
    async fn head(&self) -> Result<Head, ChainError>;

    /// Every confirmed event from block `from` on, in order, each once, until a reorganisation undoes one that was
    /// told, at whatever depth, or the chain is closed: then it ends, and [`ended`](Self::ended) says why. Gaps after
    /// an outage are filled. The channel is bounded: a slow reader slows the reading of the chain.
    async fn events(&self, from: u64) -> Result<mpsc::Receiver<EventAt>, ChainError>;

    /// Why events have ended: [`ChainError::Undone`] where they can be followed anew from the first on.
    fn ended(&self) -> ChainError {
        ChainError::Ended
    }

    /// How often remembered events were taken back because a reorganisation had undone them, by what is on disk. Read
    /// before [`events`](Self::events): what those tell then has nothing of it.
    ///
    /// # Errors
    /// When the disk fails, or what is there is of a newer version.
    fn times_undone(&self) -> Result<u64, ChainError> {
        Ok(0)
    }

    /// As [`events`](Self::events), for who keeps what it is told. Of the blocks `known`, oldest first, everything up
    /// to the last is told already; a reorganisation of any depth is told, also one that happened meanwhile.
    async fn follow(&self, known: Vec<Mark>) -> Result<mpsc::Receiver<News>, ChainError> {
        let from = known.last().map_or(self.deployment().block, |mark| mark.block.saturating_add(1));
        let mut events = self.events(from).await?;
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if sender.send(News::Event(Box::new(event))).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    /// Confirmed events of a past range, both ends included.
    async fn past_events(&self, from: u64, to: u64) -> Result<Vec<EventAt>, ChainError>;

    /// Sends a call and waits until it is mined.
    async fn send(&self, call: Call) -> Result<Receipt, ChainError>;

    /// Executes a call locally on the newest state, without sending it; returns the gas it would use.
    async fn simulate(&self, call: &Call) -> Result<u64, ChainError>;

    /// Sends a call if it would be carried out now: what is refused costs nothing.
    async fn attempt(&self, call: Call) -> Result<Receipt, ChainError> {
        self.simulate(&call).await?;
        self.send(call).await
    }

    /// Parameters of the deployment.
    async fn parameters(&self) -> Result<Parameters, ChainError>;

    /// A job, if it exists.
    async fn job(&self, job: JobId) -> Result<Option<JobView>, ChainError>;

    /// Whether the chain says now that a job is settled; not, where it does not answer.
    async fn is_known_settled(&self, job: JobId) -> bool {
        match self.job(job).await {
            Ok(job) => job.is_some_and(|job| job.state == JobState::Settled),
            Err(error) => {
                tracing::warn!(%job, %error, "it is not known whether the job is settled");
                false
            }
        }
    }

    /// Number of jobs ever posted; ids run from 1 to it.
    async fn job_count(&self) -> Result<u64, ChainError>;

    /// Registered program root of a stage.
    async fn program_root(&self, job: JobId, stage: u16) -> Result<B256, ChainError>;

    /// Registered initial state root of a stage.
    async fn initial_state(&self, job: JobId, stage: u16) -> Result<B256, ChainError>;

    /// Who holds a lane (zero address: nobody) and its price per interval in wei of the job's token.
    async fn assignment(&self, lane: Lane) -> Result<(Address, u128), ChainError>;

    /// What a lane of a serving job has redeemed.
    async fn redeemed(&self, lane: Lane) -> Result<RedeemedView, ChainError>;

    /// A lane's claims.
    async fn lane(&self, lane: Lane) -> Result<LaneView, ChainError>;

    /// Record of a claim (rule C-11), zero if none, or if a later claim has taken the place of the final one.
    async fn record(&self, lane: Lane, interval: u32) -> Result<B256, ChainError>;

    /// Whether a lane's claim for an interval has been made.
    async fn is_committed(&self, lane: Lane, interval: u32) -> Result<bool, ChainError> {
        // Records are kept until claims are final, and some longer.
        Ok(self.record(lane, interval).await? != B256::ZERO || interval < self.lane(lane).await?.finalized)
    }

    /// What a lane sealed for an interval (rule C-14), zero if nothing.
    async fn seal(&self, lane: Lane, interval: u32) -> Result<B256, ChainError>;

    /// Whether a lane can make no more claims because it did not seal its next one in time; those it made are final.
    async fn is_too_late(&self, lane: Lane) -> Result<bool, ChainError>;

    /// The latest challenge that this account has opened on a claim and that is not over, by the newest block: its
    /// events may wait for confirmation.
    async fn open_challenge(&self, claim: ClaimId) -> Result<Option<U256>, ChainError>;

    /// A stake balance.
    async fn stake(&self, account: Address, role: Role) -> Result<StakeView, ChainError>;

    /// Whether an account holds a validator's collateral.
    async fn is_validator(&self, account: Address) -> Result<bool, ChainError>;

    /// Since when an account has held it without a break; 0 if it does not.
    async fn validator_since(&self, account: Address) -> Result<u64, ChainError>;

    /// How many accounts held it before a time, a Unix timestamp.
    async fn validators_before(&self, timestamp: u64) -> Result<u64, ChainError>;

    /// The seed of a period of the beacon, recorded or from the headers of confirmed blocks; none while the period's
    /// first block is not confirmed, or once it is too old to be recorded.
    async fn seed(&self, period: u64) -> Result<Option<Seed>, ChainError>;

    /// Balance of an account, wei of `token` (zero address: ETH).
    async fn balance(&self, account: Address, token: Address) -> Result<U256, ChainError>;

    /// A mined transaction; none if it is not mined, or the endpoint does not remember it.
    async fn mined(&self, transaction: B256) -> Result<Option<Mined>, ChainError>;

    /// How much of a challenge's deposit is left, wei of ETH, by the newest block.
    async fn deposit_left(&self, challenge: U256) -> Result<U256, ChainError>;

    /// Base fee of the next block, wei of ETH for a unit of gas.
    async fn base_fee(&self) -> Result<U256, ChainError>;

    /// What an account can collect from `Challenges`: deposits that it has back, and gas that it is paid back; wei of
    /// ETH.
    async fn gas_credit(&self, account: Address) -> Result<U256, ChainError>;

    /// What an account can collect from `Jobs`, wei of `token` (zero address: ETH).
    async fn credit(&self, account: Address, token: Address) -> Result<U256, ChainError>;
}
