//! How long a claim can be proven wrong.

use tensorlink_node::ports::ChainError;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::{Games, Ports};
use tensorlink_types::JobId;

use crate::target::{Standing, Target};

/// Whether the claim can still be challenged.
pub(crate) async fn is_open(ports: &Ports, games: &Games, target: &Target) -> Result<bool, ChainError> {
    // A challenge of ours is played to its end, whatever time it is.
    if games.on(target.id).is_some() {
        return Ok(true);
    }
    let at = target.claim.lane();
    let committed_at = match target.standing {
        Standing::Committed { at } => at,
        Standing::Receipt => return is_serving(ports, at.job).await,
    };
    let lane = ports.chain.lane(at).await?;
    let void = lane.void_from.is_some_and(|from| target.claim.interval >= from);
    if target.claim.interval < lane.finalized || void {
        return Ok(false);
    }
    // An endpoint that does not know the job yet will.
    let Some(job) = ports.chain.job(at.job).await? else { return Ok(true) };
    let now = ports.chain.head().await?.timestamp;
    // As long as it is not final, for two windows (rule P-8).
    Ok(now < committed_at.saturating_add(job.challenge_window.saturating_mul(2)))
}

/// Whether receipts of a job can still be proven wrong: until it can be settled whatever was redeemed last, a window
/// after that was over (rule P-20).
pub(crate) async fn is_serving(ports: &Ports, job: JobId) -> Result<bool, ChainError> {
    let Some(job) = ports.chain.job(job).await? else { return Ok(false) };
    Ok(match job.state {
        JobState::Running => true,
        JobState::Closing => ports.chain.head().await?.timestamp < job.deadline.saturating_add(job.challenge_window),
        JobState::Posted | JobState::Accepted | JobState::Settled => false,
    })
}
