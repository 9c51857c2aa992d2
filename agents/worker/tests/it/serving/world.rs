//! Workers of a serving job of two stages, and its user, in memory.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use tensorlink_model::{StageRunner, tokens};
use tensorlink_node::budget::Budget;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{Clock, Event, Net, Protocol, SystemClock};
use tensorlink_node::price::Prices;
use tensorlink_node::serving::ServingShard;
use tensorlink_node::wire::rpc::{Advance, Receipt, Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_node::{Identity, Roster, Speed};
use tensorlink_num::Tensor;
use tensorlink_program::Reference;
use tensorlink_proof::commit::{receipt_list, verify_signer};
use tensorlink_types::abi::{JobTerms, Offer, Voucher};
use tensorlink_types::{Address, ClaimId, U256};
use tensorlink_worker::{Context, Limits, Worker, WorkerConfig};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::support::serving::{LONGEST, TOKENS, publish_serving, serving_shards, serving_view, user};
use crate::support::{CONTRACTS, Hub, JOB, KEY, MemoryChain, MemoryNet, MemoryStore, WINDOW, identity, lane, ports};

/// A clock whose waits are short.
pub(crate) struct Hasty;

#[async_trait]
impl Clock for Hasty {
    fn now(&self) -> u64 {
        SystemClock.now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration.min(Duration::from_millis(20))).await;
    }
}

pub(crate) struct World {
    pub(crate) shards: Vec<Arc<ServingShard>>,
    pub(crate) chain: Arc<MemoryChain>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) folders: Vec<tempfile::TempDir>,
    pub(crate) credit: Option<u32>,
    pub(crate) hub: Arc<Hub>,
}

/// A worker's process.
pub(crate) struct Process {
    stop: CancellationToken,
    thread: JoinHandle<()>,
}

impl Process {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::task::spawn_blocking(|| self.thread.join()).await.unwrap().unwrap();
    }
}

pub(crate) fn address(stage: u16) -> Address {
    identity(stage as u8 + 1).address()
}

impl World {
    /// A job that has started.
    pub(crate) async fn new() -> Self {
        Self::of(serving_shards()).await
    }

    /// A job of two stages that has started.
    pub(crate) async fn of(shards: Vec<Arc<ServingShard>>) -> Self {
        let store = Arc::new(MemoryStore::default());
        let (manifest, _) = publish_serving(&store, &shards).await;
        let chain = MemoryChain::serving(serving_view(2), &[address(0), address(1)], &shards);
        let terms = JobTerms {
            kind: 1,
            stages: 2,
            replicas: 1,
            intervals: TOKENS,
            stepsPerInterval: LONGEST,
            challengeWindow: WINDOW as u32,
            workerStake: 1,
            manifest: manifest.to_bytes().into(),
            ..JobTerms::default()
        };
        let expires = Default::default();
        let offer =
            |stage| Offer { job: 1, stage, worker: address(stage), pricePerInterval: 1, expires, ..Offer::default() };
        chain.with(|ledger| {
            ledger.follows = true;
            ledger.tell(Event::JobPosted { job: JOB, user: user().address(), deposit: U256::ZERO, terms });
            ledger.tell(Event::JobAccepted { job: JOB, offers: vec![offer(0), offer(1)] });
            ledger.tell(Event::JobStarted { job: JOB, job_key: KEY, deadline: 1100 });
        });
        let folders = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
        Self { shards, chain, store, folders, credit: None, hub: Arc::default() }
    }

    /// Starts the worker of a stage on the disk that an earlier one left, and waits until it serves.
    pub(crate) async fn start(&self, stage: u16) -> Process {
        let folder = self.folders[usize::from(stage)].path();
        let mut ports = ports(stage as u8 + 1, self.chain.clone(), self.store.clone(), self.hub.clone(), folder);
        ports.clock = Arc::new(Hasty);
        let credit = self.credit;
        let context = Arc::new(Context {
            ports,
            config: WorkerConfig {
                memory: Budget::new(1 << 30),
                max_lanes: 1,
                speed: Speed::LEAST,
                prices: Prices { sno: 1, eth: None },
                limits: Limits { stake: 100, ..Limits::NONE },
                in_use: watch::channel(false).1,
                credit,
            },
            engine: Arc::new(|| Ok(Reference)),
            roster: Arc::new(Roster::new(address(stage))),
            stream_router: Default::default(),
        });
        let stop = CancellationToken::new();
        let shutdown = stop.clone();
        let thread = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(Worker::run(context, shutdown)).unwrap();
        });
        let process = Process { stop, thread };
        let forget = Request::Abandon { lane: lane(stage), text: u32::MAX };
        let serves = || async {
            let open = self.chain.with(|ledger| ledger.job.state != JobState::Settled);
            !open || matches!(self.try_ask(user(), stage, &forget).await, Some(Response::Done))
        };
        until(serves).await;
        process
    }

    async fn try_ask(&self, who: Identity, stage: u16, request: &Request) -> Option<Response> {
        let net = MemoryNet { own: who.address(), hub: self.hub.clone() };
        let answer = net.request(address(stage), Protocol::Rpc, encode("request", request).unwrap()).await.ok()?;
        Some(decode("response", &answer).unwrap())
    }

    pub(crate) async fn ask_as(&self, who: Identity, stage: u16, request: Request) -> Response {
        self.try_ask(who, stage, &request).await.unwrap()
    }

    pub(crate) async fn ask(&self, stage: u16, request: Request) -> Response {
        self.ask_as(user(), stage, request).await
    }

    pub(crate) async fn advance(
        &self,
        stage: u16,
        (text, position): (u32, u32),
        rows: Vec<u8>,
        last: bool,
    ) -> Response {
        let lane = lane(stage);
        self.ask(stage, Request::Advance(Advance { lane, text, position, inputs: vec![rows], last })).await
    }

    /// Sends a whole text through one stage.
    pub(crate) async fn stage(&self, stage: u16, text: u32, input: &Tensor) -> (Receipt, Vec<u8>) {
        match self.advance(stage, (text, 0), input.to_bytes(), true).await {
            Response::Advanced { output, receipt: Some(receipt) } => {
                let id = CONTRACTS.claim_id(&receipt.claim).0;
                verify_signer(&receipt.signature, id, address(stage)).unwrap();
                (receipt, output)
            }
            other => panic!("{other:?}"),
        }
    }

    /// What a stage computes.
    pub(crate) fn computed(&self, stage: u16, input: &Tensor) -> Tensor {
        let shard = &self.shards[usize::from(stage)];
        StageRunner::new(Reference, (*shard.plan).clone(), &shard.constants).unwrap().run(input).unwrap()
    }

    pub(crate) async fn pay(&self, stage: u16, voucher: Voucher) -> Response {
        let signature = user().sign(CONTRACTS.voucher(&voucher)).unwrap().to_vec();
        self.ask(stage, Request::Pay { voucher, signature }).await
    }
}

pub(crate) fn ids(receipts: &[Receipt]) -> Vec<ClaimId> {
    receipts.iter().map(|receipt| CONTRACTS.claim_id(&receipt.claim)).collect()
}

/// A voucher of the first epoch, or of a later one that begins at no tokens.
pub(crate) fn voucher(stage: u16, epoch: u32, tokens: u32, receipts: &[Receipt]) -> Voucher {
    let receipts = receipt_list(&ids(receipts)).root();
    Voucher { job: JOB.0, stage, replica: 0, epoch, before: 0, tokens, receipts }
}

/// A voucher of an epoch that begins at `before` tokens.
pub(crate) fn next(stage: u16, epoch: u32, (before, tokens): (u32, u32), receipts: &[Receipt]) -> Voucher {
    Voucher { before, ..voucher(stage, epoch, tokens, receipts) }
}

/// A text of three tokens.
pub(crate) fn text(first: u32) -> Tensor {
    tokens(&[first, 7, 19]).unwrap()
}

pub(crate) async fn until<F: Future<Output = bool>>(mut done: impl FnMut() -> F) {
    let waiting = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it does not come to pass");
}
