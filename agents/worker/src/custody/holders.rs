//! Others keep our states (rule P-34).

use std::time::{Duration, Instant};

use cid::Cid;
use tensorlink_node::Ports;
use tensorlink_node::custody::{SPARED, keeper_of};
use tensorlink_node::ports::chain::JobView;
use tensorlink_node::ports::{ChainError, NetError, Protocol};
use tensorlink_node::wire::rpc::{Request, Response};
use tensorlink_node::wire::{Malformed, decode, encode};
use tensorlink_proof::commit::sign::SignatureError;
use tensorlink_proof::commit::verify_signer;
use tensorlink_types::abi::{Claim, Holder};
use tensorlink_types::{Address, Lane};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::record::{Interval, LaneLog};

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

/// Who keeps our states.
pub(crate) struct Holders {
    ports: Ports,
}

impl Holders {
    pub(crate) const fn new(ports: Ports) -> Self {
        Self { ports }
    }

    /// Has states that are claimed kept by another, again and again: by the lane's keeper, or else by the job's user.
    pub(crate) async fn find(&self, log: &LaneLog, job: &JobView, stop: &CancellationToken) {
        let mut changes = log.watch();
        let mut pause = PAUSE.0;
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let record = log.get();
            let mut wait = PAUSE.1;
            let (mut found, mut failed) = (false, false);
            for interval in record.unheld(job.intervals.saturating_sub(1), job.challenge_window / ALONE) {
                let kept = self.find_of(log, interval, job).await;
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
                    self.ports.clock.sleep(PAUSE.0).await;
                    let _ = changes.changed().await;
                } => {}
                () = self.ports.clock.sleep(wait) => {}
            }
        }
    }

    /// Whether another keeps the state after an interval now.
    async fn find_of(&self, log: &LaneLog, interval: &Interval, job: &JobView) -> bool {
        let number = interval.claim.interval;
        let holder = match self.ask_keeper_or_user(log, interval, job).await {
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

    async fn ask_keeper_or_user(&self, log: &LaneLog, interval: &Interval, job: &JobView) -> Result<Holder, Unheld> {
        let lane = log.get().lane;
        if let Some(keeper) = keeper_of(lane, job.stages, job.replicas).filter(|_| !log.get().keeper_failed) {
            let (worker, _) = self.ports.chain.assignment(keeper).await?;
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
        let (claim, committed_at, state) = on_disk(log, interval)?;
        let digest = self.ports.contracts.holding(self.ports.contracts.claim_id(&claim));
        match self.ask(holder, &Request::Keep { claim, committed_at, state }).await? {
            Response::Holding(signature) => {
                verify_signer(&signature, digest, holder)?;
                Ok(Holder { stage: at.stage, replica: at.replica, signature: signature.into() })
            }
            Response::Declined(reason) => Err(Unheld::Declined(holder, reason)),
            other => Err(Unheld::Declined(holder, format!("{other:?}"))),
        }
    }

    async fn ask(&self, holder: Address, question: &Request) -> Result<Response, Unheld> {
        let answer = self.ports.net.request(holder, Protocol::Rpc, encode("request", question)?).await?;
        Ok(decode("response", &answer)?)
    }

    /// Has the newest state that is claimed mirrored by whoever keeps others: if this worker is gone, its job goes on
    /// from there. Again and again, but never for more than a small part of the time.
    pub(crate) async fn mirror(&self, log: &LaneLog, job: &JobView, stop: &CancellationToken) {
        let mut changes = log.watch();
        let mut mirrored = None;
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let record = log.get();
            let newest = record.newest_claimed().filter(|newest| mirrored < Some(newest.claim.interval));
            let Some(newest) = newest else {
                tokio::select! {
                    () = stop.cancelled() => return,
                    changed = changes.changed() => if changed.is_err() { return },
                }
                continue;
            };
            let began = Instant::now();
            let pause = match self.mirror_of(log, newest, job).await {
                Ok(()) => {
                    mirrored = Some(newest.claim.interval);
                    PAUSE.0.max(began.elapsed().saturating_mul(SPARED))
                }
                Err(error) => {
                    tracing::debug!(lane = %record.lane, %error, "nobody mirrors this state yet");
                    // Who does not answer has fetched nothing.
                    let fetched = matches!(error, Unheld::Declined(..));
                    if fetched { PAUSE.1.max(began.elapsed().saturating_mul(SPARED)) } else { PAUSE.1 }
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.ports.clock.sleep(pause) => {}
            }
        }
    }

    async fn mirror_of(&self, log: &LaneLog, interval: &Interval, job: &JobView) -> Result<(), Unheld> {
        let holder = match keeper_of(log.get().lane, job.stages, job.replicas).filter(|_| !log.get().keeper_failed) {
            Some(keeper) => self.ports.chain.assignment(keeper).await?.0,
            None => job.user,
        };
        let (claim, committed_at, state) = on_disk(log, interval)?;
        match self.ask(holder, &Request::Mirror { claim, committed_at, state }).await? {
            Response::Done => Ok(()),
            Response::Declined(reason) => Err(Unheld::Declined(holder, reason)),
            other => Err(Unheld::Declined(holder, format!("{other:?}"))),
        }
    }
}

/// A claim, its time, and the CID of the state that it ends in, which is here.
fn on_disk(log: &LaneLog, interval: &Interval) -> Result<(Claim, u64, Vec<u8>), Unheld> {
    let gone = || Unheld::Record("the state is not on disk any more".to_owned());
    let state = log.get().state_after(interval.claim.interval).and_then(|cid| cid.parse::<Cid>().ok());
    let (state, committed_at) = state.zip(interval.committed_at).ok_or_else(gone)?;
    Ok((interval.claim.clone(), committed_at, state.to_bytes()))
}
