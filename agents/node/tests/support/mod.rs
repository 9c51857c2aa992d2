//! In-memory doubles of the ports, and a small job to run on them. Shared by the tests of the roles.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "every test binary uses its own part")]

pub mod serving;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cid::Cid;
use cid::multihash::Multihash;
use tensorlink_graph::calibrate::{calibrate, float_state};
use tensorlink_graph::{CheckedProgram, Margins, Model, Table, compile, init};
use tensorlink_node::files;
use tensorlink_node::interval::state_root_of;
use tensorlink_node::ports::chain::*;
use tensorlink_node::ports::*;
use tensorlink_node::serving::ServingShard;
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::manifest::{MANIFEST_VERSION, Manifest, StageFiles, TrainingFiles};
use tensorlink_node::{Identity, Journal};
use tensorlink_proof::commit::{
    Contracts, ProgramCommitment, epoch_record, record_hash, recover, seal, tensor_root, verify_signer,
};
use tensorlink_types::abi::{Claim, JobKind, Voucher};
use tensorlink_types::{Address, B256, JobId, JobKey, Lane, U256, keccak256};
use tokio::sync::mpsc;

pub const JOB: JobId = JobId(1);
pub const USER: Address = Address::repeat_byte(0x55);
pub const KEY: JobKey = JobKey(B256::repeat_byte(0x77));
pub const WINDOW: u64 = 10;
pub const SEAL_WINDOW: u64 = 20;
pub const STEPS: u32 = 2;
pub const CONTRACTS: Contracts = Contracts {
    chain_id: 31_337,
    jobs: Address::repeat_byte(1),
    checkpoints: Address::repeat_byte(2),
    channels: Address::repeat_byte(4),
    disputes: Address::repeat_byte(3),
    custody: Address::repeat_byte(5),
};

pub fn identity(n: u8) -> Identity {
    Identity::new(&[n; 32]).unwrap()
}

pub fn lane(stage: u16) -> Lane {
    Lane { job: JOB, stage, replica: 0 }
}

pub fn job_view(stages: u16, intervals: u32) -> JobView {
    JobView {
        id: JOB,
        kind: JobKind::Training,
        user: USER,
        state: JobState::Running,
        escrow: 1 << 60,
        audit_budget: 0,
        token: Address::ZERO,
        stages,
        replicas: 1,
        intervals,
        steps_per_interval: STEPS,
        accept_by: 50,
        duration: 1000,
        started_at: 100,
        deadline: 1100,
        challenge_window: WINDOW,
        worker_stake: 10,
        lineage: KEY.into(),
    }
}

/// A trained-from-nothing network of three layers in `stages` stages.
pub fn shards(stages: usize) -> Vec<Arc<Shard>> {
    let csv: String =
        (0..24).map(|i| format!("{},{},{},{}\n", i % 5, (i * 7) % 11, i, ["a", "b", "c"][i % 3])).collect();
    let json = r#"{"name": "test", "layers": [{"kind": "linear", "out": 6}, {"kind": "relu"}, {"kind": "linear", "out": 5},
        {"kind": "relu"}], "optimizer": {"learning_rate": 0.05, "momentum": 0.9}, "batch_size": 4, "micro_batches": 2,
        "steps": 10, "operand_bits": 16, "seed": 7}"#;
    let model = Model::parse("test.json", json.as_bytes()).unwrap();
    let table = Table::parse(csv.as_bytes()).unwrap();
    let data = table.split(model.operand_bits(), model.seed()).unwrap();
    let network = model.network(table.width as u32, data.classes.len() as u32).unwrap();
    let weights = init::gaussian(&network, model.seed());
    let margins = Margins::for_operands(model.operand_bits());
    let exponents = calibrate(&network, &weights, &data.training, 5, model.seed(), margins).unwrap().exponents;
    let last = network.layers.len();
    let ranges: Vec<_> = (0..stages).map(|s| if s + 1 == stages { s..last } else { s..s + 1 }).collect();
    let compiled = compile(&network, &exponents, &data.training, &ranges, tensor_root).unwrap();
    let shard = |stage: tensorlink_graph::CompiledStage| Shard {
        initial_state: init::state(&stage.program, &float_state(&weights)).unwrap().into(),
        program: Arc::new(CheckedProgram::new(stage.program).unwrap()),
        constants: stage.constants.into(),
        info: stage.info,
    };
    compiled.into_iter().map(|stage| Arc::new(shard(stage))).collect()
}

/// Files by the Keccak hash of their content.
#[derive(Default)]
pub struct MemoryStore {
    here: Mutex<HashMap<Cid, Bytes>>,
    /// With peers.
    elsewhere: Mutex<HashMap<Cid, Bytes>>,
}

fn cid_of(content: &[u8]) -> Cid {
    let hash = Multihash::<64>::wrap(0x1b, keccak256(content).as_slice()).unwrap();
    Cid::new_v1(0x55, hash)
}

impl MemoryStore {
    /// A file that peers have.
    pub fn elsewhere(&self, content: Bytes) -> Cid {
        let cid = cid_of(&content);
        self.elsewhere.lock().unwrap().insert(cid, content);
        cid
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn put(&self, content: Bytes) -> Result<Cid, StoreError> {
        let cid = cid_of(&content);
        self.here.lock().unwrap().insert(cid, content);
        Ok(cid)
    }

    async fn get(&self, cid: &Cid, _: &[Address], limit: u64) -> Result<Bytes, StoreError> {
        let here = self.here.lock().unwrap().get(cid).cloned();
        let content = here.or_else(|| self.elsewhere.lock().unwrap().get(cid).cloned());
        let content = content.ok_or(StoreError::NotFound(*cid))?;
        if content.len() as u64 > limit {
            return Err(StoreError::TooLarge { cid: *cid, limit });
        }
        self.here.lock().unwrap().insert(*cid, content.clone());
        Ok(content)
    }

    async fn has(&self, cid: &Cid) -> Result<bool, StoreError> {
        Ok(self.here.lock().unwrap().contains_key(cid))
    }

    async fn unpin(&self, cid: &Cid) -> Result<(), StoreError> {
        // All nodes of a test share the store: others have it still.
        let dropped = self.here.lock().unwrap().remove(cid);
        self.elsewhere.lock().unwrap().extend(dropped.map(|content| (*cid, content)));
        Ok(())
    }
}

/// Puts the shards' files into a store; their manifest.
pub async fn publish(store: &MemoryStore, shards: &[Arc<Shard>]) -> (Cid, Manifest) {
    let mut stages = Vec::new();
    for shard in shards {
        let mut constants = Vec::new();
        for constant in shard.constants.iter() {
            constants.push(store.put(constant.to_bytes().into()).await.unwrap().to_string());
        }
        let program = encode("program", &**shard.program).unwrap();
        stages.push(StageFiles::Training(TrainingFiles {
            program: store.put(program).await.unwrap().to_string(),
            state: store.put(files::join(shard.initial_state.iter()).into()).await.unwrap().to_string(),
            constants,
            notes: store.put(encode("notes", &shard.info).unwrap()).await.unwrap().to_string(),
        }));
    }
    let manifest = Manifest { version: MANIFEST_VERSION, name: "test".into(), stages };
    (store.put(serde_json::to_vec(&manifest).unwrap().into()).await.unwrap(), manifest)
}

type Streams = mpsc::Sender<(Address, Box<dyn Duplex>)>;

/// Joins the nets of several nodes.
#[derive(Default)]
pub struct Hub {
    requests: Mutex<HashMap<Address, mpsc::Sender<Incoming>>>,
    streams: Mutex<HashMap<Address, Streams>>,
}

pub struct MemoryNet {
    pub own: Address,
    pub hub: Arc<Hub>,
}

#[async_trait]
impl Net for MemoryNet {
    fn address(&self) -> Address {
        self.own
    }

    async fn request(&self, peer: Address, _: Protocol, body: Bytes) -> Result<Bytes, NetError> {
        let to = self.hub.requests.lock().unwrap().get(&peer).cloned().ok_or(NetError::Unknown(peer))?;
        let (reply, answer) = tokio::sync::oneshot::channel();
        to.send(Incoming { peer: self.own, body, reply }).await.map_err(|_| NetError::Unknown(peer))?;
        answer.await.map_err(|_| NetError::Unreachable { peer, reason: "no answer".into() })
    }

    async fn serve(&self, _: Protocol) -> Result<mpsc::Receiver<Incoming>, NetError> {
        let (sender, receiver) = mpsc::channel(16);
        self.hub.requests.lock().unwrap().insert(self.own, sender);
        Ok(receiver)
    }

    async fn open(&self, peer: Address, _: Protocol) -> Result<Box<dyn Duplex>, NetError> {
        let to = self.hub.streams.lock().unwrap().get(&peer).cloned().ok_or(NetError::Unknown(peer))?;
        let (ours, theirs) = tokio::io::duplex(4096);
        to.send((self.own, Box::new(theirs))).await.map_err(|_| NetError::Unknown(peer))?;
        Ok(Box::new(ours))
    }

    async fn accept(&self, _: Protocol) -> Result<mpsc::Receiver<(Address, Box<dyn Duplex>)>, NetError> {
        let (sender, receiver) = mpsc::channel(16);
        self.hub.streams.lock().unwrap().insert(self.own, sender);
        Ok(receiver)
    }

    async fn publish(&self, _: &'static str, _: Bytes) -> Result<(), NetError> {
        Ok(())
    }

    async fn subscribe(&self, _: &'static str) -> Result<mpsc::Receiver<(Address, Bytes)>, NetError> {
        let (sender, receiver) = mpsc::channel(16);
        // Silence, not an end.
        tokio::spawn(async move { sender.closed().await });
        Ok(receiver)
    }

    fn set_gate(&self, _: Arc<dyn Gate>) {}

    fn bytes_moved(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// The world of the node with this key, its records in `folder`.
pub fn ports(key: u8, chain: Arc<MemoryChain>, store: Arc<MemoryStore>, hub: Arc<Hub>, folder: &Path) -> Ports {
    let identity = identity(key);
    let net = Arc::new(MemoryNet { own: identity.address(), hub });
    let journal = Journal::open(folder).unwrap();
    let (clock, pins) = (Arc::new(SystemClock), Arc::default());
    Ports { identity, chain, net, store, clock, contracts: CONTRACTS, journal, pins }
}

/// What a [`MemoryChain`] holds.
pub struct Ledger {
    pub job: JobView,
    pub now: u64,
    pub lanes: HashMap<Lane, LaneView>,
    /// Of replica 0.
    pub claims: BTreeMap<(u16, u32), (Claim, u64)>,
    /// By stage, interval and replica; when they were made.
    pub seals: BTreeMap<(u16, u32, u16), (B256, u64)>,
    pub workers: Vec<Address>,
    pub roots: Vec<(B256, B256)>,
    pub sent: Vec<&'static str>,
    /// Of the first lane: the interval whose claim a challenge holds back.
    pub challenged: Option<u32>,
    /// The next commit is mined and its receipt lost.
    pub lose_receipt: bool,
    /// What lanes have redeemed: the last voucher of each, and when.
    pub redeemed: BTreeMap<Lane, (Voucher, u64)>,
    /// Confirmed events, which end with the last of them; without these the chain is silent, and does not end.
    pub told: Option<Vec<EventAt>>,
    /// Whether events go on: what calls cause is told, too.
    pub follows: bool,
}

/// One job on a chain of which every block is the latest.
pub struct MemoryChain {
    pub ledger: Arc<Mutex<Ledger>>,
    deployment: Deployment,
}

impl MemoryChain {
    pub fn new(job: JobView, workers: &[Address], shards: &[Arc<Shard>]) -> Arc<Self> {
        let root = |shard: &Arc<Shard>| {
            (ProgramCommitment::new(&shard.program).unwrap().root(), state_root_of(&shard.initial_state))
        };
        Self::with_roots(job, workers, shards.iter().map(root).collect())
    }

    /// A chain with a serving job.
    pub fn serving(job: JobView, workers: &[Address], shards: &[Arc<ServingShard>]) -> Arc<Self> {
        Self::with_roots(job, workers, shards.iter().map(|shard| (shard.programs.root(), B256::ZERO)).collect())
    }

    fn with_roots(job: JobView, workers: &[Address], roots: Vec<(B256, B256)>) -> Arc<Self> {
        let zero = Address::ZERO;
        let deployment = Deployment {
            chain_id: 31_337,
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
        };
        let lane_of = |(stage, worker): (usize, &Address)| {
            (lane(stage as u16), LaneView { worker: *worker, finalized: 0, void_from: None })
        };
        let ledger = Ledger {
            job,
            now: 200,
            lanes: workers.iter().enumerate().map(lane_of).collect(),
            claims: BTreeMap::new(),
            seals: BTreeMap::new(),
            workers: workers.to_vec(),
            roots,
            sent: Vec::new(),
            lose_receipt: false,
            challenged: None,
            redeemed: BTreeMap::new(),
            told: None,
            follows: false,
        };
        Arc::new(Self { ledger: Arc::new(Mutex::new(ledger)), deployment })
    }

    pub fn with<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> T {
        change(&mut self.ledger.lock().unwrap())
    }
}

impl Ledger {
    fn redeemed_of(&self, lane: Lane) -> RedeemedView {
        let view = |(v, at): &(Voucher, u64)| RedeemedView {
            epoch: v.epoch,
            tokens: v.tokens,
            at: *at,
            record: epoch_record(v.receipts, *at),
        };
        self.redeemed.get(&lane).map(view).unwrap_or_default()
    }

    /// When the first of a round was made.
    pub fn first_seal(&self, stage: u16, interval: u32) -> Option<u64> {
        self.seals.iter().filter(|((s, n, _), _)| (*s, *n) == (stage, interval)).map(|(_, (_, at))| *at).min()
    }

    /// Whether nobody can seal any more; the replicas here either seal everything or nothing.
    fn seals_are_in(&self, stage: u16, interval: u32) -> bool {
        let seals = self.seals.keys().filter(|(s, n, _)| (*s, *n) == (stage, interval)).count();
        let over = self.first_seal(stage, interval).is_some_and(|first| self.now >= first + SEAL_WINDOW);
        seals == usize::from(self.job.replicas) || over || self.job.state == JobState::Closing
    }

    /// Tells an event, in a block of its own.
    pub fn tell(&mut self, event: Event) {
        let (timestamp, told) = (self.now, self.told.get_or_insert_default());
        let block = told.len() as u64;
        let (block_hash, transaction) = (B256::ZERO, B256::ZERO);
        told.push(EventAt { block, block_hash, timestamp, log_index: 0, transaction, event });
    }
}

/// Sends events as they are told.
async fn follow(ledger: Arc<Mutex<Ledger>>, events: mpsc::Sender<EventAt>) {
    let mut next = 0;
    loop {
        let event = ledger.lock().unwrap().told.as_ref().and_then(|told| told.get(next).cloned());
        match event {
            Some(event) => match events.send(event).await {
                Ok(()) => next += 1,
                Err(_) => return,
            },
            None if events.is_closed() => return,
            None => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

fn refused(name: &str) -> ChainError {
    ChainError::Reverted { name: name.into(), arguments: String::new() }
}

#[async_trait]
impl Chain for MemoryChain {
    fn account(&self) -> Address {
        USER
    }

    fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    async fn head(&self) -> Result<Head, ChainError> {
        Ok(Head { number: 1, hash: B256::ZERO, timestamp: self.with(|l| l.now) })
    }

    async fn events(&self, from: u64) -> Result<mpsc::Receiver<EventAt>, ChainError> {
        let (sender, receiver) = mpsc::channel(16);
        if self.with(|l| l.told.is_none()) {
            tokio::spawn(async move { sender.closed().await });
            return Ok(receiver);
        }
        if self.with(|l| l.follows) {
            tokio::spawn(follow(self.ledger.clone(), sender));
            return Ok(receiver);
        }
        for event in self.past_events(from, u64::MAX).await? {
            sender.try_send(event).unwrap();
        }
        Ok(receiver)
    }

    async fn past_events(&self, from: u64, to: u64) -> Result<Vec<EventAt>, ChainError> {
        let told = self.with(|l| l.told.clone()).unwrap_or_default();
        Ok(told.into_iter().filter(|at| (from..=to).contains(&at.block)).collect())
    }

    async fn send(&self, call: Call) -> Result<Receipt, ChainError> {
        let mut ledger = self.ledger.lock().unwrap();
        let ledger = &mut *ledger;
        let mut events = Vec::new();
        let salt = if let Call::Reveal { salt, .. } = &call { Some(*salt) } else { None };
        match call {
            Call::Seal { lane, interval, seal } => {
                ledger.sent.push("seal");
                let (at, first) = ((lane.stage, interval, lane.replica), ledger.first_seal(lane.stage, interval));
                if ledger.job.state != JobState::Running {
                    return Err(refused("JobNotOpen"));
                }
                if ledger.seals.contains_key(&at) {
                    return Err(refused("AlreadySealed"));
                }
                if interval > 0 && !ledger.seals.contains_key(&(lane.stage, interval - 1, lane.replica)) {
                    return Err(refused("NotTheNextClaim"));
                }
                if first.is_some_and(|first| ledger.now >= first + SEAL_WINDOW) {
                    return Err(refused("SealingOver"));
                }
                ledger.now += 1;
                ledger.seals.insert(at, (seal, ledger.now));
                if std::mem::take(&mut ledger.lose_receipt) {
                    return Err(ChainError::Pending(B256::ZERO));
                }
                events.push(Event::ClaimSealed { lane, interval, seal, sealed_at: ledger.now });
            }
            Call::Commit { claim, previous } | Call::Reveal { claim, previous, .. } => {
                if let Some(salt) = salt {
                    ledger.sent.push("reveal");
                    let sealed = ledger.seals.get(&(claim.stage, claim.interval, claim.replica));
                    if sealed.is_none_or(|(sealed, _)| *sealed != seal(CONTRACTS.claim_id(&claim), salt)) {
                        return Err(refused("WrongSeal"));
                    }
                    if !ledger.seals_are_in(claim.stage, claim.interval) {
                        return Err(refused("SealingOpen"));
                    }
                } else {
                    ledger.sent.push("commit");
                }
                let at = (claim.stage, claim.interval);
                let before = claim.interval.checked_sub(1).map(|n| ledger.claims.get(&(claim.stage, n)));
                if ledger.claims.contains_key(&at) {
                    return Err(refused("ClaimExists"));
                }
                if before.is_some_and(|b| b.is_none_or(|(_, at)| *at != previous.committedAt)) {
                    return Err(refused("WrongLink"));
                }
                ledger.now += 1;
                ledger.claims.insert(at, (claim.clone(), ledger.now));
                if std::mem::take(&mut ledger.lose_receipt) {
                    return Err(ChainError::Pending(B256::ZERO));
                }
                events.push(Event::ClaimCommitted { id: CONTRACTS.claim_id(&claim), claim, committed_at: ledger.now });
            }
            Call::Finalize { claims, holder } => {
                ledger.sent.push("finalize");
                let held = !holder.signature.is_empty();
                if let Some((last, _)) = claims.last().filter(|_| held) {
                    let signer = recover(&holder.signature, CONTRACTS.holding(CONTRACTS.claim_id(last)));
                    let at = Lane { job: JobId(last.job), stage: holder.stage, replica: holder.replica };
                    let other = ledger.lanes.get(&at).map(|lane| lane.worker).filter(|_| at != last.lane());
                    if !signer.is_ok_and(|signer| signer == ledger.job.user || other == Some(signer)) {
                        return Err(refused("WrongHolder"));
                    }
                }
                if claims.iter().any(|(claim, _)| ledger.challenged == Some(claim.interval)) {
                    return Err(refused("Challenged"));
                }
                let window = if held { WINDOW } else { 2 * WINDOW };
                for (claim, at) in claims {
                    let known = ledger.claims.get(&(claim.stage, claim.interval));
                    if known != Some(&(claim.clone(), at)) || at + window > ledger.now {
                        return Err(refused("WindowOpen"));
                    }
                    ledger.lanes.get_mut(&claim.lane()).unwrap().finalized = claim.interval + 1;
                }
            }
            Call::Redeem { voucher, signature } => {
                ledger.sent.push("redeem");
                verify_signer(&signature, CONTRACTS.voucher(&voucher), ledger.job.user)
                    .map_err(|_| refused("BadSignature"))?;
                if !matches!(ledger.job.state, JobState::Running | JobState::Closing) {
                    return Err(refused("JobNotOpen"));
                }
                let (stage, replica) = (voucher.stage, voucher.replica);
                let lane = Lane { job: JobId(voucher.job), stage, replica };
                if ledger.job.state == JobState::Closing && ledger.now >= ledger.job.deadline {
                    return Err(refused("RedemptionOver"));
                }
                let last = ledger.redeemed_of(lane);
                if voucher.epoch != last.epoch + 1 {
                    return Err(refused("NotTheNextEpoch"));
                }
                if voucher.before != last.tokens {
                    return Err(refused("NotPaidBefore"));
                }
                if voucher.tokens < last.tokens || voucher.tokens > ledger.job.intervals {
                    return Err(refused("TokensOutOfRange"));
                }
                let (epoch, tokens, receipts) = (voucher.epoch, voucher.tokens, voucher.receipts);
                events.push(Event::VoucherRedeemed { lane, epoch, tokens, receipts });
                ledger.redeemed.insert(lane, (voucher, ledger.now));
            }
            Call::Cancel { .. } => {
                ledger.sent.push("cancel");
                ledger.job.state = JobState::Closing;
                if ledger.job.kind == JobKind::Serving {
                    ledger.job.deadline = ledger.now + WINDOW;
                    events.push(Event::JobClosing { job: JOB, convicted: false });
                }
            }
            Call::Settle { .. } if ledger.job.kind == JobKind::Serving => {
                ledger.sent.push("settle");
                let last = ledger.redeemed.values().map(|(_, at)| at + WINDOW).max().unwrap_or_default();
                if ledger.job.state != JobState::Closing || ledger.now < ledger.job.deadline.max(last) {
                    return Err(refused("WindowOpen"));
                }
                ledger.job.state = JobState::Settled;
                events.push(Event::JobSettled { job: JOB, refund: U256::ZERO });
            }
            _ => ledger.sent.push("other"),
        }
        if ledger.follows {
            events.iter().cloned().for_each(|event| ledger.tell(event));
        }
        Ok(Receipt { transaction: B256::ZERO, block: 1, gas: 1, events })
    }

    async fn simulate(&self, _: &Call) -> Result<u64, ChainError> {
        Ok(1)
    }

    async fn parameters(&self) -> Result<Parameters, ChainError> {
        Ok(Parameters {
            unbonding_delay: 100,
            validator_collateral: 1,
            dispute_clock: 10,
            move_grace: 1,
            move_blocks: 1,
            dispute_bond: 1,
            min_challenge_window: 1,
            max_challenge_window: WINDOW,
            seal_window: SEAL_WINDOW,
            bounty_bps: 5_000,
            harm_bps: 3_000,
            min_stake_intervals: 0,
            audits_per_claim_bps: 0,
            audit_fee_bps: 0,
            audit_penalty_bps: 0,
            beacon_period: 1,
        })
    }

    async fn job(&self, job: JobId) -> Result<Option<JobView>, ChainError> {
        Ok(self.with(|l| (l.job.id == job).then(|| l.job.clone())))
    }

    async fn job_count(&self) -> Result<u64, ChainError> {
        Ok(1)
    }

    async fn program_root(&self, _: JobId, stage: u16) -> Result<B256, ChainError> {
        Ok(self.with(|l| l.roots[usize::from(stage)].0))
    }

    async fn initial_state(&self, _: JobId, stage: u16) -> Result<B256, ChainError> {
        Ok(self.with(|l| l.roots[usize::from(stage)].1))
    }

    async fn assignment(&self, lane: Lane) -> Result<(Address, u128), ChainError> {
        // In the order of lanes.
        let place = |stages: u16| usize::from(lane.replica) * usize::from(stages) + usize::from(lane.stage);
        Ok((self.with(|l| l.workers[place(l.job.stages)]), 1))
    }

    async fn redeemed(&self, lane: Lane) -> Result<RedeemedView, ChainError> {
        Ok(self.with(|l| l.redeemed_of(lane)))
    }

    async fn lane(&self, lane: Lane) -> Result<LaneView, ChainError> {
        Ok(self.with(|l| l.lanes[&lane]))
    }

    async fn record(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        // As if another claim had taken the place of each as soon as it is final.
        let waits = |l: &Ledger| l.lanes.get(&lane).is_some_and(|view| interval >= view.finalized);
        let record = |(claim, at): &(Claim, u64)| record_hash(claim, *at);
        let found = |l: &mut Ledger| waits(l).then(|| l.claims.get(&(lane.stage, interval)).map(record)).flatten();
        Ok(self.with(|l| found(l).unwrap_or_default()))
    }

    async fn seal(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        let at = (lane.stage, interval, lane.replica);
        Ok(self.with(|l| l.seals.get(&at).map(|(seal, _)| *seal).unwrap_or_default()))
    }

    async fn is_too_late(&self, _: Lane) -> Result<bool, ChainError> {
        Ok(false)
    }

    async fn stake(&self, _: Address, _: Role) -> Result<StakeView, ChainError> {
        Ok(StakeView { bonded: 100, ..StakeView::default() })
    }

    async fn is_validator(&self, _: Address) -> Result<bool, ChainError> {
        Ok(true)
    }

    async fn validators(&self, _: Address) -> Result<(u64, u64), ChainError> {
        Ok((1, 1))
    }

    async fn seed(&self, _: u64) -> Result<Option<Seed>, ChainError> {
        Ok(None)
    }

    async fn balance(&self, _: Address, _: Address) -> Result<U256, ChainError> {
        Ok(U256::ZERO)
    }

    async fn mined(&self, _: B256) -> Result<Option<Mined>, ChainError> {
        Ok(None)
    }

    async fn credit(&self, _: Address, _: Address) -> Result<U256, ChainError> {
        Ok(U256::ZERO)
    }
}
