//! We keep states and shards of others (rule P-34): of the lane whose keeper a lane of ours is, its ward.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cid::Cid;
use tensorlink_node::custody::{Asked, keeper_of, ward_of};
use tensorlink_node::shard::ShardError;
use tensorlink_node::wire::rpc::Response;
use tensorlink_node::{Keeper, Ports};
use tensorlink_types::abi::{Claim, JobKind};
use tensorlink_types::{Address, ClaimId, JobId, Lane};
use tokio_util::sync::CancellationToken;

use crate::context::BACK_OFF;
use crate::keeping::Files;
use crate::state::{Jobs, Lanes};

/// Longest wait between attempts to fetch a shard.
const PATIENCE: Duration = Duration::from_secs(60);

/// What we keep for other lanes.
pub(crate) struct Wards {
    ports: Ports,
    lanes: Arc<Lanes>,
    jobs: Arc<Jobs>,
    files: Arc<Files>,
    keeper: Arc<Keeper>,
    /// Our lanes of which the shard of the lane that we keep for is here.
    ready: Mutex<HashSet<Lane>>,
}

impl Wards {
    pub(crate) fn new(
        ports: Ports,
        lanes: Arc<Lanes>,
        jobs: Arc<Jobs>,
        files: Arc<Files>,
        keeper: Arc<Keeper>,
    ) -> Self {
        Self { ports, lanes, jobs, files, keeper, ready: Mutex::default() }
    }

    fn ready(&self) -> MutexGuard<'_, HashSet<Lane>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the state of the lane whose keeper we are.
    pub(crate) async fn keep(&self, peer: Address, told: (Claim, u64, Vec<u8>)) -> Response {
        self.keeper.answer_keep(self.asked(told).await, peer).await
    }

    /// Has the newest state of the lane whose keeper we are at hand.
    pub(crate) async fn mirror(&self, peer: Address, told: (Claim, u64, Vec<u8>)) -> Response {
        self.keeper.answer_mirror(self.asked(told).await, peer).await
    }

    /// What is asked of the keeper of a lane, if we are it.
    async fn asked(&self, (claim, committed_at, state): (Claim, u64, Vec<u8>)) -> Result<Asked, String> {
        let lane = claim.lane();
        let job = self.ports.chain.job(lane.job).await.map_err(text)?.ok_or("no such job")?;
        let keeper = keeper_of(lane, job.stages, job.replicas);
        let manifest = self.jobs.manifest(lane.job);
        let ours = keeper.is_some_and(|keeper| self.lanes.contains(keeper));
        match (ours, manifest, Cid::try_from(state)) {
            (true, Some(manifest), Ok(state)) => Ok(Asked { claim, committed_at, state, manifest }),
            _ => Err("this worker is not the keeper of that lane".into()),
        }
    }

    /// CID of a state that we keep.
    pub(crate) fn kept(&self, claim: ClaimId) -> Response {
        self.keeper.answer_end_state(claim)
    }

    /// Fetches the shard of the lane whose keeper we are, once: a job starts when each of its shards has two holders.
    /// `end` stops it.
    pub(crate) async fn fetch(self: Arc<Self>, lane: Lane, end: CancellationToken) {
        let mut pause = BACK_OFF;
        while !self.is_ready(lane.job) {
            let fetched = self.try_fetch(lane).await;
            self.files.let_go_if_settled(lane).await;
            match fetched {
                Ok(()) => {
                    self.ready().insert(lane);
                    return;
                }
                Err(error) => tracing::warn!(%lane, error, "the shard of the lane before cannot be fetched yet"),
            }
            tokio::select! {
                () = end.cancelled() => return,
                () = self.ports.clock.sleep(pause) => {}
            }
            pause = pause.saturating_mul(2).min(PATIENCE);
            if self.lanes.log(lane).is_none_or(|log| log.get().over) {
                return;
            }
        }
    }

    async fn try_fetch(&self, lane: Lane) -> Result<(), String> {
        let job = self.ports.chain.job(lane.job).await.map_err(|e| e.to_string())?;
        let job = job.ok_or_else(|| "the endpoint does not know the job".to_owned())?;
        let ward = ward_of(lane, job.stages, job.replicas).filter(|_| job.kind == JobKind::Training);
        let manifest = self.jobs.manifest(lane.job);
        let (Some(ward), Some(manifest)) = (ward, manifest) else { return Ok(()) };
        let (worker, _) = self.ports.chain.assignment(ward).await.map_err(|e| e.to_string())?;
        match self.keeper.store_shard(ward, manifest, (worker, lane)).await {
            // Nothing that passes: nobody else can keep it for this lane, and its user has it.
            Err(error) if !matches!(error, ShardError::Chain(_) | ShardError::Store(_)) => {
                tracing::warn!(%ward, %error, "the shard of the lane before cannot be kept here");
                Ok(())
            }
            other => other.map_err(|e| e.to_string()),
        }
    }

    /// Whether this worker can begin a job: it has a lane, and the shard of the lane whose keeper it is.
    pub(crate) fn is_ready(&self, job: JobId) -> bool {
        let lanes = self.lanes.of(job);
        !lanes.is_empty() && lanes.iter().all(|lane| self.ready().contains(lane))
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
