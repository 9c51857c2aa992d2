//! A claim whose worker accuses an auditor is looked into as long as it can be challenged.

use tensorlink_node::ports::ChainError;
use tensorlink_program::engine::Engine;
use tensorlink_proof::fraud::Signed;

use crate::auditor::Auditor;
use crate::examine::decided;
use crate::open::is_open;
use crate::patience::{LOOK, Pauses};
use crate::target::Target;

/// Convicts a worker that accuses an auditor falsely, as long as its claim can be challenged.
pub(crate) async fn defend<E: Engine + Send + 'static>(auditor: &Auditor<E>, target: &Target, accusation: &Signed) {
    let (lane, interval) = (target.claim.lane(), target.claim.interval);
    let mut pauses = Pauses::new();
    loop {
        let waited = await_hunt(auditor, target).await;
        match waited.and(is_open(&auditor.ports, &auditor.games, target).await) {
            Ok(true) => {
                if decided(target, auditor.defend(target, accusation).await) {
                    return;
                }
            }
            Ok(false) => return,
            Err(error) => tracing::warn!(%lane, interval, %error, "the chain cannot be asked"),
        }
        pauses.pause(&auditor.ports).await;
    }
}

/// Waits while an audit of ours looks into a claim whose worker accuses an auditor, at most until nobody can accuse
/// any more: it may convict by the worker's own answers, which costs no challenge.
async fn await_hunt<E>(auditor: &Auditor<E>, target: &Target) -> Result<(), ChainError> {
    let ports = &auditor.ports;
    let Some(at) = target.fixed_at() else { return Ok(()) };
    let Some(job) = ports.chain.job(target.claim.lane().job).await? else { return Ok(()) };
    let until = auditor.answers.accused_until(at, job.challenge_window);
    while auditor.hunts.is_on(target.id) && ports.chain.head().await?.timestamp < until {
        ports.clock.sleep(LOOK.0).await;
    }
    Ok(())
}
