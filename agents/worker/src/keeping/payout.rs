//! Gets a worker's stake and pay out of jobs, whatever their users do: cancels what does not start, settles what is
//! over, collects.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::Ports;
use tensorlink_node::ports::chain::{JobState, JobView};
use tensorlink_node::ports::{Call, Chain, ChainError};
use tensorlink_types::{JobId, Lane};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::context::BACK_OFF;
use crate::state::Lanes;

/// Wait before a lane whose job has ended is settled by us, for a user who left; then between attempts.
const SETTLE: Duration = Duration::from_secs(30);
/// Longest wait between two looks at a job that is accepted and not started.
const LATE: Duration = Duration::from_secs(60);

/// Stake and pay of a worker.
pub(crate) struct Payout {
    ports: Ports,
    lanes: Arc<Lanes>,
    /// Held while collecting: two at once would pay for an empty second.
    collecting: Mutex<()>,
}

impl Payout {
    pub(crate) fn new(ports: Ports, lanes: Arc<Lanes>) -> Self {
        Self { ports, lanes, collecting: Mutex::default() }
    }

    /// Cancels the job of an accepted lane that its user does not start in time: only then is our stake free.
    pub(crate) async fn await_start(self: Arc<Self>, lane: Lane) {
        let Some(stop) = self.lanes.stops(lane).map(|stops| stops.all) else { return };
        loop {
            let wait = match self.cancel_if_late(lane.job).await {
                Ok(Some(left)) => Duration::from_secs(left).clamp(BACK_OFF, LATE),
                Ok(None) => return,
                Err(error) => {
                    tracing::debug!(%lane, %error, "cannot see whether the job starts");
                    LATE
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.ports.clock.sleep(wait) => {}
            }
        }
    }

    /// Seconds an accepted job may still take to start; none if it did, or is cancelled.
    async fn cancel_if_late(&self, job: JobId) -> Result<Option<u64>, ChainError> {
        let Some(view) = self.ports.chain.job(job).await?.filter(|job| job.state == JobState::Accepted) else {
            return Ok(None);
        };
        let now = self.ports.chain.head().await?.timestamp;
        if now <= view.accept_by {
            return Ok(Some(view.accept_by - now + 1));
        }
        let receipt = self.ports.chain.send(Call::Cancel { job }).await?;
        tracing::info!(%job, gas = receipt.gas, "cancelled: its user did not start it in time");
        // A reorganisation may undo it.
        Ok(Some(LATE.as_secs()))
    }

    /// Gives the user time to settle a job whose claims are all final, and then tries to.
    pub(crate) async fn settle(&self, job: JobId, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.ports.clock.sleep(SETTLE) => {}
        }
        match stop.run_until_cancelled(self.ports.send_within_budget(Call::Settle { job })).await {
            Some(Ok(receipt)) => tracing::info!(%job, gas = receipt.gas, "settled"),
            Some(Err(error)) => tracing::info!(%job, %error, "not settled"),
            None => {}
        }
    }

    /// Collects what a job has brought, once the day's budget for gas has room for it.
    pub(crate) async fn collect(self: Arc<Self>, job: JobId) {
        let own = self.ports.identity.address();
        let _turn = self.collecting.lock().await;
        let result = async {
            let Some(view) = self.ports.chain.job(job).await? else { return Ok(()) };
            let credit = self.ports.chain.credit(own, view.token).await?;
            if !credit.is_zero() {
                let receipt = self.ports.send_within_budget(Call::Collect { token: view.token }).await?;
                tracing::info!(%job, %credit, gas = receipt.gas, "collected");
            }
            Ok::<(), ChainError>(())
        };
        if let Err(error) = result.await {
            tracing::warn!(%job, %error, "not collected; `tensorlink withdraw` does it later");
        }
    }
}

/// Closes a job that ran past its deadline, whoever left it open: only then is what it owes paid and stake free.
pub(crate) async fn close(chain: &dyn Chain, job: &JobView) -> Result<(), ChainError> {
    match chain.send(Call::Cancel { job: job.id }).await {
        Ok(receipt) => tracing::info!(job = %job.id, gas = receipt.gas, "closed: its deadline is over"),
        Err(ChainError::Reverted { name, arguments }) => {
            tracing::info!(job = %job.id, %name, %arguments, "past its deadline and not closed yet");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
