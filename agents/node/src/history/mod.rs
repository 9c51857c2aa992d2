//! Confirmed events remembered on disk, so that a restart reads the chain from where it stopped, and several roles of a
//! process read it once.
//!
//! A role folds its view of the world from all events. [`Remembered`] asks the chain for what came since those it has
//! on disk: one JSON line an event, written before any role sees it. Roles read that file, each at its own pace. A line
//! torn by a kill is cut off; lines of blocks that are no longer on the chain are dropped before anything is told.

mod log;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tensorlink_types::{Address, B256, ClaimId, JobId, Lane, U256};
use tokio::sync::{Mutex, mpsc};

use self::log::{LogReader, LogWriter, Written};
use crate::ports::chain::{
    Call, Chain, ChainError, Deployment, EventAt, Head, JobView, LaneView, Mined, Parameters, Receipt, RedeemedView,
    Role, Seed, StakeView,
};

/// Wait between two attempts at a full disk.
const ROOM: Duration = Duration::from_secs(2);
/// Events between the disk or the chain and a slow role.
const QUEUE: usize = 256;

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
}

impl Remembered {
    /// Remembers the events of `chain` in `folder`, in a file of their own for each deployment.
    pub fn new(chain: Arc<dyn Chain>, folder: &Path) -> Self {
        let path = path(chain.deployment(), folder);
        Self { chain, path, written: Mutex::default() }
    }

    /// Follows the chain from what is remembered on, into the file, as long as somebody reads that.
    async fn follow(&self) -> Result<Arc<Written>, ChainError> {
        let remembered = log::read(&self.path).map_err(|error| disk(&self.path, &error))?;
        let remembered = self.canonical(remembered).await?;
        let last = remembered.last().map(EventAt::place);
        let (mut writer, written) =
            LogWriter::create(&self.path, &remembered).map_err(|error| disk(&self.path, &error))?;
        let from = last.map_or(self.chain.deployment().block, |(block, _)| block);
        let mut fresh = self.chain.events(from).await?;
        let path = self.path.clone();
        tokio::spawn(async move {
            loop {
                let event = tokio::select! {
                    event = fresh.recv() => event,
                    () = writer.unread() => None,
                };
                let Some(event) = event else { return };
                if last.is_some_and(|last| event.place() <= last) {
                    continue;
                }
                if !remember(&mut writer, &event, &path).await {
                    return;
                }
            }
        });
        Ok(Arc::new(written))
    }

    /// Drops remembered events of blocks that are not on the chain any more, and returns the rest.
    async fn canonical(&self, mut events: Vec<EventAt>) -> Result<Vec<EventAt>, ChainError> {
        while let Some(last) = events.last() {
            let block = last.block;
            let from = events.partition_point(|at| at.block < block);
            let now = self.chain.past_events(block, block).await?;
            // Of the last block some events may not have been told yet.
            let remembered = events.get(from..).unwrap_or_default();
            if now.len() >= remembered.len() && now.iter().zip(remembered).all(|(now, then)| now == then) {
                return Ok(events);
            }
            tracing::warn!(block, "remembered events are of a block that is not on the chain any more");
            events.truncate(from);
        }
        Ok(events)
    }
}

/// Writes an event down; waits as long as the disk takes none, and says so once. Whether anybody still reads.
async fn remember(writer: &mut LogWriter, event: &EventAt, path: &Path) -> bool {
    let mut waits = false;
    while let Err(error) = writer.append(event) {
        if !waits {
            tracing::error!(path = %path.display(), %error, "events wait for the disk: make room");
            waits = true;
        }
        tokio::select! {
            () = tokio::time::sleep(ROOM) => {}
            () = writer.unread() => return false,
        }
    }
    if waits {
        tracing::info!(path = %path.display(), "events are written down again");
    }
    true
}

fn disk(path: &Path, error: &io::Error) -> ChainError {
    ChainError::Unavailable(format!("{}: {error}; check that the data directory is writable", path.display()))
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

    async fn validators(&self, account: Address) -> Result<(u64, u64), ChainError> {
        self.chain.validators(account).await
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

    async fn credit(&self, account: Address, token: Address) -> Result<U256, ChainError> {
        self.chain.credit(account, token).await
    }
}
