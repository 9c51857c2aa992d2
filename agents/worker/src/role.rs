//! The worker's loop: listens to the chain, advertises, answers, and keeps one set of tasks per lane.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cid::Cid;
use tensorlink_graph::engine::{Engine, EngineError};
use tensorlink_node::journal::JournalError;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{Call, ChainError, Event, EventAt, Incoming, NetError, Protocol};
use tensorlink_node::wire::gossip::{WORKERS, WorkerAdvert};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{decode, encode};
use tensorlink_types::{Address, JobId, Lane};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::audit::Repeatable;
use crate::claims;
use crate::context::Context;
use crate::lane::{KEEP, LaneTask};
use crate::quote::{fetch, quote};
use crate::record::{LaneLog, LaneRecord};

/// Time between two adverts.
const ADVERT: Duration = Duration::from_secs(2);
/// Requests answered at once; further ones wait in the net's bounded queue.
const ANSWERS: usize = 8;
/// Wait before a lane whose job has ended is settled by us, for a user who left; then between attempts.
const SETTLE: Duration = Duration::from_secs(30);
/// Wait after the chain failed us.
const BACK_OFF: Duration = Duration::from_secs(3);

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
struct Running {
    log: Arc<LaneLog>,
    /// Stops computing; claims that are made go on to the chain.
    compute: CancellationToken,
    /// Stops everything.
    all: CancellationToken,
}

/// A worker.
pub struct Worker<E> {
    context: Arc<Context<E>>,
    manifests: Mutex<HashMap<JobId, Cid>>,
    lanes: Mutex<HashMap<Lane, Running>>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl<E> Worker<E>
where
    E: Engine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Runs until `shutdown`; everything that matters is on disk before it returns.
    ///
    /// # Errors
    /// [`WorkerError`] when the worker cannot start or its disk fails.
    pub async fn run(context: Arc<Context<E>>, shutdown: CancellationToken) -> Result<(), WorkerError> {
        let engine = (context.engine)()?.describe();
        tracing::info!(address = %context.identity.address(), %engine, "worker starts");
        let mut requests = context.net.serve(Protocol::Rpc).await?;
        let streams = context.net.accept(Protocol::Tensor).await?;
        context.net.set_gate(context.roster.clone());
        let mut events = context.chain.events(context.chain.deployment().block).await?;
        let worker = Arc::new(Self {
            manifests: Mutex::default(),
            lanes: Mutex::default(),
            tasks: TaskTracker::new(),
            shutdown: shutdown.clone(),
            context,
        });
        worker.tasks.spawn(worker.context.desk.clone().run(streams));
        worker.tasks.spawn(worker.clone().advertise(engine));
        let answers = Arc::new(Semaphore::new(ANSWERS));
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                event = events.recv() => match event {
                    Some(event) => worker.clone().take_in(event).await?,
                    None => break,
                },
                request = requests.recv() => match request {
                    Some(request) => {
                        let (worker, answers) = (worker.clone(), answers.clone());
                        tokio::spawn(async move {
                            if let Ok(_slot) = answers.acquire().await {
                                worker.answer(request).await;
                            }
                        });
                    }
                    None => break,
                },
            }
        }
        worker.shutdown.cancel();
        worker.tasks.close();
        // Blocking work ends at its next boundary tensor; the interval it was in will be repeated.
        let _ = tokio::time::timeout(Duration::from_secs(5), worker.tasks.wait()).await;
        Ok(())
    }

    async fn advertise(self: Arc<Self>, engine: String) {
        loop {
            let advert = WorkerAdvert {
                memory: self.context.config.memory,
                free_lanes: self.free_lanes(),
                price_per_gmac: self.context.config.price_per_gmac,
                engine: engine.clone(),
            };
            if let Ok(message) = encode("advert", &advert)
                && let Err(error) = self.context.net.publish(WORKERS, message).await
            {
                tracing::debug!(%error, "the advert was not published");
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = self.context.clock.sleep(ADVERT) => {}
            }
        }
    }

    fn free_lanes(&self) -> u16 {
        let busy = self.lanes().values().filter(|running| !running.log.get().over).count();
        self.context.config.max_lanes.saturating_sub(u16::try_from(busy).unwrap_or(u16::MAX))
    }

    fn lanes(&self) -> std::sync::MutexGuard<'_, HashMap<Lane, Running>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn manifests(&self) -> std::sync::MutexGuard<'_, HashMap<JobId, Cid>> {
        self.manifests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_of(&self, lane: Lane) -> Option<Arc<LaneLog>> {
        self.lanes().get(&lane).map(|running| running.log.clone())
    }

    async fn take_in(self: Arc<Self>, at: EventAt) -> Result<(), JournalError> {
        self.context.roster.apply(&at.event);
        let own = self.context.identity.address();
        match at.event {
            Event::JobPosted { job, terms, .. } => match Cid::try_from(terms.manifest.as_ref()) {
                Ok(cid) => {
                    self.manifests().insert(job, cid);
                }
                Err(error) => tracing::debug!(%job, %error, "a job whose manifest is not a CID"),
            },
            Event::JobAccepted { job, offers } => {
                if let Some(offer) = offers.iter().find(|offer| offer.worker == own) {
                    self.accepted(Lane { job, stage: offer.stage, replica: offer.replica })?;
                }
            }
            Event::JobStarted { job, job_key, .. } => {
                let lane = self.lanes().keys().find(|lane| lane.job == job).copied();
                if let Some(log) = lane.and_then(|lane| self.log_of(lane)) {
                    log.update(|record| record.job_key = Some(job_key))?;
                    if !log.get().over {
                        self.tasks.spawn(self.clone().work(log));
                    }
                }
            }
            Event::ClaimCommitted { claim, committed_at, .. } => {
                if let Some(log) = self.log_of(claim.lane())
                    && let Err(error) = claims::confirmed(&log, &claim, committed_at)
                {
                    tracing::error!(lane = %claim.lane(), %error, "this lane stops");
                    self.stop(claim.lane(), true);
                }
            }
            Event::ClaimsFinalized { lane, to, .. } => {
                if let Some(log) = self.log_of(lane) {
                    self.prune(&log, to.saturating_sub(KEEP)).await?;
                }
            }
            Event::JobClosing { job, convicted } => {
                for lane in self.lanes_of(job) {
                    tracing::info!(%lane, convicted, "the job takes no more claims");
                    self.stop(lane, false);
                }
            }
            Event::JobSettled { job, .. } => {
                for lane in self.lanes_of(job) {
                    self.stop(lane, true);
                    if let Some(log) = self.log_of(lane) {
                        log.update(|record| record.over = true)?;
                    }
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

    fn accepted(&self, lane: Lane) -> Result<(), JournalError> {
        let user = self.context.roster.members(lane.job).map(|members| members.user).unwrap_or_default();
        let manifest = self.manifests().get(&lane.job).map(ToString::to_string).unwrap_or_default();
        let log = LaneLog::open(self.context.journal.clone(), LaneRecord::new(lane, user, manifest))?;
        tracing::info!(%lane, "accepted");
        let all = self.shutdown.child_token();
        let running = Running { log: Arc::new(log), compute: all.child_token(), all };
        self.lanes().insert(lane, running);
        Ok(())
    }

    fn lanes_of(&self, job: JobId) -> Vec<Lane> {
        self.lanes().keys().filter(|lane| lane.job == job).copied().collect()
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
        let computing = async {
            match task.run(compute).await {
                Ok(()) => tracing::info!(%lane, "computed"),
                Err(error) => tracing::error!(%lane, %error, "computing stops"),
            }
        };
        let claiming = async {
            match claims::run(self.context.chain.clone(), log.clone(), all.clone()).await {
                Ok(()) => self.settle(lane.job, &all).await,
                Err(error) => {
                    tracing::error!(%lane, %error, "this lane is over");
                    self.stop(lane, true);
                    if let Err(error) = log.update(|record| record.over = true) {
                        tracing::error!(%lane, %error, "its record cannot be closed");
                    }
                }
            }
        };
        tokio::join!(computing, claiming);
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
                () = self.context.clock.sleep(BACK_OFF) => {}
            }
        }
    }

    async fn try_prepare(&self, log: &Arc<LaneLog>) -> Result<Option<LaneTask<E>>, String> {
        let record = log.get();
        let lane = record.lane;
        let job = self.context.chain.job(lane.job).await.map_err(|e| e.to_string())?;
        let job = job.ok_or_else(|| "the endpoint does not know the job".to_owned())?;
        if job.state == JobState::Settled {
            return Ok(None);
        }
        let manifest = record.manifest.parse().map_err(|_| format!("{:?} is not a CID", record.manifest))?;
        let shard = fetch(&self.context, &job, lane.stage, manifest).await.map_err(|e| e.to_string())?;
        let members = self.context.roster.members(lane.job).ok_or_else(|| "the job is not confirmed".to_owned())?;
        let worker = |stage: u16| {
            let index = usize::from(lane.replica) * usize::from(job.stages) + usize::from(stage);
            members.workers.get(index).copied()
        };
        let previous = lane.stage.checked_sub(1).and_then(worker);
        let next = Some(lane.stage + 1).filter(|stage| *stage < job.stages).and_then(worker);
        let context = self.context.clone();
        Ok(Some(LaneTask { context, job, log: log.clone(), shard, neighbours: (previous, next) }))
    }

    /// Settles a job whose claims are all final, unless its user does.
    async fn settle(&self, job: JobId, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.context.clock.sleep(SETTLE) => {}
            }
            match self.context.chain.send(Call::Settle { job }).await {
                Ok(receipt) => return tracing::info!(%job, gas = receipt.gas, "settled"),
                Err(error) => tracing::info!(%job, %error, "not settled yet"),
            }
        }
    }

    async fn collect(self: Arc<Self>, job: JobId) {
        let own = self.context.identity.address();
        let result = async {
            let Some(view) = self.context.chain.job(job).await? else { return Ok(()) };
            let credit = self.context.chain.credit(own, view.token).await?;
            if !credit.is_zero() {
                let receipt = self.context.chain.send(Call::Collect { token: view.token }).await?;
                tracing::info!(%job, %credit, gas = receipt.gas, "collected");
            }
            Ok::<(), ChainError>(())
        };
        if let Err(error) = result.await {
            tracing::warn!(%job, %error, "not collected; `tensorlink withdraw` does it later");
        }
    }

    /// Forgets intervals before `keep_from`, and their files unless others need them.
    async fn prune(&self, log: &LaneLog, keep_from: u32) -> Result<(), JournalError> {
        let before = log.get();
        log.update(|record| record.intervals.retain(|number, _| *number >= keep_from))?;
        let after = log.get();
        let kept: std::collections::HashSet<&String> =
            after.intervals.values().flat_map(|i| [&i.state, &i.inputs]).chain(&after.next_state).collect();
        let dropped = before.intervals.range(..keep_from).flat_map(|(_, i)| [&i.state, &i.inputs]);
        for cid in dropped.filter(|cid| !kept.contains(cid)) {
            if let Ok(cid) = cid.parse()
                && let Err(error) = self.context.store.unpin(&cid).await
            {
                tracing::debug!(%cid, %error, "not unpinned");
            }
        }
        Ok(())
    }

    async fn answer(&self, request: Incoming) {
        let Incoming { peer, body, reply } = request;
        let response = match decode("request", &body) {
            Ok(request) => self.respond(peer, request).await,
            Err(error) => Response::Declined(error.to_string()),
        };
        match encode("response", &response) {
            // The peer may be gone; that is its business.
            Ok(body) => drop(reply.send(body)),
            Err(error) => tracing::warn!(%peer, %error, "no answer"),
        }
    }

    async fn respond(&self, peer: Address, request: Request) -> Response {
        match request {
            Request::Quote(lane) => {
                let user = self.context.roster.members(lane.job).map(|members| members.user);
                let manifest = self.manifests().get(&lane.job).copied();
                match (user, manifest) {
                    (Some(user), Some(manifest)) if user == peer => {
                        match quote(&self.context, lane, (manifest, self.free_lanes())).await {
                            Ok((offer, signature)) => Response::Offer { offer, signature },
                            Err(declined) => Response::Declined(declined.to_string()),
                        }
                    }
                    (Some(_), Some(_)) => Response::Declined("only the job's user gets offers".into()),
                    _ => Response::Declined("the job is not confirmed here yet: ask again".into()),
                }
            }
            Request::Ready(job) => Response::Ready(!self.lanes_of(job).is_empty()),
            Request::FinalState(lane) => self.final_state(lane).await,
            Request::Interval(claim)
            | Request::Statements(claim)
            | Request::SentLogs(claim)
            | Request::State { claim, .. }
            | Request::Trace { claim, .. }
            | Request::Output { claim, .. } => match self.repeatable(claim).await {
                Ok(claim) => claim
                    .answer(&self.context, peer, &request)
                    .await
                    .unwrap_or_else(|error| Response::Declined(error.to_string())),
                Err(declined) => declined,
            },
        }
    }

    async fn final_state(&self, lane: Lane) -> Response {
        let Some(log) = self.log_of(lane) else {
            return Response::Declined("not a lane of this worker".into());
        };
        let record = log.get();
        let intervals = match self.context.chain.job(lane.job).await {
            Ok(Some(job)) => job.intervals,
            Ok(None) => return Response::Declined("no such job".into()),
            Err(error) => return Response::Declined(error.to_string()),
        };
        match record.next_state.filter(|_| record.next >= intervals).and_then(|cid| cid.parse::<Cid>().ok()) {
            Some(cid) => Response::FinalState(cid.to_bytes()),
            None => Response::Declined(format!("{} of {intervals} intervals are computed", record.next)),
        }
    }

    /// Finds a claim of ours by its id, with its shard.
    async fn repeatable(&self, id: tensorlink_types::ClaimId) -> Result<Repeatable, Response> {
        let records: Vec<LaneRecord> = self.lanes().values().map(|running| running.log.get()).collect();
        let found = records.into_iter().find_map(|record| {
            let interval = record.intervals.values().find(|i| self.context.contracts.claim_id(&i.claim) == id)?;
            Some((interval.clone(), record))
        });
        let (interval, record) =
            found.ok_or_else(|| Response::Declined("no such claim of this worker, or it is long final".into()))?;
        let decline = |reason: String| Response::Declined(reason);
        let job = self.context.chain.job(record.lane.job).await.map_err(|e| decline(e.to_string()))?;
        let job = job.ok_or_else(|| decline("no such job".into()))?;
        let manifest = record.manifest.parse().map_err(|_| decline("the record is damaged".into()))?;
        let shard =
            fetch(&self.context, &job, record.lane.stage, manifest).await.map_err(|e| decline(e.to_string()))?;
        let job_key = record.job_key.ok_or_else(|| decline("the job has not started".into()))?;
        Ok(Repeatable { id, interval, shard, job_key, steps: job.steps_per_interval })
    }
}
