//! [`AlloyChain`]: the port, put together.

use std::sync::Arc;

use alloy::consensus::Transaction;
use alloy::eips::BlockNumberOrTag;
use alloy::primitives::B256 as Word;
use alloy::providers::Provider;
use alloy::rpc::types::TransactionReceipt;
use alloy::signers::local::PrivateKeySigner;
use async_trait::async_trait;
use serde::Deserialize;
use tensorlink_node::Identity;
use tensorlink_node::ports::chain::{
    Deployment, EventAt, Head, JobView, LaneView, Mark, Mined, News, Parameters, Receipt, RedeemedView, Role, Seed,
    StakeView,
};
use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::block::head_of;
use crate::failure::Failure;
use crate::feed::Reader;
use crate::limits::{Limits, Spending};
use crate::rpc::Rpc;
use crate::sender::{Pace, Sender};
use crate::views::Views;
use crate::{allowance, calls, deployment, event, evm, once, rpc};

/// Events that wait for a slow reader.
const EVENTS_AHEAD: usize = 256;

/// Which chain, which contracts, as whom.
#[derive(Clone, Debug)]
pub struct Config {
    /// Endpoints, `http(s)://` or `ws(s)://`, in the order in which they are preferred: the next one is asked where one
    /// fails, lags behind or is of another chain.
    pub rpc_urls: Vec<String>,
    /// The contracts.
    pub deployment: Deployment,
    /// How many blocks must follow a block before its events are told; 0 tells the newest block's.
    pub confirmations: u64,
    /// Who acts.
    pub identity: Identity,
    /// What transactions may cost.
    pub limits: Limits,
    /// Ends every wait and every feed of events.
    pub shutdown: CancellationToken,
}

/// The contracts of one deployment over JSON-RPC.
#[derive(Debug)]
pub struct AlloyChain {
    rpc: Arc<Rpc>,
    reader: Reader,
    sender: Sender,
}

impl AlloyChain {
    /// Connects, and checks that the contracts are there.
    ///
    /// # Errors
    /// [`ChainError::Unavailable`] if no endpoint answers or an address holds no contract;
    /// [`ChainError::WrongChain`] if all are of another chain than the deployment's.
    pub async fn connect(config: Config) -> Result<Self, ChainError> {
        Self::connect_at(config, Pace::default()).await
    }

    /// As [`Self::connect`], with another patience in sending.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_at(config: Config, pace: Pace) -> Result<Self, ChainError> {
        let Config { rpc_urls, deployment, confirmations, identity, limits, shutdown } = config;
        let rpc = Arc::new(Rpc::new(&rpc_urls, deployment.chain_id, pace.recheck, shutdown));
        for (name, address) in deployment::addresses(&deployment) {
            let code = rpc.ask("code", |p| async move { p.get_code_at(address).await }).await?;
            if code.is_empty() {
                return Err(ChainError::Unavailable(format!(
                    "there is no contract at {address} ({name}): deploy anew, or name the chain's file by --deployment"
                )));
            }
        }
        let signer = PrivateKeySigner::from_bytes(&Word::from(*identity.secret()))
            .map_err(|error| ChainError::Unavailable(format!("the key cannot sign: {error}")))?;
        let genesis = head_of(&rpc, BlockNumberOrTag::Number(0)).await?;
        let genesis = genesis.ok_or_else(|| ChainError::Unavailable("it has no block 0".into()))?.hash;
        rpc.settle_on(genesis);
        if rpc.has_others() {
            tokio::spawn(rpc::watch(Arc::downgrade(&rpc)));
        }
        let spending = Spending::open(limits)?;
        let sender = Sender::new(rpc.clone(), deployment.clone(), signer, pace, spending);
        let reader = Reader { rpc: rpc.clone(), deployment, confirmations, genesis };
        Ok(Self { rpc, reader, sender })
    }

    /// Hash of block 0, by which a chain is told from another of the same id.
    pub const fn genesis(&self) -> B256 {
        self.reader.genesis
    }

    /// Hash of a block, if the endpoint has it.
    ///
    /// # Errors
    /// [`ChainError::Unavailable`] if the endpoint does not answer.
    pub async fn block_hash(&self, number: u64) -> Result<Option<B256>, ChainError> {
        Ok(head_of(&self.rpc, BlockNumberOrTag::Number(number)).await?.map(|head| head.hash))
    }

    /// Timestamp of the block of a receipt: from its logs where the node writes it there.
    async fn mined_at(&self, receipt: &TransactionReceipt) -> Result<u64, Failure> {
        if let Some(timestamp) = receipt.logs().iter().find_map(|log| log.block_timestamp) {
            return Ok(timestamp);
        }
        let hash = receipt.block_hash.unwrap_or_default();
        let block = self.rpc.find("block", |p| async move { p.get_block_by_hash(hash).await }).await?;
        Ok(block.header.timestamp)
    }

    pub(crate) fn rpc(&self) -> &Rpc {
        &self.rpc
    }

    /// The newest block that is confirmed.
    pub(crate) async fn confirmed(&self) -> Result<u64, Failure> {
        self.reader.confirmed().await
    }

    /// Time of the next block, seconds: by the node, for the machine's own clock may be wrong, and where blocks are
    /// made on demand the newest is old. Nodes that tell no pending block make blocks all the time.
    async fn next_time(&self, head: Head) -> Result<u64, Failure> {
        let pending = self.rpc.ask("pending block", |provider| async move {
            provider.client().request::<_, Option<Next>>("eth_getBlockByNumber", ("pending", false)).await
        });
        let pending = match pending.await {
            Ok(block) => block.map_or(0, |block| block.timestamp.saturating_to()),
            Err(Failure::Refused(_)) => 0,
            Err(failure) => return Err(failure),
        };
        Ok(pending.max(head.timestamp.saturating_add(1)))
    }

    pub(crate) fn views(&self) -> Views<'_> {
        Views { rpc: &self.rpc, deployment: &self.reader.deployment }
    }
}

/// The block that a node would make now.
#[derive(Deserialize, Debug)]
struct Next {
    timestamp: U256,
}

#[async_trait]
impl Chain for AlloyChain {
    fn account(&self) -> Address {
        self.sender.account()
    }

    fn deployment(&self) -> &Deployment {
        &self.reader.deployment
    }

    async fn head(&self) -> Result<Head, ChainError> {
        Ok(self.reader.head().await?)
    }

    async fn events(&self, from: u64) -> Result<mpsc::Receiver<EventAt>, ChainError> {
        let ((news, told), (sender, receiver)) = (mpsc::channel(1), mpsc::channel(EVENTS_AHEAD));
        tokio::spawn(self.reader.clone().follow(from, Vec::new(), news));
        tokio::spawn(once::tell(told, sender));
        Ok(receiver)
    }

    async fn follow(&self, known: Vec<Mark>) -> Result<mpsc::Receiver<News>, ChainError> {
        let (sender, receiver) = mpsc::channel(EVENTS_AHEAD);
        tokio::spawn(self.reader.clone().follow(self.reader.deployment.block, known, sender));
        Ok(receiver)
    }

    async fn past_events(&self, from: u64, to: u64) -> Result<Vec<EventAt>, ChainError> {
        Ok(self.reader.past(from, to).await?)
    }

    async fn send(&self, call: Call) -> Result<Receipt, ChainError> {
        let head = self.reader.head().await?;
        let receipt = self.sender.send(&call, self.next_time(head).await?).await?;
        // The call has happened: whatever goes wrong from here on must not look like a call that has not.
        let unclear = |_| ChainError::Pending(receipt.transaction_hash);
        let timestamp = self.mined_at(&receipt).await.map_err(unclear)?;
        let logs = receipt.logs().iter();
        let decoded = logs.map(|log| event::decode(&self.reader.deployment, &log.inner, timestamp));
        let events = decoded.filter_map(Result::transpose).collect::<Result<_, _>>();
        let events = events.map_err(|_| ChainError::Pending(receipt.transaction_hash))?;
        Ok(Receipt {
            transaction: receipt.transaction_hash,
            block: receipt.block_number.unwrap_or_default(),
            gas: receipt.gas_used,
            events,
        })
    }

    async fn mined(&self, transaction: B256) -> Result<Option<Mined>, ChainError> {
        let receipt = self.rpc.ask("receipt", |p| async move { p.get_transaction_receipt(transaction).await }).await?;
        let Some(receipt) = receipt else { return Ok(None) };
        let sent = self.rpc.ask("transaction", |p| async move { p.get_transaction_by_hash(transaction).await }).await?;
        let proof = sent.and_then(|sent| calls::proof(&self.reader.deployment, sent.to()?, sent.input()));
        let fee = U256::from(receipt.gas_used).saturating_mul(U256::from(receipt.effective_gas_price));
        Ok(Some(Mined { sender: receipt.from, gas: receipt.gas_used, fee, proof }))
    }

    async fn simulate(&self, call: &Call) -> Result<u64, ChainError> {
        let head = self.reader.head().await?;
        let now = self.next_time(head).await?;
        let most_fee = self.sender.spending.max_fee();
        let (approval, main) = allowance::steps(self.views(), self.sender.signer(), call, now, most_fee).await?;
        let actions = approval.into_iter().chain([main]).collect();
        let base_fee = if calls::goes_by_base_fee(call) { self.views().base_fee().await? } else { U256::ZERO };
        let block = evm::Block { head, now, base_fee: base_fee.saturating_to() };
        evm::simulate(self.rpc.clone(), block, self.reader.deployment.chain_id, self.account(), actions).await
    }

    async fn parameters(&self) -> Result<Parameters, ChainError> {
        self.views().parameters().await
    }

    async fn job(&self, job: JobId) -> Result<Option<JobView>, ChainError> {
        self.views().job(job).await
    }

    async fn job_count(&self) -> Result<u64, ChainError> {
        self.views().job_count().await
    }

    async fn program_root(&self, job: JobId, stage: u16) -> Result<B256, ChainError> {
        self.views().program_root(job, stage).await
    }

    async fn initial_state(&self, job: JobId, stage: u16) -> Result<B256, ChainError> {
        self.views().initial_state(job, stage).await
    }

    async fn assignment(&self, lane: Lane) -> Result<(Address, u128), ChainError> {
        self.views().assignment(lane).await
    }

    async fn redeemed(&self, lane: Lane) -> Result<RedeemedView, ChainError> {
        self.views().redeemed(lane).await
    }

    async fn lane(&self, lane: Lane) -> Result<LaneView, ChainError> {
        self.views().lane(lane).await
    }

    async fn record(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        self.views().record(lane, interval).await
    }

    async fn seal(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        self.views().seal(lane, interval).await
    }

    async fn is_too_late(&self, lane: Lane) -> Result<bool, ChainError> {
        self.views().is_too_late(lane).await
    }

    async fn open_challenge(&self, claim: ClaimId) -> Result<Option<U256>, ChainError> {
        self.views().open_challenge(claim, self.account()).await
    }

    async fn stake(&self, account: Address, role: Role) -> Result<StakeView, ChainError> {
        self.views().stake(account, role).await
    }

    async fn is_validator(&self, account: Address) -> Result<bool, ChainError> {
        self.views().is_validator(account).await
    }

    async fn validator_since(&self, account: Address) -> Result<u64, ChainError> {
        self.views().validator_since(account).await
    }

    async fn validators_before(&self, timestamp: u64) -> Result<u64, ChainError> {
        self.views().validators_before(timestamp).await
    }

    async fn seed(&self, period: u64) -> Result<Option<Seed>, ChainError> {
        self.seed_of(period).await
    }

    async fn balance(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        self.views().balance(account, token).await
    }

    async fn deposit_left(&self, challenge: U256) -> Result<U256, ChainError> {
        self.views().deposit_left(challenge).await
    }

    async fn base_fee(&self) -> Result<U256, ChainError> {
        self.views().base_fee().await
    }

    async fn gas_credit(&self, account: Address) -> Result<U256, ChainError> {
        self.views().gas_credit(account).await
    }

    async fn credit(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        self.views().credit(account, token).await
    }
}
