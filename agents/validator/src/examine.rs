//! Attempts at a claim, until it is found right or its worker is convicted.

use tensorlink_program::engine::Engine;
use tokio::sync::OwnedSemaphorePermit;

use crate::auditor::{Auditor, convict};
use crate::challenge::ChallengeEnd;
use crate::finding::{AuditError, Finding};
use crate::open::is_open;
use crate::patience::{ATTEMPTS, Pauses, await_time};
use crate::target::Target;

/// From this attempt on a worker whose answers do not decide is made to answer on chain.
const FORCED: u32 = 2;

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
pub(crate) async fn examine<E: Engine + Send + 'static>(
    auditor: &Auditor<E>,
    target: &Target,
    mut slot: Option<OwnedSemaphorePermit>,
) -> bool {
    let (claim, lane, interval) = (target.id, target.claim.lane(), target.claim.interval);
    let hunt = auditor.hunts.join(claim);
    let (mut pauses, mut attempt, mut is_wrong) = (Pauses::new(), 0, false);
    while attempt < ATTEMPTS {
        let turn = hunt.lock().await;
        let next = match is_open(&auditor.ports, &auditor.games, target).await {
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
                await_time(&auditor.ports, until).await;
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
        pauses.pause(&auditor.ports).await;
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
pub(crate) fn decided(target: &Target, ended: Result<ChallengeEnd, AuditError>) -> bool {
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
