//! The worker's loop: listens to the chain, advertises, answers, and keeps one set of tasks per lane.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cid::Cid;
use tensorlink_graph::engine::EngineError;
use tensorlink_graph::transformer::CacheEngine;
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::{JobState, JobView, Parameters};
use tensorlink_node::ports::{ChainError, Event, EventAt, NetError, Protocol};
use tensorlink_node::shard::Shard;
use tensorlink_node::wire::encode;
use tensorlink_node::wire::frame::SignedLog;
use tensorlink_node::wire::gossip::{WORKERS, WorkerAdvert};
use tensorlink_node::{Games, Keeper};
use tensorlink_proof::custody::attested_log;
use tensorlink_types::abi::JobKind;
use tensorlink_types::{B256, Bytes, JobId, Lane, Lineage, U256};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::audit_answers::Replays;
use crate::auditors::Accused;
use crate::awaited::Awaited;
use crate::claims::{self, Claimant};
use crate::context::Context;
use crate::demands::Demands;
use crate::lane::LaneTask;
use crate::lost::{Lost, QUIET};
use crate::places::Places;
use crate::promises::Promises;
use crate::quote::fetch;
use crate::record::{self, LaneLog, LaneRecord};
use crate::sealing;
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

/// Why a worker cannot run at all.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// The net is down.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The chain cannot be followed.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The disk failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is no usable device.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

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
    awaited: Arc<Awaited>,
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
        let keeper = Keeper::open(context.ports.clone(), context.config.memory)?;
        let undone = context.ports.chain.times_undone()?;
        record::take_back(&context.ports, undone).await?;
        keeper.take_back(undone).await?;
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
            promises: Promises::default(),
            lost: Lost::default(),
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
                memory: self.context.config.memory,
                free_lanes: self.free_lanes().saturating_sub(promised),
                price_per_gmac: self.context.config.price_per_gmac,
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

    async fn take_in(self: Arc<Self>, at: EventAt) -> Result<(), JournalError> {
        self.context.roster.apply(&at.event);
        self.games.apply(&at);
        self.keeper.apply(&at.event).await?;
        let own = self.context.ports.identity.address();
        if let Some(job) = at.event.job_of_claims() {
            for log in self.lanes_of(job).into_iter().filter_map(|lane| self.log_of(lane)) {
                sealing::told(&log, &at.event)?;
            }
        }
        match at.event {
            Event::JobPosted { job, terms, .. } => {
                match (Cid::try_from(terms.manifest.as_ref()), JobKind::from_number(terms.kind)) {
                    (Ok(manifest), Some(kind)) => {
                        let (intervals, first_step, window) =
                            (terms.intervals, terms.firstStep, terms.challengeWindow.into());
                        self.posted().insert(job, Posted { manifest, kind, intervals, first_step, window });
                    }
                    (Err(error), _) => tracing::debug!(%job, %error, "a job whose manifest is not a CID"),
                    (_, None) => tracing::debug!(%job, kind = terms.kind, "a job of a kind unknown here"),
                }
            }
            Event::JobAccepted { job, offers } => {
                if let Some(offer) = offers.iter().find(|offer| offer.worker == own) {
                    let lane = Lane { job, stage: offer.stage, replica: offer.replica };
                    if !self.leaves_alone(lane).await? && !self.accepted(lane)?.over {
                        self.tasks.spawn(self.clone().await_start(lane));
                        self.tasks.spawn(self.clone().fetch_ward(lane));
                    }
                }
                self.promises.release(job);
            }
            Event::JobStarted { job, job_key, .. } => {
                let lane = self.lanes().keys().find(|lane| lane.job == job).copied();
                if let Some(log) = lane.and_then(|lane| self.log_of(lane)) {
                    let (kind, first_step) =
                        self.posted().get(&job).map(|posted| (posted.kind, posted.first_step)).unwrap_or_default();
                    log.update(|record| record.lineage = Some(Lineage { key: job_key, first_step }))?;
                    match kind {
                        _ if log.get().over => {}
                        JobKind::Training => drop(self.tasks.spawn(self.clone().work(log))),
                        JobKind::Serving => {
                            let book = self.open_book(log.get().lane)?;
                            self.tasks.spawn(self.clone().serve(log, book));
                        }
                    }
                }
            }
            Event::ClaimCommitted { claim, committed_at, .. } => {
                self.claimed_beside(&claim, committed_at);
                if let Some(log) = self.log_of(claim.lane())
                    && let Err(error) = claims::confirmed(&log, &claim, committed_at)
                    && self.goes_on(claim.lane())
                {
                    tracing::error!(lane = %claim.lane(), %error, "this lane stops");
                    self.stop(claim.lane(), true);
                }
            }
            Event::ReplicasDiffer { job, stage, interval, claim }
                if self.lanes_of(job).iter().any(|lane| lane.stage == stage) =>
            {
                tracing::warn!(%job, stage, interval, %claim, "replicas of this stage differ: not all have computed right");
            }
            Event::Demanded { id, demand } if !self.lanes_of(JobId(demand.job)).is_empty() => {
                tracing::warn!(%id, holder = %demand.holder, deadline = %demand.deadline, "data is demanded in a job of ours");
                self.withheld.demanded(id, &demand, own);
                self.demands.open(id, *demand);
            }
            Event::AttestationGiven { id, root, signature } => self.attestation_given(id, root, &signature),
            Event::DemandEnded { id, shown, .. } => {
                self.withheld.ended(id, shown.is_some());
                self.demands.end(id);
            }
            Event::AuditRevealed { claim, auditor, answer, job, .. } if !self.lanes_of(job).is_empty() => {
                self.tasks.spawn(self.clone().check_answer(claim, auditor, answer));
            }
            Event::AuditorAccused { claim, auditor, statement, .. } if statement.auditor == own => {
                self.remember_accused(claim, auditor);
            }
            Event::ClaimsFinalized { lane, to, .. } => {
                self.clone().penalise_accused(lane, to);
                self.prune_all(lane.job).await?;
            }
            Event::VoucherRedeemed { lane, epoch, .. } => {
                if self.lanes().contains_key(&lane) {
                    self.epoch_redeemed(lane, epoch, at.timestamp);
                }
                self.redeemed(lane, epoch).await?;
            }
            Event::JobClosing { job, convicted } => {
                for lane in self.lanes_of(job) {
                    tracing::info!(%lane, convicted, "the job is closing");
                    self.stop(lane, false);
                    if let Some(book) = self.book_of(lane) {
                        book.wake();
                    }
                }
            }
            Event::JobSettled { job, .. } => {
                self.forget_epochs(job);
                self.demands.forget(job);
                self.withheld.forget(job);
                // Cancelled before any offer was accepted, perhaps.
                self.promises.release(job);
                for lane in self.lanes_of(job) {
                    self.stop(lane, true);
                    self.close_book(lane).await?;
                    if let Some(running) = self.lanes().get_mut(&lane) {
                        running.shard = None;
                        running.settled = true;
                        running.log.update(|record| record.over = true)?;
                    }
                    self.let_go_if_settled(lane).await;
                }
                // Even where there is no record of it.
                if self.context.roster.members(job).is_some_and(|members| members.workers.contains(&own)) {
                    self.tasks.spawn(self.clone().collect(job));
                }
            }
            Event::Slashed { account, amount, .. } if account == own => {
                tracing::error!(%amount, "this worker was slashed");
            }
            _ => {}
        }
        Ok(())
    }

    /// A neighbour's attestation that is shown on chain is as good as one that it sends.
    fn attestation_given(&self, id: U256, root: B256, signature: &Bytes) {
        let Some(log) = self.demands.get(id).and_then(|demand| attested_log(&demand, root)) else { return };
        let lane = Lane { job: JobId(log.job), stage: log.toStage, replica: log.replica };
        if let Some(running) = self.lanes().get(&lane) {
            tracing::info!(%lane, interval = log.interval, "a neighbour's attestation of what it sent is on chain");
            running.awaited.shown(SignedLog { log, signature: signature.to_vec() });
        }
    }

    fn accepted(&self, lane: Lane) -> Result<LaneRecord, JournalError> {
        let user = self.context.roster.members(lane.job).map(|members| members.user).unwrap_or_default();
        let manifest = self.posted().get(&lane.job).map(|posted| posted.manifest.to_string()).unwrap_or_default();
        let log = LaneLog::open(self.context.ports.journal.clone(), LaneRecord::new(lane, user, manifest))?;
        tracing::info!(%lane, "accepted");
        let all = self.shutdown.child_token();
        let record = log.get();
        let (log, compute) = (Arc::new(log), all.child_token());
        let awaited = Arc::default();
        let (shard, book, serving, settled) = (None, None, None, false);
        let running = Running { log, shard, book, serving, awaited, settled, compute, all };
        self.lanes().insert(lane, running);
        Ok(record)
    }

    pub(crate) fn lanes_of(&self, job: JobId) -> Vec<Lane> {
        self.lanes().keys().filter(|lane| lane.job == job).copied().collect()
    }

    /// Whether a lane has not been stopped wholly.
    fn goes_on(&self, lane: Lane) -> bool {
        self.lanes().get(&lane).is_some_and(|running| !running.all.is_cancelled())
    }

    fn stop(&self, lane: Lane, everything: bool) {
        if let Some(running) = self.lanes().get(&lane) {
            if everything { running.all.cancel() } else { running.compute.cancel() }
        }
    }

    /// Everything a running lane needs, until it is over.
    async fn work(self: Arc<Self>, log: Arc<LaneLog>) {
        let lane = log.get().lane;
        let Some((compute, all)) = self.lanes().get(&lane).map(|r| (r.compute.clone(), r.all.clone())) else { return };
        let Some(task) = self.prepare(&log, &all).await else { return };
        let (job, awaited) = (task.job.clone(), task.awaited.clone());
        let computing = async {
            match task.run(compute).await {
                Ok(()) => tracing::info!(%lane, "computed"),
                Err(error) => tracing::error!(%lane, %error, "computing stops"),
            }
        };
        let claiming = async {
            let ports = &self.context.ports;
            let by = Claimant::new(ports.chain.clone(), ports.identity.clone(), ports.contracts);
            // Until the settlement is confirmed: a reorganisation may undo it, and what made the last claims final.
            while !all.is_cancelled() {
                if let Err(error) = claims::run(by.clone(), log.clone(), all.clone()).await {
                    tracing::error!(%lane, %error, "this lane is over");
                    self.stop(lane, true);
                    if let Err(error) = log.update(|record| record.over = true) {
                        tracing::error!(%lane, %error, "its record cannot be closed");
                    }
                    return;
                }
                if log.get().barred_from.is_some() {
                    self.stop(lane, false);
                }
                self.settle(lane.job, &all).await;
            }
        };
        let demanding = self.demand_what_is_owed(&log, &job, &awaited, &all);
        tokio::join!(computing, claiming, demanding, self.find_holders(&log, &job, &all));
        self.let_go_if_settled(lane).await;
    }

    /// Fetches what a lane needs; retries until it has it or the lane is stopped.
    async fn prepare(&self, log: &Arc<LaneLog>, stop: &CancellationToken) -> Option<LaneTask<E>> {
        let record = log.get();
        let lane = record.lane;
        loop {
            match self.try_prepare(log).await {
                Ok(task) => return task,
                Err(error) => tracing::warn!(%lane, error, "cannot begin yet"),
            }
            tokio::select! {
                () = stop.cancelled() => return None,
                () = self.context.ports.clock.sleep(BACK_OFF) => {}
            }
        }
    }

    async fn try_prepare(&self, log: &Arc<LaneLog>) -> Result<Option<LaneTask<E>>, String> {
        let record = log.get();
        let lane = record.lane;
        let job = self.context.ports.chain.job(lane.job).await.map_err(|e| e.to_string())?;
        let job = job.ok_or_else(|| "the endpoint does not know the job".to_owned())?;
        if job.state == JobState::Settled {
            return Ok(None);
        }
        // The confirmed event is the law; an endpoint that lags or forked says otherwise.
        if record.lineage != Some(job.lineage) {
            return Err("the endpoint has another job key or first step than was confirmed".to_owned());
        }
        let shard = self.shard(&record, &job).await?;
        let members = self.context.roster.members(lane.job).ok_or_else(|| "the job is not confirmed".to_owned())?;
        let worker = |stage: u16| {
            let index = usize::from(lane.replica) * usize::from(job.stages) + usize::from(stage);
            members.workers.get(index).copied()
        };
        let previous = lane.stage.checked_sub(1).and_then(worker);
        let next = Some(lane.stage + 1).filter(|stage| *stage < job.stages).and_then(worker);
        let context = self.context.clone();
        let awaited = self.lanes().get(&lane).map(|running| running.awaited.clone()).unwrap_or_default();
        Ok(Some(LaneTask { context, job, log: log.clone(), shard, neighbours: (previous, next), awaited }))
    }

    /// The shard of a lane, fetched once.
    pub(crate) async fn shard(&self, record: &LaneRecord, job: &JobView) -> Result<Arc<Shard>, String> {
        let lane = record.lane;
        if let Some(shard) = self.lanes().get(&lane).and_then(|running| running.shard.clone()) {
            return Ok(shard);
        }
        let manifest = record.manifest.parse().map_err(|_| format!("{:?} is not a CID", record.manifest))?;
        let fetched = fetch(&self.context, job, (lane.stage, manifest), self.owner_for(lane)).await;
        self.let_go_if_settled(lane).await;
        let shard = fetched.map_err(|e| e.to_string())?;
        if let Some(running) = self.lanes().get_mut(&lane).filter(|running| !running.settled) {
            running.shard = Some(shard.clone());
        }
        Ok(shard)
    }
}
