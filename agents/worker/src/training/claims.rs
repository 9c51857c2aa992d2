//! Takes finished intervals to the chain: commits each once, or seals and reveals it (see [`super::sealing`]), and
//! finalises it when its window is over.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::ports::chain::{JobState, JobView, LaneView};
use tensorlink_node::ports::{Call, Chain, ChainError};
use tokio_util::sync::CancellationToken;

use super::claimant::{Claimant, ClaimsError, Failure, Made, commit};
use super::sealing::Sealer;
use crate::context::BACK_OFF;
use crate::keeping::close;
use crate::record::{Interval, LaneLog};

/// Longest wait between two looks at the chain.
const PERIOD: Duration = Duration::from_millis(1000);
/// Wait while the day's budget for gas is used up.
const HELD_BACK: Duration = Duration::from_secs(60);
/// Claims finalised by one transaction.
const BATCH: usize = 16;
/// Claims committed before those that can be final are looked after: however many queue, nobody waits for its pay.
const COMMITS: usize = 8;

/// Whether there is more to do.
enum Outlook {
    /// At once.
    Now,
    /// In a while.
    Later,
    Done,
}

/// Runs until every claim that the lane can make is final, the lane is convicted, or `stop`.
///
/// # Errors
/// [`ClaimsError`]; failures of the chain are retried for ever, and those of the disk: a full one is none for good.
pub async fn run(by: Claimant, log: Arc<LaneLog>, stop: CancellationToken) -> Result<(), ClaimsError> {
    let mut changes = log.watch();
    let mut refused = None;
    loop {
        changes.mark_unchanged();
        let wait = match advance(&by, &log, &mut refused).await {
            Ok(Outlook::Done) => return Ok(()),
            Ok(Outlook::Now) => Duration::ZERO,
            Ok(Outlook::Later) => PERIOD,
            Err(Failure::Final(error)) => return Err(error),
            // Said where it is held back; claims themselves are made all the same.
            Err(Failure::Chain(error @ ChainError::OverBudget { .. })) => {
                tracing::debug!(lane = %log.get().lane, %error, "finality waits");
                HELD_BACK
            }
            Err(Failure::Chain(error)) => {
                tracing::warn!(lane = %log.get().lane, %error, "claims wait for the chain");
                BACK_OFF
            }
            Err(Failure::Disk(error)) => {
                tracing::error!(lane = %log.get().lane, %error, "claims wait for the disk");
                BACK_OFF
            }
        };
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            Ok(()) = changes.changed() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// `refused`: why claims were not finalised at the last look, so that it is said once and not all the hours that a
/// challenge takes.
async fn advance(by: &Claimant, log: &LaneLog, refused: &mut Option<(String, String)>) -> Result<Outlook, Failure> {
    let (chain, lane, mut queues) = (by.chain.as_ref(), log.get().lane, false);
    let Some(job) = chain.job(lane.job).await? else { return Ok(Outlook::Later) };
    let view = chain.lane(lane).await?;
    if let Some(from) = view.void_from
        && view.finalized >= from
    {
        return Err(Failure::Final(ClaimsError::Convicted(from)));
    }
    let late = job.state == JobState::Running && job.deadline < chain.head().await?.timestamp;
    if late {
        close(chain, &job).await?;
    }
    if job.replicas > 1 && matches!(job.state, JobState::Running | JobState::Closing) {
        forget_undone(chain, log, view.finalized).await?;
        Sealer { by, log }.advance(&job).await?;
    } else if job.state == JobState::Running && !late {
        forget_undone(chain, log, view.finalized).await?;
        for _ in 0..COMMITS {
            queues = commit_next(chain, log).await?;
            if !queues {
                break;
            }
        }
    }
    finalize(chain, log, &job, view, refused).await?;
    Ok(match outlook(&job, log, chain.lane(lane).await?) {
        Outlook::Later if queues => Outlook::Now,
        outlook => outlook,
    })
}

/// A reorganisation may have undone a block whose receipt we saw, or that was confirmed: no depth is too deep. Claims
/// follow each other, so if the chain has the last one, it has all; else those that it lacks are made again.
async fn forget_undone(chain: &dyn Chain, log: &LaneLog, finalized: u32) -> Result<(), Failure> {
    let record = log.get();
    let made = || record.intervals.range(finalized..).filter(|(_, interval)| interval.committed_at.is_some());
    let Some((last, _)) = made().next_back() else { return Ok(()) };
    if chain.is_committed(record.lane, *last).await? {
        return Ok(());
    }
    for (&first, _) in made() {
        if chain.is_committed(record.lane, first).await? {
            continue;
        }
        tracing::warn!(lane = %record.lane, interval = first, "a reorganisation undid the claim; it is made again");
        log.update(|record| {
            for (_, interval) in record.intervals.range_mut(first..) {
                (interval.committed_at, interval.confirmed) = (None, false);
            }
        })?;
        break;
    }
    Ok(())
}

/// Nothing is left when the last interval is final, or no more claims are taken and none is waiting.
fn outlook(job: &JobView, log: &LaneLog, lane: LaneView) -> Outlook {
    let record = log.get();
    let open = lane.finalized..lane.void_from.unwrap_or(u32::MAX).max(lane.finalized);
    let waits = |(number, interval): (&u32, &Interval)| {
        interval.committed_at.is_some() || (interval.sealed && !record.is_barred(*number))
    };
    let pending = record.intervals.range(open).any(waits);
    let no_more = job.state == JobState::Closing || record.barred_from.is_some();
    let ended = job.state == JobState::Settled || (no_more && !pending);
    if lane.finalized >= job.intervals || ended { Outlook::Done } else { Outlook::Later }
}

/// Commits the next claim; whether it did.
async fn commit_next(chain: &dyn Chain, log: &LaneLog) -> Result<bool, Failure> {
    let Some((claim, previous)) = log.get().next_to_commit() else { return Ok(false) };
    let call = Call::Commit { claim: claim.clone(), previous };
    Ok(matches!(commit(chain, log, call, &claim).await?, Made::Done))
}

async fn finalize(
    chain: &dyn Chain,
    log: &LaneLog,
    job: &JobView,
    lane: LaneView,
    refused: &mut Option<(String, String)>,
) -> Result<(), Failure> {
    let now = chain.head().await?.timestamp;
    // What came before a conviction was right, and is paid.
    let most = lane.void_from.map_or(BATCH, |from| BATCH.min(from.saturating_sub(lane.finalized) as usize));
    let (claims, holder) = log.get().finalizable(lane.finalized, job.challenge_window, now, most);
    let Some((last, _)) = claims.last() else { return Ok(()) };
    let (count, last) = (claims.len(), last.interval);
    match chain.send(Call::Finalize { claims, holder }).await {
        Ok(receipt) => {
            tracing::info!(lane = %log.get().lane, count, gas = receipt.gas, "claims final");
            *refused = None;
            Ok(())
        }
        Err(ChainError::Reverted { name, arguments }) => {
            let reason = (name.clone(), arguments);
            if refused.as_ref() != Some(&reason) {
                tracing::info!(lane = %log.get().lane, %name, arguments = %reason.1, "claims cannot be finalised yet");
                *refused = Some(reason);
            }
            if name == "WrongHolder" {
                // Who gave the attestation was convicted since.
                log.update(|record| {
                    record.keeper_failed = true;
                    if let Some(interval) = record.intervals.get_mut(&last) {
                        interval.holder = None;
                    }
                })?;
            } else if name == "Challenged" && count > 1 {
                // A challenge or a demand holds one back, but not those before it.
                return finalize_first(chain, log, job, lane.finalized, now).await;
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Finalises a lane's next claim alone.
async fn finalize_first(chain: &dyn Chain, log: &LaneLog, job: &JobView, first: u32, now: u64) -> Result<(), Failure> {
    let (claims, holder) = log.get().finalizable(first, job.challenge_window, now, 1);
    if claims.is_empty() {
        return Ok(());
    }
    match chain.send(Call::Finalize { claims, holder }).await {
        Ok(_) | Err(ChainError::Reverted { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes in a confirmed claim of this lane, whoever's receipt told us first: a reorganisation may have moved it to
/// another block.
///
/// # Errors
/// [`ClaimsError::Foreign`] if it is not the claim we computed.
pub fn confirmed(log: &LaneLog, claim: &tensorlink_types::abi::Claim, committed_at: u64) -> Result<(), ClaimsError> {
    let record = log.get();
    match record.intervals.get(&claim.interval) {
        Some(own) if own.claim != *claim => return Err(ClaimsError::Foreign(claim.interval)),
        // Not computed here yet: the data folder is an old one, or another machine uses this key.
        None if claim.interval >= record.next => return Err(ClaimsError::Foreign(claim.interval)),
        // Long final, and forgotten.
        None => return Ok(()),
        Some(_) => {}
    }
    log.update(|record| {
        if let Some(entry) = record.intervals.get_mut(&claim.interval) {
            entry.committed_at = Some(committed_at);
            entry.confirmed = true;
        }
    })?;
    Ok(())
}
