//! Views of the contracts.

use alloy::eips::{BlockId, BlockNumberOrTag};
use alloy::network::TransactionBuilder;
use alloy::providers::Provider;
use alloy::rpc::types::TransactionRequest;
use alloy::sol_types::SolCall;
use tensorlink_bindings::{Beacon, Challenges, Channels, Checkpoints, Jobs, SNO, Staking};
use tensorlink_node::ports::ChainError;
use tensorlink_node::ports::chain::{
    Deployment, JobState, JobView, LaneView, Parameters, RedeemedView, Role, StakeView,
};
use tensorlink_types::abi::JobKind;
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, Lineage, U256};

use crate::calls::role_number;
use crate::parameters::seen;
use crate::rpc::Rpc;

/// States of a challenge that is not over (`IChallenges.State`).
const ASKING: u8 = 1;
const ANSWERING: u8 = 2;
const SPENT: u8 = 3;
/// Challenges among which one of ours is looked for: the latest ones of anybody.
const LATEST: usize = 64;

/// The contracts of one deployment, read at the newest block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Views<'a> {
    pub(crate) rpc: &'a Rpc,
    pub(crate) deployment: &'a Deployment,
}

impl Views<'_> {
    async fn call<C: SolCall>(&self, to: Address, call: &C) -> Result<C::Return, ChainError> {
        let request = TransactionRequest::default().with_to(to).with_input(call.abi_encode());
        let data = self
            .rpc
            .ask(C::SIGNATURE, |provider| {
                let request = request.clone();
                async move { provider.call(request).block(BlockId::latest()).await }
            })
            .await?;
        C::abi_decode_returns(&data).map_err(|error| {
            ChainError::Unavailable(format!(
                "{} at {to} answers what it cannot ({error}); check --deployment",
                C::SIGNATURE
            ))
        })
    }

    pub(crate) async fn parameters(&self) -> Result<Parameters, ChainError> {
        Ok(seen(&self.call(self.deployment.staking, &Staking::parametersCall {}).await?))
    }

    pub(crate) async fn open_challenge(&self, claim: ClaimId, challenger: Address) -> Result<Option<U256>, ChainError> {
        let mut challenge = self.call(self.deployment.challenges, &Challenges::challengeCountCall {}).await?;
        for _ in 0..LATEST {
            if challenge.is_zero() {
                break;
            }
            let found = self.call(self.deployment.challenges, &Challenges::challengeOfCall { challenge }).await?;
            let open = matches!(found.state, ASKING | ANSWERING | SPENT);
            if open && (found.claimId, found.challenger) == (claim.0, challenger) {
                return Ok(Some(challenge));
            }
            challenge = challenge.saturating_sub(U256::ONE);
        }
        Ok(None)
    }

    pub(crate) async fn job(&self, id: JobId) -> Result<Option<JobView>, ChainError> {
        let job = self.call(self.deployment.jobs, &Jobs::jobOfCall { job: id.0 }).await?;
        let state = match job.state {
            0 => return Ok(None),
            1 => JobState::Posted,
            2 => JobState::Accepted,
            3 => JobState::Running,
            4 => JobState::Closing,
            5 => JobState::Settled,
            other => return Err(ChainError::Unavailable(format!("job {id} is in the unknown state {other}"))),
        };
        let kind = JobKind::from_number(job.kind)
            .ok_or_else(|| ChainError::Unavailable(format!("job {id} is of the unknown kind {}", job.kind)))?;
        Ok(Some(JobView {
            id,
            kind,
            user: job.user,
            state,
            escrow: job.escrow,
            audit_budget: job.auditBudget,
            token: job.token,
            stages: job.stages,
            replicas: job.replicas,
            intervals: job.intervals,
            steps_per_interval: job.stepsPerInterval,
            accept_by: job.acceptBy.to(),
            duration: job.duration.to(),
            started_at: job.startedAt.to(),
            deadline: job.deadline.to(),
            challenge_window: job.challengeWindow.into(),
            worker_stake: job.workerStake,
            lineage: Lineage { key: job.jobKey.into(), first_step: job.firstStep },
            terms: job.terms,
        }))
    }

    pub(crate) async fn job_count(&self) -> Result<u64, ChainError> {
        self.call(self.deployment.jobs, &Jobs::jobCountCall {}).await
    }

    pub(crate) async fn program_root(&self, job: JobId, stage: u16) -> Result<B256, ChainError> {
        self.call(self.deployment.jobs, &Jobs::programOfCall { job: job.0, stage }).await
    }

    pub(crate) async fn initial_state(&self, job: JobId, stage: u16) -> Result<B256, ChainError> {
        self.call(self.deployment.jobs, &Jobs::initialStateOfCall { job: job.0, stage }).await
    }

    pub(crate) async fn assignment(&self, lane: Lane) -> Result<(Address, u128), ChainError> {
        let Lane { job: JobId(job), stage, replica } = lane;
        let jobs = self.deployment.jobs;
        let (worker, price) = (Jobs::workerOfCall { job, stage, replica }, Jobs::priceOfCall { job, stage, replica });
        tokio::try_join!(self.call(jobs, &worker), self.call(jobs, &price))
    }

    pub(crate) async fn redeemed(&self, lane: Lane) -> Result<RedeemedView, ChainError> {
        let Lane { job: JobId(job), stage, replica } = lane;
        let call = Channels::redeemedOfCall { job, stage, replica };
        let redeemed = self.call(self.deployment.channels, &call).await?;
        let (epoch, tokens, at) = (redeemed.epoch, redeemed.tokens, redeemed.redeemedAt);
        if epoch == 0 {
            return Ok(RedeemedView { epoch, tokens, at, record: B256::ZERO });
        }
        // Epochs are fixed once: what is asked second is of the same epoch, unless a reorganisation comes between,
        // which the next look tells.
        let record = self.call(self.deployment.channels, &Channels::epochOfCall { job, stage, replica, epoch }).await?;
        Ok(RedeemedView { epoch, tokens, at, record })
    }

    pub(crate) async fn lane(&self, lane: Lane) -> Result<LaneView, ChainError> {
        let call = Checkpoints::laneOfCall { job: lane.job.0, stage: lane.stage, replica: lane.replica };
        let state = self.call(self.deployment.checkpoints, &call).await?;
        let void_from = (state.voidFrom != u32::MAX && !state.worker.is_zero()).then_some(state.voidFrom);
        Ok(LaneView { worker: state.worker, finalized: state.finalized, void_from })
    }

    pub(crate) async fn record(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        let Lane { job: JobId(job), stage, replica } = lane;
        self.call(self.deployment.checkpoints, &Checkpoints::recordOfCall { job, stage, replica, interval }).await
    }

    pub(crate) async fn seal(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        let Lane { job: JobId(job), stage, replica } = lane;
        self.call(self.deployment.checkpoints, &Checkpoints::sealOfCall { job, stage, replica, interval }).await
    }

    pub(crate) async fn is_too_late(&self, lane: Lane) -> Result<bool, ChainError> {
        let Lane { job: JobId(job), stage, replica } = lane;
        self.call(self.deployment.checkpoints, &Checkpoints::isTooLateCall { job, stage, replica }).await
    }

    pub(crate) async fn stake(&self, account: Address, role: Role) -> Result<StakeView, ChainError> {
        let call = Staking::accountOfCall { account, role: role_number(role) };
        let balance = self.call(self.deployment.staking, &call).await?;
        Ok(StakeView {
            bonded: balance.bonded,
            unbonding: balance.unbonding,
            locked: balance.locked,
            release_at: balance.releaseAt.to(),
        })
    }

    pub(crate) async fn is_validator(&self, account: Address) -> Result<bool, ChainError> {
        self.call(self.deployment.staking, &Staking::isValidatorCall { account }).await
    }

    pub(crate) async fn validator_since(&self, account: Address) -> Result<u64, ChainError> {
        Ok(self.call(self.deployment.staking, &Staking::validatorSinceCall { account }).await?.to())
    }

    pub(crate) async fn validators_before(&self, timestamp: u64) -> Result<u64, ChainError> {
        let timestamp = U256::from(timestamp);
        let count = self.call(self.deployment.staking, &Staking::validatorCountBeforeCall { timestamp }).await?;
        Ok(count.saturating_to())
    }

    /// Seed of a period; zero if it is not recorded.
    pub(crate) async fn seed(&self, period: u64) -> Result<B256, ChainError> {
        self.call(self.deployment.beacon, &Beacon::seedOfCall { period }).await
    }

    /// Length of a period of the beacon, seconds.
    pub(crate) async fn beacon_period(&self) -> Result<u64, ChainError> {
        Ok(self.call(self.deployment.beacon, &Beacon::PERIODCall {}).await?.into())
    }

    pub(crate) async fn balance(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        if token.is_zero() {
            return Ok(self.rpc.ask("balance", |p| async move { p.get_balance(account).await }).await?);
        }
        self.call(token, &SNO::balanceOfCall { account }).await
    }

    pub(crate) async fn credit(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        self.call(self.deployment.jobs, &Jobs::creditOfCall { account, token }).await
    }

    /// What an account can collect from `Challenges`, wei of ETH.
    pub(crate) async fn gas_credit(&self, account: Address) -> Result<U256, ChainError> {
        self.call(self.deployment.challenges, &Challenges::creditOfCall { account }).await
    }

    /// How much of a challenge's deposit is left, wei of ETH.
    pub(crate) async fn deposit_left(&self, challenge: U256) -> Result<U256, ChainError> {
        let found = self.call(self.deployment.challenges, &Challenges::challengeOfCall { challenge }).await?;
        Ok(U256::from(found.deposit.saturating_sub(found.owed)))
    }

    /// Bond of the next challenge of a claim, wei of SNO.
    pub(crate) async fn bond_for(&self, job: JobId, claim: ClaimId) -> Result<U256, ChainError> {
        let call = Challenges::bondForCall { job: job.0, claimId: claim.0 };
        Ok(U256::from(self.call(self.deployment.challenges, &call).await?))
    }

    /// Base fee of the next block, wei for a unit of gas; 0 where blocks have none.
    pub(crate) async fn base_fee(&self) -> Result<U256, ChainError> {
        let history = self
            .rpc
            .ask("base fee", |p| async move { p.get_fee_history(1, BlockNumberOrTag::Latest, &[]).await })
            .await?;
        Ok(U256::from(history.next_block_base_fee().unwrap_or_default()))
    }

    /// Wei of SNO that a contract may take from an account.
    pub(crate) async fn allowance(&self, owner: Address, spender: Address) -> Result<U256, ChainError> {
        self.call(self.deployment.sno, &SNO::allowanceCall { owner, spender }).await
    }

    /// Domain of SNO's permits and the account's permit nonce.
    pub(crate) async fn permit(&self, owner: Address) -> Result<(SNO::eip712DomainReturn, U256), ChainError> {
        let sno = self.deployment.sno;
        let (domain, nonce) = (SNO::eip712DomainCall {}, SNO::noncesCall { owner });
        tokio::try_join!(self.call(sno, &domain), self.call(sno, &nonce))
    }
}
