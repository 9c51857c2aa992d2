//! A job is moved towards its settlement, so that no worker can hold the user's escrow back by leaving.

use std::collections::BTreeMap;

use tensorlink_node::Ports;
use tensorlink_node::ports::chain::{JobState, Receipt};
use tensorlink_node::ports::{Call, ChainError, CustodyMove, Event, EventAt};
use tensorlink_types::abi::{Claim, Holder, JobKind};
use tensorlink_types::{JobId, Lane};
use tokio::sync::watch;

use crate::told::claims_of;

/// Seconds a worker has to finalise its claims itself before the user does it.
const GRACE: u64 = 3;
/// Claims finalised by one transaction.
const BATCH: usize = 16;

/// Settles jobs.
pub(crate) struct Settlement {
    ports: Ports,
    events: watch::Receiver<Vec<EventAt>>,
}

impl Settlement {
    /// Of the jobs that these events are about.
    pub(crate) const fn new(ports: Ports, events: watch::Receiver<Vec<EventAt>>) -> Self {
        Self { ports, events }
    }

    /// Moves a job towards settlement as far as it goes now: finalises claims whose window is over, of whatever
    /// lane, and settles it once none is pending. No worker can hold the user's escrow back by leaving. Whether the
    /// job is settled.
    ///
    /// # Errors
    /// [`ChainError`] when the chain fails; what is refused for now is tried at the next call.
    pub(crate) async fn wind_up(&self, job: JobId) -> Result<bool, ChainError> {
        let Some(view) = self.ports.chain.job(job).await? else { return Ok(false) };
        if view.state == JobState::Settled {
            return Ok(true);
        }
        if view.kind == JobKind::Serving {
            // Its receipts are on no record: the contract knows when the windows of its end and of what it redeemed
            // last are over (rule P-20).
            let closing = view.state == JobState::Closing;
            return if closing { attempt(self.ports.chain.send(Call::Settle { job }).await) } else { Ok(false) };
        }
        let now = self.ports.chain.head().await?.timestamp;
        self.end_demands(job, now).await?;
        let mut pending = false;
        let mut finished = true;
        for lane in (0..view.replicas).flat_map(|replica| (0..view.stages).map(move |stage| (stage, replica))) {
            let lane = Lane { job, stage: lane.0, replica: lane.1 };
            let state = self.ports.chain.lane(lane).await?;
            let open = state.finalized..state.void_from.unwrap_or(view.intervals).max(state.finalized);
            let mut claims: Vec<(Claim, u64)> = claims_of(&self.events.borrow(), lane, open).collect();
            pending |= !claims.is_empty();
            // Who did not seal in time makes no more claims, and nobody waits for it.
            finished &=
                state.finalized >= view.intervals || (view.replicas > 1 && self.ports.chain.is_too_late(lane).await?);
            claims.truncate(BATCH);
            let mut ripe = 0;
            for (_, at) in &claims {
                // No attestation is at hand here that somebody else has the states: two windows, then (rule P-34).
                if at.saturating_add(view.challenge_window.saturating_mul(2)).saturating_add(GRACE) > now {
                    break;
                }
                ripe += 1;
            }
            claims.truncate(ripe);
            if !claims.is_empty() {
                attempt(self.ports.chain.send(Call::Finalize { claims, holder: Holder::default() }).await)?;
            }
        }
        if !pending && (finished || view.state == JobState::Closing) {
            return attempt(self.ports.chain.send(Call::Settle { job }).await);
        }
        Ok(false)
    }

    /// Ends demands in a job that were not met in time: they hold back its claims. The chain's time is `now`.
    async fn end_demands(&self, of: JobId, now: u64) -> Result<(), ChainError> {
        let mut open = BTreeMap::new();
        for at in self.events.borrow().iter() {
            match &at.event {
                Event::Demanded { id, demand } if demand.job == of.0 => drop(open.insert(*id, demand.clone())),
                Event::DemandEnded { id, .. } => drop(open.remove(id)),
                _ => {}
            }
        }
        for (id, demand) in open.into_iter().filter(|(_, demand)| now > demand.deadline.to::<u64>()) {
            let call = Call::Custody(Box::new(CustodyMove::Expire { id, demand: *demand }));
            attempt(self.ports.chain.attempt(call).await)?;
        }
        Ok(())
    }
}

/// Whether a call was carried out; a refusal passes with time.
fn attempt(result: Result<Receipt, ChainError>) -> Result<bool, ChainError> {
    match result {
        Ok(_) => Ok(true),
        Err(ChainError::Reverted { name, arguments }) => {
            tracing::debug!(%name, %arguments, "not yet");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
