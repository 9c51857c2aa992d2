//! The events of one job, looked up from the newest block back, so that a job of today costs little on an old chain.

use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::ports::{Chain, ChainError, Event, EventAt};

use super::Signs;

/// Blocks looked up at once.
const BLOCKS: u64 = 5_000;

/// What confirmed events tell of a job's lanes; nothing of a job that has no workers yet, or is settled.
///
/// # Errors
/// [`ChainError`]: the chain cannot be asked now.
pub async fn signs(chain: &dyn Chain, view: &JobView) -> Result<Signs, ChainError> {
    let mut signs = Signs::new(view.id);
    if matches!(view.state, JobState::Posted | JobState::Settled) {
        return Ok(signs);
    }
    let accepted = |at: &EventAt| matches!(&at.event, Event::JobAccepted { job, .. } if *job == view.id);
    let (first, mut to) = (chain.deployment().block, chain.head().await?.number);
    let mut found: Vec<Vec<EventAt>> = Vec::new();
    loop {
        let from = to.saturating_sub(BLOCKS - 1).max(first);
        let events = chain.past_events(from, to).await?;
        let is_first = events.iter().any(accepted);
        found.push(events);
        if is_first || from <= first {
            break;
        }
        to = from - 1;
    }
    for at in found.iter().rev().flatten() {
        signs.take_in(at);
    }
    Ok(signs)
}
