//! Second holders (rule P-34): others keep our states, and we keep theirs.

use std::sync::Arc;
use std::time::Duration;

use cid::Cid;
use tensorlink_model::CacheEngine;
use tensorlink_node::custody::{Asked, keeper_of, ward_of};
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{ChainError, NetError, Protocol};
use tensorlink_node::shard::ShardError;
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::commit::verify_signer;
use tensorlink_types::abi::{Claim, Holder, JobKind};
use tensorlink_types::{Address, ClaimId, JobId, Lane};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::record::{Interval, LaneLog};
use crate::role::{BACK_OFF, Worker};

/// Waits between attempts to find a holder: the first, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));
/// Where the other stages do not claim, a lane has its own newest state kept when this part of a window is over.
const ALONE: u64 = 2;

/// Why nobody else keeps a state yet.
#[derive(Debug, Error)]
enum Unheld {
    #[error("{0}")]
    Record(String),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Net(#[from] NetError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Signature(#[from] SignatureError),
    #[error("{0} declines: {1}")]
    Declined(Address, String),
}

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Has states that are claimed kept by another, again and again: by the lane's keeper, or else by the job's user.
    pub(crate) async fn find_holders(&self, log: &LaneLog, job: &JobView, stop: &CancellationToken) {
        let mut changes = log.watch();
        let mut pause = PAUSE.0;
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let record = log.get();
            let mut wait = PAUSE.1;
            let (mut found, mut failed) = (false, false);
            for interval in record.unheld(job.intervals.saturating_sub(1), job.challenge_window / ALONE) {
                let kept = self.find_holder_of(log, interval, job).await;
                found |= kept;
                failed |= !kept;
            }
            if failed {
                wait = pause;
                pause = pause.saturating_mul(2).min(PAUSE.1);
            } else if found {
                pause = PAUSE.0;
                wait = pause;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                // Not at once: claims come one after another, and one attestation serves those before it.
                () = async {
                    self.context.ports.clock.sleep(PAUSE.0).await;
                    let _ = changes.changed().await;
                } => {}
                () = self.context.ports.clock.sleep(wait) => {}
            }
        }
    }

    /// Whether another keeps the state after an interval now.
    async fn find_holder_of(&self, log: &LaneLog, interval: &Interval, job: &JobView) -> bool {
        let number = interval.claim.interval;
        let holder = match self.find_holder(log, interval, job).await {
            Ok(holder) => holder,
            Err(error) => {
                tracing::debug!(lane = %interval.claim.lane(), number, %error, "nobody else keeps this state yet");
                return false;
            }
        };
        let kept = log.update(|record| {
            if let Some(known) = record.intervals.get_mut(&number) {
                known.holder = Some(holder);
            }
        });
        if let Err(error) = &kept {
            tracing::error!(lane = %interval.claim.lane(), %error, "a holder's attestation cannot be kept");
        }
        kept.is_ok()
    }

    async fn find_holder(&self, log: &LaneLog, interval: &Interval, job: &JobView) -> Result<Holder, Unheld> {
        let lane = log.get().lane;
        if let Some(keeper) = keeper_of(lane, job.stages, job.replicas).filter(|_| !log.get().keeper_failed) {
            let (worker, _) = self.context.ports.chain.assignment(keeper).await?;
            match self.ask_to_keep(log, interval, (worker, keeper)).await {
                Ok(holder) => return Ok(holder),
                Err(error) => tracing::debug!(%lane, %keeper, %error, "its keeper does not keep it; the user is asked"),
            }
        }
        self.ask_to_keep(log, interval, (job.user, lane)).await
    }

    async fn ask_to_keep(
        &self,
        log: &LaneLog,
        interval: &Interval,
        (holder, at): (Address, Lane),
    ) -> Result<Holder, Unheld> {
        let ports = &self.context.ports;
        let (claim, gone) = (&interval.claim, || Unheld::Record("the state is not on disk any more".to_owned()));
        let state: Cid = log.get().state_after(claim.interval).and_then(|cid| cid.parse().ok()).ok_or_else(gone)?;
        let committed_at = interval.committed_at.ok_or_else(gone)?;
        let question = Request::Keep { claim: claim.clone(), committed_at, state: state.to_bytes() };
        let answer = ports.net.request(holder, Protocol::Rpc, encode("request", &question)?).await?;
        match decode("response", &answer)? {
            Response::Holding(signature) => {
                let digest = ports.contracts.holding(ports.contracts.claim_id(claim));
                verify_signer(&signature, digest, holder)?;
                Ok(Holder { stage: at.stage, replica: at.replica, signature: signature.into() })
            }
            Response::Declined(reason) => Err(Unheld::Declined(holder, reason)),
            other => Err(Unheld::Declined(holder, format!("{other:?}"))),
        }
    }

    /// Keeps the state of the lane whose keeper we are.
    pub(crate) async fn keep(&self, peer: Address, (claim, committed_at, state): (Claim, u64, Vec<u8>)) -> Response {
        let lane = claim.lane();
        let job = match self.context.ports.chain.job(lane.job).await {
            Ok(Some(job)) => job,
            Ok(None) => return Response::Declined("no such job".into()),
            Err(error) => return Response::Declined(error.to_string()),
        };
        let keeper = keeper_of(lane, job.stages, job.replicas);
        let manifest = self.posted().get(&lane.job).map(|posted| posted.manifest);
        let ours = keeper.is_some_and(|keeper| self.lanes().contains_key(&keeper));
        let (true, Some(manifest), Ok(state)) = (ours, manifest, Cid::try_from(state)) else {
            return Response::Declined("this worker is not the keeper of that lane".into());
        };
        match self.keeper.keep(&Asked { claim, committed_at, state, manifest }, peer).await {
            Ok(signature) => Response::Holding(signature.to_vec()),
            Err(error) => Response::Declined(error.to_string()),
        }
    }

    /// CID of a state that we keep.
    pub(crate) fn kept(&self, claim: ClaimId) -> Response {
        let declined = || Response::Declined("that state is not kept here".into());
        self.keeper.file_of(claim).map_or_else(declined, |cid| Response::EndState(cid.to_bytes()))
    }

    /// Fetches the shard of the lane whose keeper we are, once: a job starts when each of its shards has two holders.
    pub(crate) async fn fetch_ward(self: Arc<Self>, lane: Lane) {
        let mut pause = BACK_OFF;
        while !self.is_ready(lane.job) {
            let fetched = self.try_fetch_ward(lane).await;
            self.let_go_if_settled(lane).await;
            match fetched {
                Ok(()) => {
                    self.wards().insert(lane);
                    return;
                }
                Err(error) => tracing::warn!(%lane, error, "the shard of the lane before cannot be fetched yet"),
            }
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = self.context.ports.clock.sleep(pause) => {}
            }
            pause = pause.saturating_mul(2).min(Duration::from_secs(60));
            if self.log_of(lane).is_none_or(|log| log.get().over) {
                return;
            }
        }
    }

    async fn try_fetch_ward(&self, lane: Lane) -> Result<(), String> {
        let job = self.context.ports.chain.job(lane.job).await.map_err(|e| e.to_string())?;
        let job = job.ok_or_else(|| "the endpoint does not know the job".to_owned())?;
        let ward = ward_of(lane, job.stages, job.replicas).filter(|_| job.kind == JobKind::Training);
        let manifest = self.posted().get(&lane.job).map(|posted| posted.manifest);
        let (Some(ward), Some(manifest)) = (ward, manifest) else { return Ok(()) };
        let (worker, _) = self.context.ports.chain.assignment(ward).await.map_err(|e| e.to_string())?;
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
        let lanes = self.lanes_of(job);
        !lanes.is_empty() && lanes.iter().all(|lane| self.wards().contains(lane))
    }
}
