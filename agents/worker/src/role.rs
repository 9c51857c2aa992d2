//! A worker, and its loop: it listens to the chain, advertises, answers, and keeps one set of tasks per lane.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cid::Cid;
use tensorlink_model::CacheEngine;
use tensorlink_node::ports::chain::{JobState, JobView, Parameters};
use tensorlink_node::ports::{ChainError, Protocol};
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::gossip::{WORKERS, WorkerAdvert};
use tensorlink_node::{Games, Keeper};
use tensorlink_types::abi::JobKind;
use tensorlink_types::{B256, JobId, Lane};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::audit_answers::Replays;
use crate::auditors::Accused;
use crate::awaited::Awaited;
use crate::context::Context;
use crate::demands::Demands;
use crate::error::WorkerError;
use crate::lost::{Lost, QUIET};
use crate::past::Past;
use crate::places::Places;
use crate::promises::Promises;
use crate::record::{self, LaneLog};
use crate::serving::{Book, ServingLane};
use crate::withheld::Withheld;

/// Time between two adverts.
const ADVERT: Duration = Duration::from_secs(2);
/// How long tasks may take to end: in all, and where everything begins anew, which waits for all of them.
const END: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
/// Offers prepared at once, and for one user. Files are fetched from who asks, who may be slow.
const QUOTES: usize = 4;
const QUOTES_EACH: usize = 2;
/// Wait after the chain failed us.
pub(crate) const BACK_OFF: Duration = Duration::from_secs(3);

/// What runs for a lane.
pub(crate) struct Running {
    pub(crate) log: Arc<LaneLog>,
    /// Its shard, once it was fetched.
    pub(crate) shard: Option<Arc<Shard>>,
    /// Of a lane that serves: its receipts and vouchers.
    pub(crate) book: Option<Arc<Book>>,
    /// What answers its user, once its stage is loaded.
    pub(crate) serving: Option<Arc<ServingLane>>,
    /// For whom it waits, and what is shown to it on chain.
    pub(crate) awaited: Arc<Awaited>,
    /// Whether its job is settled: nobody can ask for its files any more.
    pub(crate) settled: bool,
    /// Stops computing; claims that are made go on to the chain.
    pub(crate) compute: CancellationToken,
    /// Stops everything.
    pub(crate) all: CancellationToken,
}

/// What a confirmed posting says of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posted {
    /// Hash of the job's user and terms (P-40).
    pub(crate) terms: B256,
    pub(crate) manifest: Cid,
    pub(crate) kind: JobKind,
    /// Intervals, or tokens, that are paid for at most.
    pub(crate) intervals: u32,
    /// Steps before the job's own.
    pub(crate) first_step: u32,
    /// Seconds in which a claim can be challenged.
    pub(crate) window: u64,
}

/// A worker.
pub struct Worker<E> {
    pub(crate) context: Arc<Context<E>>,
    pub(crate) replays: Replays,
    /// Challenges of our claims.
    pub(crate) games: Games,
    /// States of others that we keep.
    pub(crate) keeper: Keeper,
    /// Our lanes of which the shard of the lane that we keep for is here.
    wards: Mutex<HashSet<Lane>>,
    /// What is demanded of us on chain.
    pub(crate) demands: Demands,
    /// What neighbours have claimed and may keep from us.
    pub(crate) withheld: Withheld,
    /// Of the deployment.
    pub(crate) parameters: Parameters,
    /// Auditors that we have accused.
    pub(crate) accused: Accused,
    pub(crate) promises: Promises,
    /// What a data folder that is gone no longer tells.
    pub(crate) lost: Lost,
    /// Lanes of settled jobs.
    pub(crate) past: Past,
    /// Offers that are being prepared.
    pub(crate) quotes: Places,
    posted: Mutex<HashMap<JobId, Posted>>,
    lanes: Mutex<HashMap<Lane, Running>>,
    /// Held while collecting: two at once would pay for an empty second.
    pub(crate) collecting: tokio::sync::Mutex<()>,
    pub(crate) tasks: TaskTracker,
    pub(crate) shutdown: CancellationToken,
}

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Runs until `shutdown`; everything that matters is on disk before it returns.
    ///
    /// # Errors
    /// [`WorkerError`] when the worker cannot start or its disk fails.
    pub async fn run(context: Arc<Context<E>>, shutdown: CancellationToken) -> Result<(), WorkerError> {
        // Ended here, too, where what follows is not the end of all: this worker begins anew.
        let shutdown = shutdown.child_token();
        let engine = (context.engine)()?.describe();
        tracing::info!(address = %context.ports.identity.address(), %engine, "worker starts");
        let requests = context.ports.net.serve(Protocol::Rpc).await?;
        let streams = context.ports.net.accept(Protocol::Tensor).await?;
        context.ports.net.set_gate(context.roster.clone());
        let memory = context.config.memory.clone();
        let keeper = Keeper::open(context.ports.clone(), memory.clone())?;
        let now = context.ports.chain.head().await?.timestamp;
        let promises = Promises::open(context.ports.journal.clone(), memory, now)?;
        let undone = context.ports.chain.times_undone()?;
        record::take_back(&context.ports, undone).await?;
        keeper.take_back(undone).await?;
        let past = Past::open(&context.ports).await?;
        let mut events = context.ports.chain.events(context.ports.chain.deployment().block).await?;
        let parameters = context.ports.chain.parameters().await?;
        let worker = Arc::new(Self {
            keeper,
            wards: Mutex::default(),
            demands: Demands::default(),
            withheld: Withheld::default(),
            parameters,
            accused: Accused::default(),
            replays: Replays::default(),
            games: Games::new(context.ports.identity.address()),
            promises,
            lost: Lost::default(),
            past,
            quotes: Places::new(QUOTES, QUOTES_EACH),
            posted: Mutex::default(),
            lanes: Mutex::default(),
            collecting: tokio::sync::Mutex::default(),
            tasks: TaskTracker::new(),
            shutdown: shutdown.clone(),
            context,
        });
        worker.take_stock().await?;
        let router = worker.context.stream_router.clone().run(streams);
        let end = shutdown.clone();
        worker.tasks.spawn(async move { end.run_until_cancelled(router).await });
        worker.tasks.spawn(worker.clone().advertise(engine));
        worker.tasks.spawn(worker.clone().answer_all(requests));
        worker.tasks.spawn(worker.clone().answer_challenges());
        worker.tasks.spawn(worker.clone().tend_demands());
        let ended = loop {
            tokio::select! {
                () = shutdown.cancelled() => break Ok(()),
                event = events.recv() => match event {
                    Some(event) => worker.clone().take_in(event).await?,
                    None if shutdown.is_cancelled() => break Ok(()),
                    None => break Err(worker.context.ports.chain.ended()),
                },
                () = worker.context.ports.clock.sleep(QUIET), if worker.lost.waits() => worker.lost.tell(),
            }
        };
        worker.shutdown.cancel();
        worker.tasks.close();
        // Blocking work ends at its next boundary tensor; the interval it was in will be repeated.
        let anew = matches!(ended, Err(ChainError::Undone { .. }));
        let patience = if anew { END.1 } else { END.0 };
        let stopped = tokio::time::timeout(patience, worker.tasks.wait()).await.is_ok();
        if anew && !stopped {
            // What still runs would write to records that the next run has open.
            return Err(ChainError::Ended.into());
        }
        Ok(ended?)
    }

    async fn advertise(self: Arc<Self>, engine: String) {
        loop {
            let promised = self.promises.count(self.context.ports.clock.now());
            let advert = WorkerAdvert {
                memory: self.promises.left(),
                free_lanes: self.free_lanes().saturating_sub(promised),
                prices: self.context.config.prices,
                engine: engine.clone(),
            };
            if let Ok(message) = encode("advert", &advert)
                && let Err(error) = self.context.ports.net.publish(WORKERS, message).await
            {
                tracing::debug!(%error, "the advert was not published");
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = self.context.ports.clock.sleep(ADVERT) => {}
            }
        }
    }

    /// Lanes beside those that are accepted and not over; some may be promised.
    pub(crate) fn free_lanes(&self) -> u16 {
        let busy = self.lanes().values().filter(|running| !running.log.get().over).count();
        self.context.config.max_lanes.saturating_sub(u16::try_from(busy).unwrap_or(u16::MAX))
    }

    pub(crate) fn lanes(&self) -> std::sync::MutexGuard<'_, HashMap<Lane, Running>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn posted(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, Posted>> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wards(&self) -> std::sync::MutexGuard<'_, HashSet<Lane>> {
        self.wards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log_of(&self, lane: Lane) -> Option<Arc<LaneLog>> {
        self.lanes().get(&lane).map(|running| running.log.clone())
    }

    /// The job of a lane as the chain has it now; none once it is settled.
    ///
    /// # Errors
    /// For people, where the endpoint does not tell.
    pub(crate) async fn unsettled_job(&self, lane: Lane) -> Result<Option<JobView>, String> {
        let job = self.context.ports.chain.job(lane.job).await.map_err(|error| error.to_string())?;
        let job = job.ok_or_else(|| "the endpoint does not know the job".to_owned())?;
        Ok(Some(job).filter(|job| job.state != JobState::Settled))
    }

    pub(crate) fn lanes_of(&self, job: JobId) -> Vec<Lane> {
        self.lanes().keys().filter(|lane| lane.job == job).copied().collect()
    }

    /// Whether a lane has not been stopped wholly.
    pub(crate) fn goes_on(&self, lane: Lane) -> bool {
        self.lanes().get(&lane).is_some_and(|running| !running.all.is_cancelled())
    }

    pub(crate) fn stop(&self, lane: Lane, everything: bool) {
        if let Some(running) = self.lanes().get(&lane) {
            if everything { running.all.cancel() } else { running.compute.cancel() }
        }
    }
}
