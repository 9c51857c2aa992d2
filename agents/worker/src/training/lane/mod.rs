//! Works on one lane: connects to the neighbours, executes interval after interval, writes each to disk, hands it to
//! the chain.
//!
//! An interval is written to disk while the next one is computed, and is on it before anything about the next one
//! is signed.
//!
//! The unit of recovery is the interval. Whatever fails, all stages of the replica meet again, agree on the first
//! interval that one of them has not finished, and compute it (again): the arithmetic is exact, so it comes out
//! the same.

mod archive;
mod compute;
mod error;
mod halting;
mod report;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tensorlink_node::ports::Protocol;
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::frame::Hello;
use tensorlink_program::engine::Engine;
use tensorlink_program::executor::StageExecutor;
use tensorlink_types::{Address, Lane, TensorType};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::archive::{Archive, Finished};
pub use self::error::LaneError;
use self::error::{Interruption, Stop};
use self::report::Reporter;
use super::boundary::{Neighbour, Neighbours};
use super::link::{Link, LinkError, agree_on_interval};
use super::metrics::observed;
use crate::context::Context;
use crate::evidence::awaited::{Awaited, Side};
use crate::record::{LaneLog, LaneRecord};
use crate::stream_router::Visitors;

/// Intervals on disk ahead of the chain, beside the one that is computed; bounds what a stuck chain makes us do unpaid.
const LEAD: usize = 8;
/// Intervals sealed ahead of their revealing: a replica that delays it makes the others keep no more than these, and
/// all of them can be revealed when the job ends.
const SEALED_LEAD: usize = 64;
/// Waits between attempts to meet the neighbours: the first, and the longest.
const MEET: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));
/// Longest wait for the previous stage to come.
const VISIT: Duration = Duration::from_secs(20);

/// A lane that is being worked on.
pub struct LaneTask<E: Engine> {
    /// Shared parts.
    pub context: Arc<Context<E>>,
    /// The job as the chain has it; running.
    pub job: JobView,
    /// The record on disk.
    pub log: Arc<LaneLog>,
    /// The shard.
    pub shard: Arc<Shard>,
    /// Workers of the previous and the next stage.
    pub neighbours: (Option<Address>, Option<Address>),
    /// For whom it waits.
    pub awaited: Arc<Awaited>,
}

/// An executor and the interval it stands before; none when it has to be made anew.
type At<E> = Option<(StageExecutor<E>, u32)>;

impl<E: Engine + Send + 'static> LaneTask<E>
where
    E::Tensor: Send + 'static,
{
    /// Runs until every interval is computed or `stop`; one that exceeds a bound of the job is the last that is
    /// computed, and then it is `stop` that ends it.
    ///
    /// # Errors
    /// [`LaneError`] when this node cannot go on; what is finished is on disk.
    pub async fn run(self, stop: CancellationToken) -> Result<(), LaneError> {
        let lane = self.lane();
        let mut visitors = self.neighbours.0.map(|previous| self.context.stream_router.register(lane, previous));
        let mut at: At<E> = None;
        let (ports, steps) = (self.context.ports.clone(), self.job.steps_per_interval);
        let mut reporter = Reporter::new(ports, self.log.clone(), steps);
        let mut wait = MEET.0;
        let result = loop {
            // Wakes the thread that computes when this loop is left.
            let links = CancellationToken::new();
            let _guard = links.clone().drop_guard();
            let over = tokio::select! {
                () = stop.cancelled() => true,
                over = self.is_over() => over,
            };
            if over {
                break Ok(());
            }
            let before = self.log.get().next;
            let stopped = tokio::select! {
                () = stop.cancelled() => break Ok(()),
                stopped = self.meet_and_work(visitors.as_mut(), &links, &mut at, &mut reporter) => stopped,
            };
            let interruption = match stopped {
                Ok(()) => break Ok(()),
                Err(Stop::Fatal(error)) => break Err(error),
                Err(Stop::Again(interruption)) => interruption,
            };
            match &interruption {
                Interruption::Disk(error) => tracing::error!(%lane, %error, "the lane waits for the disk"),
                interruption => tracing::info!(%lane, %interruption, "the replica meets again"),
            }
            wait = if self.log.get().next > before { MEET.0 } else { (wait * 2).min(MEET.1) };
            tokio::select! {
                () = stop.cancelled() => break Ok(()),
                () = self.context.ports.clock.sleep(wait) => {}
            }
        };
        self.context.stream_router.unregister(lane);
        result
    }

    fn lane(&self) -> Lane {
        self.log.get().lane
    }

    fn archive(&self) -> Archive {
        let ports = self.context.ports.clone();
        Archive { ports, job: self.job.clone(), log: self.log.clone(), shard: self.shard.clone() }
    }

    /// Whether everything is computed, and nobody beside this lane has to repeat anything with it: who has claimed the
    /// last interval has it on disk, and may have left.
    async fn is_over(&self) -> bool {
        let (record, intervals) = (self.log.get(), self.job.intervals);
        if record.next < intervals {
            return false;
        }
        let previous = self.neighbours.0.and(record.lane.stage.checked_sub(1));
        let next = self.neighbours.1.and(record.lane.stage.checked_add(1));
        for stage in previous.into_iter().chain(next) {
            let lane = Lane { stage, ..record.lane };
            match self.context.ports.chain.is_committed(lane, intervals.saturating_sub(1)).await {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => {
                    tracing::debug!(%lane, %error, "its last claim cannot be looked up");
                    return false;
                }
            }
        }
        true
    }

    async fn meet_and_work(
        &self,
        visitors: Option<&mut Visitors>,
        links: &CancellationToken,
        at: &mut At<E>,
        reporter: &mut Reporter,
    ) -> Result<(), Stop> {
        let archive = self.archive();
        let micro_batches = self.shard.program.micro_batches;
        let (mut neighbours, agreed) = self.meet(visitors, links).await?;
        if !self.log.get().can_resume(agreed) {
            return Err(Interruption::LongDone(agreed).into());
        }
        if let Some(halt) = self.log.get().halted_before(agreed) {
            return Err(halting::halt(&halt, (&mut neighbours, micro_batches), reporter).await.into());
        }
        let mut executor = match at.take() {
            Some((executor, interval)) if interval == agreed => executor,
            _ => self.executor(&archive, agreed).await?,
        };
        let mut before: Option<Finished> = None;
        for interval in agreed..self.job.intervals {
            let computing = async {
                self.wait_for_chain().await;
                let stage = (&self.job, self.lane().stage, self.shard.as_ref());
                (Instant::now(), compute::compute(stage, executor, neighbours, interval).await)
            };
            let keeping = async {
                match before.take() {
                    Some(before) => archive.keep(before).await,
                    None => Ok(()),
                }
            };
            let ((started, computed), kept) = tokio::join!(computing, keeping);
            let (result, mut measured);
            (executor, neighbours, result, measured) = computed;
            kept?;
            let (outcome, signatures);
            let (parties, signed) = ((self.log.clone(), &self.context.ports), (interval, result?));
            (neighbours, outcome, signatures) = compute::exchange(parties, neighbours, signed, &mut measured).await?;
            let (hashing, readings) = (outcome.hashing, measured.readings());
            let finished = Finished { interval, outcome, signatures, readings };
            // Nothing comes after these that it could be written beside.
            let is_last = self.log.get().halt(&self.shard.bounds, readings).is_some();
            if interval + 1 == self.job.intervals || is_last {
                archive.keep(finished).await?;
            } else {
                before = Some(finished);
            }
            reporter.add(&measured, hashing + measured.signing, started.elapsed());
            reporter.publish(interval + 1).await;
            if let Some(halt) = self.log.get().halted_before(interval + 1) {
                // Its memory is another's now.
                drop(executor);
                return Err(halting::halt(&halt, (&mut neighbours, micro_batches), reporter).await.into());
            }
        }
        *at = Some((executor, self.job.intervals));
        // Nobody leaves before all have the last interval on disk: who has not may need the others to repeat it.
        let agreed = self.agree(&mut neighbours).await?;
        if agreed == self.job.intervals { Ok(()) } else { Err(Interruption::Behind(agreed).into()) }
    }

    async fn agree(&self, neighbours: &mut Neighbours) -> Result<u32, LinkError> {
        let previous = neighbours.previous.as_mut().map(|n| &mut n.link);
        let next = neighbours.next.as_mut().map(|n| &mut n.link);
        let agreed = agree_on_interval(self.hello(), previous, next, |side| self.waits_for(side)).await?;
        self.awaited.pause(Instant::now());
        Ok(agreed)
    }

    fn waits_for(&self, side: Side) {
        self.awaited.begin(side, Instant::now());
    }

    fn hello(&self) -> Hello {
        let record = self.log.get();
        let Lane { job, stage, replica } = record.lane;
        Hello { job, replica, stage, next_interval: record.next }
    }

    /// Opens or accepts the streams to the neighbours and agrees on the interval to begin with.
    async fn meet(
        &self,
        visitors: Option<&mut Visitors>,
        links: &CancellationToken,
    ) -> Result<(Neighbours, u32), Interruption> {
        let mut neighbours = Neighbours { awaited: self.awaited.clone(), ..Neighbours::default() };
        if let Some(address) = self.neighbours.1 {
            self.waits_for(Side::Next);
            let stream = self.context.ports.net.open(address, Protocol::Tensor).await?;
            let link = Link::new(stream, tensor_limit(&self.shard.program.from_next), links);
            link.send_hello(self.hello()).await?;
            neighbours.next = Some(Neighbour { address, link });
        }
        if let Some(visitors) = visitors {
            self.waits_for(Side::Previous);
            let visitor = timeout(VISIT, visitors.next()).await.map_err(|_| Interruption::NoVisit(VISIT))?;
            let link = Link::new(visitor.stream, tensor_limit(&self.shard.program.from_previous), links);
            neighbours.previous = Some(Neighbour { address: visitor.peer, link });
        }
        let agreed = self.agree(&mut neighbours).await?;
        Ok((neighbours, agreed))
    }

    /// An executor that stands before `interval`.
    async fn executor(&self, archive: &Archive, interval: u32) -> Result<StageExecutor<E>, LaneError> {
        let state = archive.state_before(interval).await?;
        let program = self.shard.program.as_ref().clone();
        let observed = observed(&self.shard.info);
        let engine = (self.context.engine)()?;
        Ok(StageExecutor::new(engine, program, &self.shard.constants, &state, self.job.lineage, observed)?)
    }

    /// Holds back while too many finished intervals wait for the chain to have a claim or a seal of them.
    async fn wait_for_chain(&self) {
        let mut changes = self.log.watch();
        let far = |record: &LaneRecord| record.unsealed() >= LEAD || record.uncommitted() >= SEALED_LEAD;
        while far(&self.log.get()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Bytes of the largest tensor that a neighbour sends.
fn tensor_limit(types: &[TensorType]) -> usize {
    types.iter().map(|ty| ty.byte_len() as usize).max().unwrap_or(0)
}
