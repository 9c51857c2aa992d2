//! One thing that a validator looks into, for as long as its patience lasts: a claim, or the list of an
//! epoch's receipts.

use std::time::Duration;

use tensorlink_node::ports::ChainError;
use tensorlink_node::ports::chain::JobState;
use tensorlink_program::engine::Engine;
use tensorlink_proof::fraud::Signed;
use tensorlink_types::{ClaimId, JobId};
use tokio::sync::OwnedSemaphorePermit;

use crate::auditor::Auditor;
use crate::challenge::ChallengeEnd;
use crate::conviction::convict;
use crate::draw::Rate;
use crate::epoch::Epoch;
use crate::finding::{AuditError, Finding};
use crate::target::{Standing, Target};

/// Attempts at a claim whose audit fails on our side or stays without an answer.
const ATTEMPTS: u32 = 6;
/// From this attempt on a worker whose answers do not decide is made to answer on chain.
const FORCED: u32 = 2;
/// Waits between attempts: the first, and the longest. Together they outlast a worker's restart.
const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// Something to look into.
pub(crate) enum Task {
    /// A claim that was drawn.
    Claim(Target),
    /// An epoch of receipts, to be drawn from.
    Epoch(Epoch),
    /// A claim on which we have a challenge open.
    Challenged(Target),
    /// A claim whose worker accuses an auditor of a wrong answer.
    Accused(Target, Signed),
}

/// What came of it.
pub(crate) enum Ended {
    /// Nothing is left to do about a claim.
    Claim(ClaimId),
    /// These receipts are listed, and these of them we chose to look at.
    Epoch { listed: Vec<Target>, chosen: Vec<Target> },
    /// It was not decided.
    Open,
}

impl Task {
    /// What has a clock against us, and waits for no place.
    pub(crate) const fn is_urgent(&self) -> bool {
        matches!(self, Self::Challenged(_) | Self::Accused(..))
    }

    /// Does it, with bounded patience.
    /// `slot` is its place among those looked into at once, which it leaves where it only waits for a challenge.
    pub(crate) async fn run<E: Engine + Send + 'static>(
        self,
        auditor: &Auditor<E>,
        rate: Rate,
        slot: Option<OwnedSemaphorePermit>,
    ) -> Ended {
        match self {
            Self::Claim(target) => {
                if examine(auditor, &target, slot).await {
                    Ended::Claim(target.id)
                } else {
                    Ended::Open
                }
            }
            Self::Challenged(target) => {
                drop(slot);
                let ended = auditor.resume(&target).await;
                if decided(&target, ended) { Ended::Claim(target.id) } else { Ended::Open }
            }
            Self::Accused(target, accusation) => {
                drop(slot);
                defend(auditor, &target, &accusation).await;
                Ended::Open
            }
            Self::Epoch(epoch) => match list(auditor, &epoch, rate).await {
                Some((listed, chosen)) => Ended::Epoch { listed, chosen },
                None => Ended::Open,
            },
        }
    }
}

/// Convicts a worker that accuses an auditor falsely, as long as its claim can be challenged.
async fn defend<E: Engine + Send + 'static>(auditor: &Auditor<E>, target: &Target, accusation: &Signed) {
    let (lane, interval) = (target.claim.lane(), target.claim.interval);
    let mut pause = PAUSE.0;
    loop {
        let waited = auditor.await_hunt(target).await;
        match waited.and(is_open(auditor, target).await) {
            Ok(true) => {
                if decided(target, auditor.defend(target, accusation).await) {
                    return;
                }
            }
            Ok(false) => return,
            Err(error) => tracing::warn!(%lane, interval, %error, "the chain cannot be asked"),
        }
        auditor.ports.clock.sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE.1);
    }
}

/// Draws among an epoch's receipts, with bounded patience for its worker; none if it does not tell them.
async fn list<E: Engine + Send + 'static>(
    auditor: &Auditor<E>,
    epoch: &Epoch,
    rate: Rate,
) -> Option<(Vec<Target>, Vec<Target>)> {
    let lane = epoch.lane;
    let mut pause = PAUSE.0;
    for attempt in 1..=ATTEMPTS {
        match is_serving(auditor, lane.job).await {
            Ok(true) => match epoch.claims(auditor).await {
                Ok(targets) => match epoch.draw(auditor, &targets, rate) {
                    Ok(drawn) => {
                        tracing::info!(%lane, epoch = epoch.epoch, drawn = drawn.len(), "an epoch's receipts are listed");
                        return Some((targets, drawn));
                    }
                    Err(error) => tracing::error!(%lane, %error, "the lottery cannot be drawn"),
                },
                Err(error) => tracing::warn!(%lane, epoch = epoch.epoch, %error, attempt, "the receipts are not told"),
            },
            Ok(false) => return None,
            Err(error) => tracing::warn!(%lane, %error, "the chain cannot be asked"),
        }
        auditor.ports.clock.sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE.1);
    }
    tracing::error!(%lane, epoch = epoch.epoch, "given up: the worker does not answer for receipts that it redeemed");
    None
}

/// What an attempt at a claim leaves to do.
enum Next {
    /// Nothing.
    Nothing,
    /// Another attempt.
    Again,
    /// Proving it wrong, from this time on.
    Prove(u64),
    /// Making its worker answer on chain.
    Challenge,
}

/// Audits a claim and convicts its worker if it is wrong, with bounded patience. Whether nothing is left to do
/// about it.
async fn examine<E: Engine + Send + 'static>(
    auditor: &Auditor<E>,
    target: &Target,
    mut slot: Option<OwnedSemaphorePermit>,
) -> bool {
    let (claim, lane, interval) = (target.id, target.claim.lane(), target.claim.interval);
    let hunt = auditor.hunts.join(claim);
    let (mut pause, mut attempt, mut is_wrong) = (PAUSE.0, 0, false);
    while attempt < ATTEMPTS {
        let turn = hunt.lock().await;
        let next = match is_open(auditor, target).await {
            Ok(true) => {
                attempt += 1;
                attempt_at(auditor, target, (attempt, is_wrong)).await
            }
            Ok(false) => {
                tracing::info!(%claim, %lane, interval, attempt, "cannot be challenged any more");
                Next::Nothing
            }
            // No attempt: without the chain there is nothing to do but wait for it.
            Err(error) => {
                tracing::warn!(%claim, %error, "the chain cannot be asked");
                Next::Again
            }
        };
        drop(turn);
        match next {
            Next::Nothing => return true,
            Next::Prove(until) => {
                // It may be hours: others are looked into meanwhile.
                slot.take();
                auditor.await_time(until).await;
                // What the worker could not be asked yet was no attempt at its answers.
                (attempt, is_wrong) = (attempt.saturating_sub(1), true);
                continue;
            }
            Next::Challenge => {
                if challenge(auditor, target, &mut slot).await {
                    return true;
                }
            }
            Next::Again => {}
        }
        auditor.ports.clock.sleep(pause).await;
        pause = pause.saturating_mul(2).min(PAUSE.1);
    }
    tracing::error!(%claim, %lane, interval, "given up: the claim is neither found right nor proven wrong");
    false
}

/// One attempt at a claim, which may have been found wrong before.
async fn attempt_at<E: Engine + Send + 'static>(
    auditor: &Auditor<E>,
    target: &Target,
    (attempt, is_wrong): (u32, bool),
) -> Next {
    let (lane, interval) = (target.claim.lane(), target.claim.interval);
    let finding = if is_wrong { auditor.prove(target).await } else { auditor.audit(target).await };
    match finding {
        Ok(Finding::Right) => {
            tracing::info!(%lane, interval, "audited: right");
            return Next::Nothing;
        }
        Ok(Finding::Wrong { call, fault }) => match convict(auditor, call).await {
            Ok(gas) => {
                tracing::warn!(%lane, interval, %fault, gas, "convicted");
                // The bond of a challenge that was opened before comes back.
                if auditor.games.on(target.id).is_none() || decided(target, auditor.resume(target).await) {
                    return Next::Nothing;
                }
            }
            Err(error) => tracing::error!(%lane, interval, %fault, %error, attempt, "not convicted"),
        },
        Ok(Finding::Withheld { until }) => {
            tracing::warn!(%lane, interval, until, "the claim is wrong: its worker can be asked a little later");
            return Next::Prove(until);
        }
        Ok(Finding::Unproven(reason)) => {
            tracing::warn!(%lane, interval, %reason, attempt, "the claim cannot be checked");
            if attempt >= FORCED {
                return Next::Challenge;
            }
        }
        Err(error) => tracing::warn!(%lane, interval, %error, attempt, "the audit failed"),
    }
    Next::Again
}

/// Makes a worker answer on chain; whether that decided about its claim. Others are looked into meanwhile.
async fn challenge<E: Engine + Send + 'static>(
    auditor: &Auditor<E>,
    target: &Target,
    slot: &mut Option<OwnedSemaphorePermit>,
) -> bool {
    let Ok(_play) = auditor.plays.try_acquire() else {
        let (lane, interval) = (target.claim.lane(), target.claim.interval);
        tracing::warn!(%lane, interval, "as many challenges are played as this node can");
        return false;
    };
    slot.take();
    decided(target, auditor.challenge(target).await)
}

/// Whether a challenge decided about its claim.
fn decided(target: &Target, ended: Result<ChallengeEnd, AuditError>) -> bool {
    let (lane, interval) = (target.claim.lane(), target.claim.interval);
    match ended {
        Ok(ChallengeEnd::Right) => tracing::info!(%lane, interval, "audited without its worker: right"),
        Ok(ChallengeEnd::Convicted(found)) => tracing::warn!(%lane, interval, %found, "convicted by a challenge"),
        Ok(ChallengeEnd::Taken) => return false,
        Ok(ChallengeEnd::Lost(reason)) => {
            tracing::warn!(%lane, interval, %reason, "a challenge brought nothing");
            return false;
        }
        Err(error) => {
            tracing::warn!(%lane, interval, %error, "no challenge could be played");
            return false;
        }
    }
    true
}

/// Whether the claim can still be challenged.
async fn is_open<E>(auditor: &Auditor<E>, target: &Target) -> Result<bool, ChainError> {
    // A challenge of ours is played to its end, whatever time it is.
    if auditor.games.on(target.id).is_some() {
        return Ok(true);
    }
    let at = target.claim.lane();
    let committed_at = match target.standing {
        Standing::Committed { at } => at,
        Standing::Receipt => return is_serving(auditor, at.job).await,
    };
    let lane = auditor.ports.chain.lane(at).await?;
    let void = lane.void_from.is_some_and(|from| target.claim.interval >= from);
    if target.claim.interval < lane.finalized || void {
        return Ok(false);
    }
    // An endpoint that does not know the job yet will.
    let Some(job) = auditor.ports.chain.job(at.job).await? else { return Ok(true) };
    let now = auditor.ports.chain.head().await?.timestamp;
    // As long as it is not final, for two windows (rule P-8).
    Ok(now < committed_at.saturating_add(job.challenge_window.saturating_mul(2)))
}

/// Whether receipts of a job can still be proven wrong: until it can be settled whatever was redeemed last, a window
/// after that was over (rule P-20).
async fn is_serving<E>(auditor: &Auditor<E>, job: JobId) -> Result<bool, ChainError> {
    let Some(job) = auditor.ports.chain.job(job).await? else { return Ok(false) };
    Ok(match job.state {
        JobState::Running => true,
        JobState::Closing => {
            auditor.ports.chain.head().await?.timestamp < job.deadline.saturating_add(job.challenge_window)
        }
        JobState::Posted | JobState::Accepted | JobState::Settled => false,
    })
}
