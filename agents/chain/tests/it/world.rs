//! A chain of its own for every test, with the contracts on it, and a job to act on.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alloy::network::{Ethereum, TransactionBuilder};
use alloy::node_bindings::{Anvil, AnvilInstance};
use alloy::primitives::aliases::U40;
use alloy::primitives::utils::parse_ether;
use alloy::providers::{Provider, RootProvider};
use alloy::rpc::types::TransactionRequest;
use tempfile::TempDir;
use tensorlink_bindings::Creation;
use tensorlink_bindings::creation::Parameters;
use tensorlink_chain::chain::{AlloyChain, Config};
use tensorlink_chain::deployment::created;
use tensorlink_chain::local::LocalChain;
use tensorlink_chain::{Limits, Pace};
use tensorlink_node::Identity;
use tensorlink_node::ports::chain::{Deployment, Event, EventAt, Receipt, Role};
use tensorlink_node::ports::{Call, Chain};
use tensorlink_proof::commit::digest::Contracts;
use tensorlink_types::abi::{Claim, ClaimLink, JobKind, JobTerms, Offer};
use tensorlink_types::{Address, B256, Bytes, JobId, U256};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Accounts of anvil: who posts jobs, who works on them, who has nothing to do with them.
pub(crate) const USER: usize = 1;
pub(crate) const WORKER: usize = 2;
pub(crate) const OTHER: usize = 0;
/// Seconds.
pub(crate) const WINDOW: u32 = 30;
/// Steps of an interval.
pub(crate) const STEPS: u32 = 2;
/// Wei for a claim or a token.
pub(crate) const PRICE: u128 = 1_000;

pub(crate) const QUICK: Pace = Pace {
    poll: Duration::from_millis(20),
    bump_after: Duration::from_millis(600),
    bumps: 5,
    recheck: Duration::from_millis(300),
};

pub(crate) fn sno(amount: &str) -> U256 {
    parse_ether(amount).unwrap()
}

pub(crate) struct World {
    pub(crate) anvil: AnvilInstance,
    pub(crate) deployment: Deployment,
    pub(crate) provider: RootProvider<Ethereum>,
    pub(crate) shutdown: CancellationToken,
    state: TempDir,
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    /// A chain whose clock is so many seconds behind the machine's.
    pub(crate) async fn behind(seconds: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        Self::with(&["--timestamp".to_owned(), (now - seconds).to_string()]).await
    }

    async fn with(arguments: &[String]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let anvil = start(state.path(), arguments);
        let provider = RootProvider::new_http(anvil.endpoint_url());
        let deployment = deploy(&provider, anvil.addresses()).await;
        Self { anvil, deployment, provider, shutdown: CancellationToken::new(), state }
    }

    /// Another node of this chain, which has its blocks up to now and hears of no more.
    pub(crate) fn laggard(&self) -> AnvilInstance {
        anvil().fork(self.anvil.endpoint()).spawn()
    }

    /// A node of another chain.
    pub(crate) fn foreign() -> AnvilInstance {
        anvil().chain_id(5).spawn()
    }

    /// Ends anvil and starts it again on another port, with the state it had.
    pub(crate) fn restart(&mut self) {
        let process = self.anvil.child().id().to_string();
        assert!(Command::new("kill").arg(process).status().unwrap().success());
        self.anvil.child_mut().wait().unwrap();
        self.anvil = start(self.state.path(), &[]);
        self.provider = RootProvider::new_http(self.anvil.endpoint_url());
    }

    pub(crate) fn identity(&self, account: usize) -> Identity {
        Identity::new(&self.anvil.keys()[account].to_bytes().into()).unwrap()
    }

    pub(crate) fn address(&self, account: usize) -> Address {
        self.anvil.addresses()[account]
    }

    pub(crate) fn config(&self, account: usize, rpc_url: String, confirmations: u64) -> Config {
        Config {
            rpc_urls: vec![rpc_url],
            deployment: self.deployment.clone(),
            confirmations,
            identity: self.identity(account),
            limits: Limits::default(),
            shutdown: self.shutdown.clone(),
        }
    }

    /// As an account, over HTTP, without waiting for confirmations.
    pub(crate) async fn chain(&self, account: usize) -> AlloyChain {
        self.chain_at(account, self.anvil.endpoint(), 0).await
    }

    pub(crate) async fn chain_at(&self, account: usize, rpc_url: String, confirmations: u64) -> AlloyChain {
        AlloyChain::connect_at(self.config(account, rpc_url, confirmations), QUICK).await.unwrap()
    }

    pub(crate) fn terms(&self, now: u64) -> JobTerms {
        JobTerms {
            kind: JobKind::Training as u8,
            token: Address::ZERO,
            stages: 1,
            replicas: 1,
            intervals: 4,
            stepsPerInterval: STEPS,
            acceptBy: U40::from(now + 3_600),
            duration: U40::from(7_200),
            challengeWindow: WINDOW,
            workerStake: sno("10").to(),
            continues: 0,
            firstStep: 0,
            programs: vec![B256::repeat_byte(1)],
            initialStates: vec![B256::repeat_byte(2)],
            manifest: Bytes::from_static(b"cid"),
        }
    }

    /// Terms of a serving job: texts of up to 5 tokens, and up to 40 tokens in all.
    pub(crate) fn serving_terms(&self, now: u64) -> JobTerms {
        JobTerms {
            kind: JobKind::Serving as u8,
            intervals: 40,
            stepsPerInterval: 5,
            initialStates: vec![],
            ..self.terms(now)
        }
    }

    /// A job of one lane, running, whose worker has its stake.
    pub(crate) async fn running_job(&self, user: &AlloyChain, worker: &AlloyChain) -> JobId {
        let now = user.head().await.unwrap().timestamp;
        self.running_job_of(user, worker, self.terms(now), U256::from(4_000)).await
    }

    /// As [`Self::running_job`], of other terms; a unit costs [`PRICE`].
    pub(crate) async fn running_job_of(
        &self,
        user: &AlloyChain,
        worker: &AlloyChain,
        terms: JobTerms,
        deposit: U256,
    ) -> JobId {
        worker.send(Call::Stake { role: Role::Worker, amount: sno("50") }).await.unwrap();
        let now = user.head().await.unwrap().timestamp;
        let named = terms.hash_of(user.account());
        let posted = user.send(Call::Post { terms, deposit }).await.unwrap();
        let [Event::JobPosted { job, .. }] = &posted.events[..] else { panic!("{:?}", posted.events) };
        let offer = Offer {
            job: job.0,
            terms: named,
            stage: 0,
            replica: 0,
            worker: worker.account(),
            pricePerInterval: PRICE,
            expires: U40::from(now + 3_600),
        };
        let signature = self.identity(WORKER).sign(self.contracts().offer(&offer)).unwrap();
        let signatures = vec![Bytes::copy_from_slice(&signature)];
        user.send(Call::Accept { job: *job, offers: vec![offer], signatures }).await.unwrap();
        user.send(Call::Start { job: *job }).await.unwrap();
        *job
    }

    pub(crate) fn contracts(&self) -> Contracts {
        self.deployment.contracts()
    }

    /// Lets time pass, in a block.
    pub(crate) async fn wait(&self, seconds: u64) {
        let client = self.provider.client();
        client.request::<_, serde_json::Value>("evm_increaseTime", (seconds,)).await.unwrap();
        client.request::<_, serde_json::Value>("evm_mine", ()).await.unwrap();
    }

    pub(crate) async fn mine(&self, blocks: u64) {
        let () = self.provider.client().request("anvil_mine", (blocks,)).await.unwrap();
    }

    /// A block in which a unit of gas costs at least so many gwei.
    pub(crate) async fn dear_block(&self, gwei: u64) {
        let fee = U256::from(gwei) * U256::from(1_000_000_000u64);
        let () = self.provider.client().request("anvil_setNextBlockBaseFeePerGas", (fee,)).await.unwrap();
        self.mine(1).await;
    }

    pub(crate) async fn automine(&self, on: bool) {
        let () = self.provider.client().request("anvil_setAutomine", (on,)).await.unwrap();
    }

    /// Transactions that wait to be mined.
    pub(crate) async fn pending(&self) -> u64 {
        let pool: serde_json::Value = self.provider.client().request("txpool_status", ()).await.unwrap();
        let pending: alloy::primitives::U64 = serde_json::from_value(pool["pending"].clone()).unwrap();
        pending.to()
    }

    /// Replaces the last blocks by as many empty ones.
    pub(crate) async fn reorg(&self, depth: u64) {
        let () = self.provider.client().request("anvil_reorg", (depth, Vec::<()>::new())).await.unwrap();
    }
}

/// Claim `interval` of the job's only lane; each starts where the one before ended.
pub(crate) fn claim(job: JobId, interval: u8) -> Claim {
    let state = |n: u8| if n == 0 { B256::repeat_byte(2) } else { B256::repeat_byte(0x40 + n) };
    Claim {
        job: job.0,
        stage: 0,
        replica: 0,
        interval: interval.into(),
        parentState: state(interval),
        newState: state(interval + 1),
        io: B256::repeat_byte(0x80 + interval),
    }
}

/// What a claim has to know of the one before it.
pub(crate) fn link(previous: &Claim, committed_at: u64) -> ClaimLink {
    ClaimLink { parentState: previous.parentState, io: previous.io, committedAt: committed_at }
}

/// The first claim needs no link.
pub(crate) fn first_link() -> ClaimLink {
    ClaimLink { parentState: B256::ZERO, io: B256::ZERO, committedAt: 0 }
}

pub(crate) async fn commit_first(worker: &AlloyChain, job: JobId) -> (Claim, u64, Receipt) {
    let claim = claim(job, 0);
    let receipt = worker.send(Call::Commit { claim: claim.clone(), previous: first_link() }).await.unwrap();
    let [Event::ClaimCommitted { committed_at, .. }] = receipt.events[..] else { panic!("{:?}", receipt.events) };
    (claim, committed_at, receipt)
}

/// The next events, which must come within seconds.
pub(crate) async fn take(events: &mut mpsc::Receiver<EventAt>, count: usize) -> Vec<EventAt> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let next = tokio::time::timeout(Duration::from_secs(20), events.recv()).await;
        let next = next.unwrap_or_else(|_| panic!("only {} of {count} events came: {taken:#?}", taken.len()));
        taken.push(next.expect("the feed ended"));
    }
    taken
}

/// Nothing comes for a while.
pub(crate) async fn nothing(events: &mut mpsc::Receiver<EventAt>) {
    if let Ok(event) = tokio::time::timeout(Duration::from_millis(1_500), events.recv()).await {
        panic!("an event too many: {event:?}");
    }
}

fn start(state: &Path, arguments: &[String]) -> AnvilInstance {
    anvil().arg("--state").arg(state.join("state.json")).args(arguments).spawn()
}

fn anvil() -> Anvil {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../node_modules/.bin/anvil");
    assert!(path.exists(), "there is no anvil: run script/setup");
    Anvil::at(path).prague().port(0u16)
}

async fn deploy(provider: &RootProvider<Ethereum>, accounts: &[Address]) -> Deployment {
    let from = accounts[OTHER];
    let parameters = Parameters {
        unbondingDelay: U40::from(310),
        validatorCollateral: sno("1000").to(),
        disputeClock: 10,
        maxChallengeWindow: 110,
        sealWindow: 5,
        minStakeIntervals: 0,
        auditsPerClaimBps: 0,
        auditPenaltyBps: 50,
        ..LocalChain::parameters().unwrap()
    };
    let creation = Creation::new(from, 0, &parameters, &accounts[..3]);
    for code in &creation.code {
        let request =
            TransactionRequest::default().with_from(from).with_deploy_code(code.clone()).with_gas_limit(20_000_000);
        let sent = *provider.send_transaction(request).await.unwrap().tx_hash();
        let receipt = loop {
            if let Some(receipt) = provider.get_transaction_receipt(sent).await.unwrap() {
                break receipt;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        assert!(receipt.status(), "a contract cannot be deployed");
    }
    let chain_id = provider.get_chain_id().await.unwrap();
    created(&creation, chain_id)
}
