//! A chain in memory: one job, and every block is the latest.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tensorlink_node::interval::state_root_of;
use tensorlink_node::ports::chain::*;
use tensorlink_node::ports::*;
use tensorlink_node::serving::ServingShard;
use tensorlink_node::shard::Shard;
use tensorlink_proof::commit::{ProgramCommitment, record_hash};
use tensorlink_types::abi::Claim;
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};
use tokio::sync::mpsc;

use super::ledger::Ledger;
use super::{SEAL_WINDOW, USER, WINDOW, lane};

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
        let deployment = Deployment::nowhere(31_337);
        let id = job.id;
        let lane_of = |(stage, worker): (usize, &Address)| {
            (Lane { job: id, ..lane(stage as u16) }, LaneView { worker: *worker, finalized: 0, void_from: None })
        };
        let ledger = Ledger {
            job,
            now: 200,
            lanes: workers.iter().enumerate().map(lane_of).collect(),
            claims: BTreeMap::new(),
            seals: BTreeMap::new(),
            workers: workers.to_vec(),
            stakes: HashMap::new(),
            roots,
            sent: Vec::new(),
            lose_receipt: false,
            challenged: None,
            open_challenge: None,
            deposit_left: U256::ZERO,
            base_fee: U256::ZERO,
            redeemed: BTreeMap::new(),
            told: None,
            undone: 0,
            held_back: 0,
            follows: false,
            feeds: 0,
        };
        Arc::new(Self { ledger: Arc::new(Mutex::new(ledger)), deployment })
    }

    pub fn with<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> T {
        change(&mut self.ledger.lock().unwrap())
    }
}

/// Tells news as a node does: what is known or was sent, and is not told any more, is undone.
async fn follow_news(ledger: Arc<Mutex<Ledger>>, known: Vec<Mark>, news: mpsc::Sender<News>) {
    let look = || {
        let ledger = ledger.lock().unwrap();
        (ledger.told.clone().unwrap_or_default(), ledger.follows)
    };
    let (told, _) = look();
    let is_there = |mark: &Mark| told.iter().any(|at| (at.block, at.block_hash) == (mark.block, mark.hash));
    let common = known.iter().rposition(is_there);
    let from = common.map_or(0, |place| known[place].block + 1);
    if common.map_or(0, |place| place + 1) < known.len() && news.send(News::Undone { from }).await.is_err() {
        return;
    }
    let mut sent: Vec<EventAt> = told.into_iter().filter(|at| at.block < from).collect();
    loop {
        let (told, follows) = look();
        let same = sent.iter().zip(&told).take_while(|(sent, told)| sent == told).count();
        if let Some(first) = sent.get(same) {
            let from = first.block;
            sent.retain(|at| at.block < from);
            if news.send(News::Undone { from }).await.is_err() {
                return;
            }
            continue;
        }
        let Some(event) = told.get(sent.len()) else {
            if !follows || news.is_closed() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        };
        sent.push(event.clone());
        let until = News::Until(Mark { block: event.block, hash: event.block_hash });
        let is_last = told.get(sent.len()).is_none_or(|next| next.block > event.block);
        if news.send(News::Event(Box::new(event.clone()))).await.is_err()
            || (is_last && news.send(until).await.is_err())
        {
            return;
        }
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

#[async_trait]
impl Chain for MemoryChain {
    fn times_undone(&self) -> Result<u64, ChainError> {
        Ok(self.with(|ledger| ledger.undone))
    }

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
        self.with(|l| l.feeds += 1);
        let (sender, receiver) = mpsc::channel(16);
        if self.with(|l| l.told.is_none() && !l.follows) {
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

    async fn follow(&self, known: Vec<Mark>) -> Result<mpsc::Receiver<News>, ChainError> {
        self.with(|l| l.feeds += 1);
        let (sender, receiver) = mpsc::channel(16);
        if self.with(|l| l.told.is_none() && !l.follows) {
            tokio::spawn(async move { sender.closed().await });
        } else {
            tokio::spawn(follow_news(self.ledger.clone(), known, sender));
        }
        Ok(receiver)
    }

    async fn past_events(&self, from: u64, to: u64) -> Result<Vec<EventAt>, ChainError> {
        let told = self.with(|l| l.told.clone()).unwrap_or_default();
        Ok(told.into_iter().filter(|at| (from..=to).contains(&at.block)).collect())
    }

    async fn send(&self, call: Call) -> Result<Receipt, ChainError> {
        let held = |ledger: &mut Ledger| {
            let rest = ledger.held_back.checked_sub(1);
            ledger.held_back = rest.unwrap_or_default();
            rest.is_some()
        };
        if !call.averts_loss() && self.with(held) {
            return Err(ChainError::OverBudget { budget: U256::ZERO, spent: U256::ZERO, cost: U256::ZERO });
        }
        let events = self.with(|ledger| ledger.take(call))?;
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
            beacon_period: 1,
            ..Parameters::default()
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

    async fn open_challenge(&self, claim: ClaimId) -> Result<Option<U256>, ChainError> {
        Ok(self.with(|l| l.open_challenge.filter(|(on, _)| *on == claim).map(|(_, challenge)| challenge)))
    }

    async fn stake(&self, account: Address, _: Role) -> Result<StakeView, ChainError> {
        let bonded = self.with(|l| l.stakes.get(&account).copied()).unwrap_or(100);
        Ok(StakeView { bonded, ..StakeView::default() })
    }

    async fn is_validator(&self, _: Address) -> Result<bool, ChainError> {
        Ok(true)
    }

    async fn validator_since(&self, _: Address) -> Result<u64, ChainError> {
        Ok(1)
    }

    async fn validators_before(&self, _: u64) -> Result<u64, ChainError> {
        Ok(1)
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

    async fn deposit_left(&self, _: U256) -> Result<U256, ChainError> {
        Ok(self.with(|l| l.deposit_left))
    }

    async fn base_fee(&self) -> Result<U256, ChainError> {
        Ok(self.with(|l| l.base_fee))
    }

    async fn gas_credit(&self, _: Address) -> Result<U256, ChainError> {
        Ok(U256::ZERO)
    }

    async fn credit(&self, _: Address, _: Address) -> Result<U256, ChainError> {
        Ok(U256::ZERO)
    }
}
