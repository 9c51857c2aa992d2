//! Gets a worker's stake and pay out of jobs, whatever their users do: cancels what does not start, settles what is
//! over, collects.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_model::CacheEngine;
use tensorlink_node::ports::chain::JobState;
use tensorlink_node::ports::{Call, ChainError};
use tensorlink_types::{JobId, Lane};
use tokio_util::sync::CancellationToken;

use crate::role::{BACK_OFF, Worker};

/// Wait before a lane whose job has ended is settled by us, for a user who left; then between attempts.
const SETTLE: Duration = Duration::from_secs(30);
/// Longest wait between two looks at a job that is accepted and not started.
const LATE: Duration = Duration::from_secs(60);

impl<E> Worker<E>
where
    E: CacheEngine + Send + 'static,
    E::Tensor: Send + 'static,
{
    /// Cancels the job of an accepted lane that its user does not start in time: only then is our stake free.
    pub(crate) async fn await_start(self: Arc<Self>, lane: Lane) {
        let Some(stop) = self.lanes().get(&lane).map(|running| running.all.clone()) else { return };
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
                () = self.context.ports.clock.sleep(wait) => {}
            }
        }
    }

    /// Seconds an accepted job may still take to start; none if it did, or is cancelled.
    async fn cancel_if_late(&self, job: JobId) -> Result<Option<u64>, ChainError> {
        let Some(view) = self.context.ports.chain.job(job).await?.filter(|job| job.state == JobState::Accepted) else {
            return Ok(None);
        };
        let now = self.context.ports.chain.head().await?.timestamp;
        if now <= view.accept_by {
            return Ok(Some(view.accept_by - now + 1));
        }
        let receipt = self.context.ports.chain.send(Call::Cancel { job }).await?;
        tracing::info!(%job, gas = receipt.gas, "cancelled: its user did not start it in time");
        // A reorganisation may undo it.
        Ok(Some(LATE.as_secs()))
    }

    /// Gives the user time to settle a job whose claims are all final, and then tries to.
    pub(crate) async fn settle(&self, job: JobId, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.context.ports.clock.sleep(SETTLE) => {}
        }
        match stop.run_until_cancelled(self.context.ports.send_within_budget(Call::Settle { job })).await {
            Some(Ok(receipt)) => tracing::info!(%job, gas = receipt.gas, "settled"),
            Some(Err(error)) => tracing::info!(%job, %error, "not settled"),
            None => {}
        }
    }

    /// Collects what a job has brought, once the day's budget for gas has room for it.
    pub(crate) async fn collect(self: Arc<Self>, job: JobId) {
        self.shutdown.run_until_cancelled(self.try_collect(job)).await;
    }

    async fn try_collect(&self, job: JobId) {
        let own = self.context.ports.identity.address();
        let _turn = self.collecting.lock().await;
        let result = async {
            let Some(view) = self.context.ports.chain.job(job).await? else { return Ok(()) };
            let credit = self.context.ports.chain.credit(own, view.token).await?;
            if !credit.is_zero() {
                let receipt = self.context.ports.send_within_budget(Call::Collect { token: view.token }).await?;
                tracing::info!(%job, %credit, gas = receipt.gas, "collected");
            }
            Ok::<(), ChainError>(())
        };
        if let Err(error) = result.await {
            tracing::warn!(%job, %error, "not collected; `tensorlink withdraw` does it later");
        }
    }
}
