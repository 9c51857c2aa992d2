//! Confirmed events remembered on disk, so that a restart reads the chain from where it stopped, and several roles of a
//! process read it once.
//!
//! A role folds its view of the world from all events. [`Remembered`] asks the chain for what came since those it has
//! on disk: one JSON line an event, written before any role sees it. Roles read that file, each at its own pace. How
//! far the chain was read is written there, too, so that a restart does not read quiet stretches again; a line torn by
//! a kill is cut off.
//!
//! A start looks at each line once, and holds none. From time to time it forgets what nobody needs any more
//! ([`Thrift`]): then roles hear of stakes by their sums, and of jobs that were settled long ago nothing, unless they
//! are this node's own.
//!
//! A reorganisation of confirmed blocks, at any depth, takes their events out of the file, and ends what roles read of
//! it: [`Chain::ended`] then says [`ChainError::Undone`], and a role folds all events anew. Nothing that was folded
//! from what is undone is left. How often that happened is written in the file's heading, by which a role that was
//! killed in between finds out at its next start ([`crate::undone`]).

mod forget;
mod log;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};
use tokio::sync::{Mutex, mpsc};

pub use self::forget::Thrift;
use self::log::{LogReader, LogWriter, Scanned, Written};
use crate::blocking;
use crate::ports::chain::{
    Call, Chain, ChainError, Deployment, EventAt, Head, JobView, LaneView, Mark, Mined, News, Parameters, Receipt,
    RedeemedView, Role, Seed, StakeView,
};

/// Wait between two attempts at a full disk.
const ROOM: Duration = Duration::from_secs(2);
/// Events between the disk or the chain and a slow role.
const QUEUE: usize = 256;
/// Blocks without an event after which it is written down how far the chain was read.
const QUIET: u64 = 64;

/// The first block that was taken back.
type Undone = Arc<StdMutex<Option<u64>>>;

fn undone(undone: &Undone) -> MutexGuard<'_, Option<u64>> {
    undone.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the events of a deployment are remembered.
fn path(deployment: &Deployment, folder: &Path) -> PathBuf {
    let Deployment { chain_id, jobs, .. } = deployment;
    folder.join(format!("events-{chain_id}-{jobs}.jsonl"))
}

/// The oldest event of a deployment that is remembered in `folder`: which chain they are of, its block tells.
///
/// # Errors
/// When the file cannot be read.
pub fn oldest(deployment: &Deployment, folder: &Path) -> io::Result<Option<EventAt>> {
    log::first(&path(deployment, folder))
}

/// A chain whose confirmed events are remembered on disk. Everything else passes through.
pub struct Remembered {
    chain: Arc<dyn Chain>,
    path: PathBuf,
    /// What those read who follow the chain now. Held while that begins.
    written: Mutex<Weak<Written>>,
    /// The first block that a reorganisation took back, where that is why it has ended.
    undone: Undone,
    thrift: Thrift,
}

impl Remembered {
    /// Remembers the events of `chain` in `folder`, in a file of their own for each deployment.
    pub fn new(chain: Arc<dyn Chain>, folder: &Path) -> Self {
        Self::with(chain, folder, Thrift::default())
    }

    /// The same, with another thrift.
    pub fn with(chain: Arc<dyn Chain>, folder: &Path, thrift: Thrift) -> Self {
        let path = path(chain.deployment(), folder);
        Self { chain, path, written: Mutex::default(), undone: Arc::default(), thrift }
    }

    /// Follows the chain from what is remembered on, into the file, as long as somebody reads that.
    async fn follow(&self) -> Result<Arc<Written>, ChainError> {
        let (file, thrift) = (self.path.clone(), (self.chain.account(), self.thrift));
        let scanned = blocking(move || scanned(&file, thrift)).await.map_err(|error| disk(&self.path, &error))?;
        let (marks, until) = (scanned.marks.clone(), scanned.until().map_or(0, |until| until.block));
        let (writer, written) = LogWriter::open(&self.path, scanned).map_err(|error| disk(&self.path, &error))?;
        let news = self.chain.follow(marks).await?;
        *undone(&self.undone) = None;
        let (path, took_back) = (self.path.clone(), self.undone.clone());
        tokio::spawn(Keeper { writer, path, until, news: false, took_back }.keep(news));
        Ok(Arc::new(written))
    }
}

/// Looks through the file, and shortens it if that is due. A file that cannot be shortened is gone on with as it is.
fn scanned(path: &Path, (own, thrift): (Address, Thrift)) -> io::Result<Scanned> {
    let scanned = log::scan(path)?;
    if !thrift.is_due(&scanned) {
        return Ok(scanned);
    }
    match forget::forget(path, &scanned, (own, thrift)) {
        Ok(false) => Ok(scanned),
        Ok(true) => {
            let left = log::scan(path)?;
            tracing::info!(events = scanned.events, left = left.events, "what nobody needs any more is forgotten");
            Ok(left)
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the events cannot be shortened now");
            Ok(scanned)
        }
    }
}

/// Writes down what the chain tells.
struct Keeper {
    writer: LogWriter,
    path: PathBuf,
    /// Block up to which the file says that it is complete.
    until: u64,
    /// Whether it has events since.
    news: bool,
    took_back: Undone,
}

impl Keeper {
    /// Until nobody reads, the chain tells nothing more, or something is taken back.
    async fn keep(mut self, mut news: mpsc::Receiver<News>) {
        loop {
            let told = tokio::select! {
                told = news.recv() => told,
                () = self.writer.unread() => None,
            };
            let reads = match told {
                Some(News::Event(event)) => {
                    self.news = true;
                    self.insist(|keeper| keeper.writer.append(&event)).await
                }
                Some(News::Until(mark)) if self.news || mark.block >= self.until.saturating_add(QUIET) => {
                    (self.news, self.until) = (false, mark.block);
                    self.insist(|keeper| keeper.writer.complete(mark)).await
                }
                Some(News::Until(_)) => true,
                Some(News::Undone { from }) => {
                    tracing::warn!(from, "what a reorganisation has undone is taken back");
                    let taken = self.insist(|keeper| log::take_back(&keeper.path, from));
                    if taken.await {
                        *undone(&self.took_back) = Some(from);
                    }
                    return;
                }
                None => return,
            };
            if !reads {
                return;
            }
        }
    }

    /// Writes; waits as long as the disk takes nothing, and says so once. Whether anybody still reads.
    async fn insist(&mut self, mut write: impl FnMut(&mut Self) -> io::Result<()>) -> bool {
        let mut waits = false;
        while let Err(error) = write(self) {
            if !waits {
                tracing::error!(path = %self.path.display(), %error, "events wait for the disk: make room");
                waits = true;
            }
            tokio::select! {
                () = tokio::time::sleep(ROOM) => {}
                () = self.writer.unread() => return false,
            }
        }
        if waits {
            tracing::info!(path = %self.path.display(), "events are written down again");
        }
        true
    }
}

fn disk(path: &Path, error: &io::Error) -> ChainError {
    let what = match error.kind() {
        // It says what to do.
        io::ErrorKind::InvalidData => "",
        _ => "; check that the data directory is writable",
    };
    ChainError::Unavailable(format!("{}: {error}{what}", path.display()))
}

/// Tells what is read until nobody listens.
async fn tell(mut reader: LogReader, from: u64, listener: mpsc::Sender<EventAt>) -> io::Result<()> {
    loop {
        let event = tokio::select! {
            event = reader.next() => event?,
            () = listener.closed() => None,
        };
        let Some(event) = event else { return Ok(()) };
        if event.block >= from && listener.send(event).await.is_err() {
            return Ok(());
        }
    }
}

#[async_trait]
impl Chain for Remembered {
    async fn events(&self, from: u64) -> Result<mpsc::Receiver<EventAt>, ChainError> {
        let mut followed = self.written.lock().await;
        let written = match followed.upgrade().filter(|written| written.grows()) {
            Some(written) => written,
            None => self.follow().await?,
        };
        *followed = Arc::downgrade(&written);
        let reader = LogReader::open(written).map_err(|error| disk(&self.path, &error))?;
        let (sender, receiver) = mpsc::channel(QUEUE);
        let path = self.path.clone();
        tokio::spawn(async move {
            if let Err(error) = tell(reader, from, sender).await {
                tracing::error!(path = %path.display(), %error, "events cannot be read; stopping");
            }
        });
        Ok(receiver)
    }

    fn ended(&self) -> ChainError {
        undone(&self.undone).map_or_else(|| self.chain.ended(), |from| ChainError::Undone { from })
    }

    fn times_undone(&self) -> Result<u64, ChainError> {
        log::heading::times_undone(&self.path).map_err(|error| disk(&self.path, &error))
    }

    async fn follow(&self, known: Vec<Mark>) -> Result<mpsc::Receiver<News>, ChainError> {
        self.chain.follow(known).await
    }

    fn account(&self) -> Address {
        self.chain.account()
    }

    fn deployment(&self) -> &Deployment {
        self.chain.deployment()
    }

    async fn head(&self) -> Result<Head, ChainError> {
        self.chain.head().await
    }

    async fn past_events(&self, from: u64, to: u64) -> Result<Vec<EventAt>, ChainError> {
        self.chain.past_events(from, to).await
    }

    async fn send(&self, call: Call) -> Result<Receipt, ChainError> {
        self.chain.send(call).await
    }

    async fn simulate(&self, call: &Call) -> Result<u64, ChainError> {
        self.chain.simulate(call).await
    }

    async fn parameters(&self) -> Result<Parameters, ChainError> {
        self.chain.parameters().await
    }

    async fn job(&self, job: JobId) -> Result<Option<JobView>, ChainError> {
        self.chain.job(job).await
    }

    async fn job_count(&self) -> Result<u64, ChainError> {
        self.chain.job_count().await
    }

    async fn program_root(&self, job: JobId, stage: u16) -> Result<B256, ChainError> {
        self.chain.program_root(job, stage).await
    }

    async fn initial_state(&self, job: JobId, stage: u16) -> Result<B256, ChainError> {
        self.chain.initial_state(job, stage).await
    }

    async fn assignment(&self, lane: Lane) -> Result<(Address, u128), ChainError> {
        self.chain.assignment(lane).await
    }

    async fn redeemed(&self, lane: Lane) -> Result<RedeemedView, ChainError> {
        self.chain.redeemed(lane).await
    }

    async fn lane(&self, lane: Lane) -> Result<LaneView, ChainError> {
        self.chain.lane(lane).await
    }

    async fn record(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        self.chain.record(lane, interval).await
    }

    async fn seal(&self, lane: Lane, interval: u32) -> Result<B256, ChainError> {
        self.chain.seal(lane, interval).await
    }

    async fn is_too_late(&self, lane: Lane) -> Result<bool, ChainError> {
        self.chain.is_too_late(lane).await
    }

    async fn open_challenge(&self, claim: ClaimId) -> Result<Option<U256>, ChainError> {
        self.chain.open_challenge(claim).await
    }

    async fn stake(&self, account: Address, role: Role) -> Result<StakeView, ChainError> {
        self.chain.stake(account, role).await
    }

    async fn is_validator(&self, account: Address) -> Result<bool, ChainError> {
        self.chain.is_validator(account).await
    }

    async fn validator_since(&self, account: Address) -> Result<u64, ChainError> {
        self.chain.validator_since(account).await
    }

    async fn validators_before(&self, timestamp: u64) -> Result<u64, ChainError> {
        self.chain.validators_before(timestamp).await
    }

    async fn seed(&self, period: u64) -> Result<Option<Seed>, ChainError> {
        self.chain.seed(period).await
    }

    async fn balance(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        self.chain.balance(account, token).await
    }

    async fn mined(&self, transaction: B256) -> Result<Option<Mined>, ChainError> {
        self.chain.mined(transaction).await
    }

    async fn deposit_left(&self, challenge: U256) -> Result<U256, ChainError> {
        self.chain.deposit_left(challenge).await
    }

    async fn base_fee(&self) -> Result<U256, ChainError> {
        self.chain.base_fee().await
    }

    async fn gas_credit(&self, account: Address) -> Result<U256, ChainError> {
        self.chain.gas_credit(account).await
    }

    async fn credit(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        self.chain.credit(account, token).await
    }
}
