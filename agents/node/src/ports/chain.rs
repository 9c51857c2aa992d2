//! The contracts, as a role sees them: confirmed events in order, views, and calls that happen once.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tensorlink_proof::commit::Contracts;
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, B256, Bytes, ClaimId, JobId, Lane, Lineage, U256};
use thiserror::Error;
use tokio::sync::mpsc;

pub use super::call::{AuditMove, Call, CustodyMove, Mined, Receipt};
pub use super::event::{Event, EventAt, Fault};
pub use super::parameters::Parameters;
pub use super::role::Role;

/// Addresses of a deployment, as `deploy/<chain id>.toml` holds them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub struct Deployment {
    pub chain_id: u64,
    /// First block that can hold an event of these contracts.
    pub block: u64,
    pub sno: Address,
    pub staking: Address,
    pub jobs: Address,
    pub checkpoints: Address,
    pub channels: Address,
    pub disputes: Address,
    pub challenges: Address,
    pub custody: Address,
    pub audits: Address,
    pub beacon: Address,
    pub step_verifier: Address,
}

impl Deployment {
    /// Of no contracts: for a chain that is played.
    pub const fn nowhere(chain_id: u64) -> Self {
        let zero = Address::ZERO;
        Self {
            chain_id,
            block: 0,
            sno: zero,
            staking: zero,
            jobs: zero,
            checkpoints: zero,
            channels: zero,
            disputes: zero,
            challenges: zero,
            custody: zero,
            audits: zero,
            beacon: zero,
            step_verifier: zero,
        }
    }

    /// Those that something is signed for.
    pub const fn contracts(&self) -> Contracts {
        Contracts {
            chain_id: self.chain_id,
            jobs: self.jobs,
            checkpoints: self.checkpoints,
            channels: self.channels,
            disputes: self.disputes,
            custody: self.custody,
        }
    }
}

/// A block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Height.
    pub number: u64,
    /// Hash.
    pub hash: B256,
    /// Seconds.
    pub timestamp: u64,
}

/// A job's state, as in `IJobs.State`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub enum JobState {
    Posted,
    Accepted,
    Running,
    Closing,
    Settled,
}

/// What `Jobs` holds of a job. Amounts in wei of `token` (zero address: ETH), stake in wei of SNO, times in seconds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub struct JobView {
    pub id: JobId,
    pub kind: JobKind,
    pub user: Address,
    pub state: JobState,
    #[serde(with = "crate::wei")]
    pub escrow: u128,
    /// How much of the escrow audits can still take.
    #[serde(with = "crate::wei")]
    pub audit_budget: u128,
    pub token: Address,
    pub stages: u16,
    pub replicas: u16,
    pub intervals: u32,
    pub steps_per_interval: u32,
    pub accept_by: u64,
    pub duration: u64,
    pub started_at: u64,
    pub deadline: u64,
    pub challenge_window: u64,
    #[serde(with = "crate::wei")]
    pub worker_stake: u128,
    pub lineage: Lineage,
    /// Hash of its user and its terms, which offers name (P-40).
    pub terms: B256,
}

/// What `Checkpoints` holds of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LaneView {
    /// Who holds it.
    pub worker: Address,
    /// Claims `[0, finalized)` are final.
    pub finalized: u32,
    /// Claims from here on are void.
    pub void_from: Option<u32>,
}

/// What a lane of a serving job has redeemed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RedeemedView {
    /// Its last epoch; 0: none.
    pub epoch: u32,
    /// Tokens paid since the job began.
    pub tokens: u32,
    /// Timestamp of the last redemption, seconds.
    pub at: u64,
    /// Record of the last epoch, by which the list of its receipts is known
    /// ([`epoch_record`](tensorlink_proof::commit::epoch_record)); zero if there is none.
    pub record: B256,
}

/// A stake balance, wei of SNO.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs, reason = "names and units are those of the contracts")]
pub struct StakeView {
    #[serde(with = "crate::wei")]
    pub bonded: u128,
    #[serde(with = "crate::wei")]
    pub unbonding: u128,
    #[serde(with = "crate::wei")]
    pub locked: u128,
    /// When the unbonding part can be withdrawn, seconds.
    pub release_at: u64,
}

impl Parameters {
    /// Bond of a challenge of a claim that was challenged so often before, wei of SNO (P-44); `stake`: the lane's.
    pub fn bond(&self, stake: u128, before: u32) -> U256 {
        let grown = U256::from(self.dispute_bond) << before.min(16);
        grown.min(self.bounty(stake)).max(U256::from(self.dispute_bond))
    }

    /// What is paid out of a slashed stake to who had it slashed, wei of SNO: half of the bounty (P-45).
    pub fn bounty(&self, stake: u128) -> U256 {
        let whole = U256::from(stake) * U256::from(self.bounty_bps) / U256::from(10_000);
        whole - whole / U256::from(2)
    }
}

/// The seed that a period draws with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seed {
    /// The seed.
    pub value: B256,
    /// RLP of the headers that record it: of the block before the period's first, and of that one. None if it
    /// is recorded.
    pub headers: Option<(Bytes, Bytes)>,
}

/// A block that the chain is known by: its hash commits to all blocks up to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// Its number.
    pub block: u64,
    /// Its hash.
    pub hash: B256,
}

/// What is told to who keeps what it is told.
#[derive(Clone, PartialEq, Debug)]
pub enum News {
    /// A confirmed event.
    Event(Box<EventAt>),
    /// Every event up to this block is told.
    Until(Mark),
    /// A reorganisation has undone confirmed blocks: what was told of this block and of later ones is void, and what
    /// the chain has in their place follows.
    Undone {
        /// The first of them.
        from: u64,
    },
}

/// Why the chain did not do or say what we asked.
#[derive(Debug, Error)]
pub enum ChainError {
    /// The contract refused. Retrying the same call is pointless.
    #[error("the contract refuses: {name}{arguments}")]
    Reverted {
        /// Name of the custom error, e.g. `WindowOpen`; `Unknown` if none of ours.
        name: String,
        /// Its arguments for people, e.g. `(1700000000)`.
        arguments: String,
    },
    /// The endpoint is down, slow or talks nonsense. Retried with back-off inside the adapter before this is returned.
    #[error("the RPC endpoint does not answer usefully: {0}; check --rpc")]
    Unavailable(String),
    /// The endpoint serves another chain than the deployment file names.
    #[error("the endpoint is chain {actual}, the deployment is for chain {expected}: check --rpc and --deployment")]
    WrongChain {
        /// Of the deployment.
        expected: u64,
        /// Of the endpoint.
        actual: u64,
    },
    /// The account cannot pay.
    #[error("{account} has {balance} wei of {asset}, needs {needed}: send it more {asset} first")]
    InsufficientFunds {
        /// Who pays.
        account: Address,
        /// `ETH` or `SNO`.
        asset: &'static str,
        /// What it has.
        balance: U256,
        /// What it needs.
        needed: U256,
    },
    /// The call can wait, and the day's budget for gas has no room for it.
    #[error(
        "the budget for gas is {budget} wei a day, {spent} were paid in the last 24 hours and this costs up to {cost}: it waits for room; --gas-budget raises it"
    )]
    OverBudget {
        /// Most that is paid in 24 hours, wei.
        budget: U256,
        /// What was paid, wei.
        spent: U256,
        /// What the call costs at most, wei; 0 where it was not asked.
        cost: U256,
    },
    /// The transaction was not mined in time although its fee was raised. It may still be; its effect must be looked up
    /// before a retry.
    #[error("transaction {0} is not mined yet although its fee was raised")]
    Pending(B256),
    /// This node is shutting down, and has sent a transaction whose fate it did not learn.
    #[error("interrupted: transaction {0} is sent, and may still be mined")]
    Interrupted(B256),
    /// A reorganisation has undone what confirmed events told: whoever folds them begins anew.
    #[error("a reorganisation has undone block {from} and later ones: what events have told is folded anew")]
    Undone {
        /// The first block that was undone.
        from: u64,
    },
    /// Events end though this node goes on.
    #[error("the chain is not followed any more: what was logged last says why")]
    Ended,
    /// This node is shutting down.
    #[error("the node is shutting down")]
    Closed,
}

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
