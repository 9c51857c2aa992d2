//! Tells a lane's worker what it should know although no text waits for it: which texts failed, and what it is paid.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::Ports;
use tokio_util::sync::CancellationToken;

use super::lane::{LaneClient, PayFault};

/// Wait after a worker that could not be told.
const PAUSE: Duration = Duration::from_secs(15);

/// Runs until `shutdown`: abandons and pays whenever there is something to, one voucher for all texts that ended
/// meanwhile. Begins as if the worker asked to be paid: one that has the last voucher takes no harm from it.
pub(super) async fn run(lane: Arc<LaneClient>, ports: Ports, shutdown: CancellationToken) {
    let mut asks = true;
    loop {
        let told = tokio::select! {
            () = shutdown.cancelled() => return,
            told = lane.tell(&ports, asks) => told,
        };
        let pause = match told {
            Ok(()) => {
                asks = false;
                None
            }
            Err(error) => {
                tracing::warn!(lane = %lane.lane, worker = %lane.worker, %error, "the worker could not be paid yet");
                Some(PAUSE)
            }
        };
        let more = async {
            match pause {
                Some(pause) => ports.clock.sleep(pause).await,
                None => lane.wake.notified().await,
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = more => {}
        }
    }
}

impl LaneClient {
    /// Tells the worker of texts that it may forget, and pays for those that were delivered.
    ///
    /// # Errors
    /// [`PayFault`].
    pub(super) async fn tell(&self, ports: &Ports, asks: bool) -> Result<(), PayFault> {
        self.tell_abandoned(ports).await;
        self.pay(ports, asks).await
    }
}
