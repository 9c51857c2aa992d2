//! How long something is looked into, and how it is waited for.

use std::time::Duration;

use tensorlink_node::Ports;

/// Attempts at a claim whose audit fails on our side or stays without an answer.
pub(crate) const ATTEMPTS: u32 = 6;
/// Waits between attempts: the first, and the longest. Together they outlast a worker's restart.
const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));
/// Wait between two looks at the chain's time: the shortest and the longest.
pub(crate) const LOOK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The waits between attempts, each longer than the one before.
#[derive(Debug)]
pub(crate) struct Pauses(Duration);

impl Pauses {
    /// From the first on.
    pub(crate) const fn new() -> Self {
        Self(PAUSE.0)
    }

    /// Waits once more.
    pub(crate) async fn pause(&mut self, ports: &Ports) {
        ports.clock.sleep(self.0).await;
        self.0 = self.0.saturating_mul(2).min(PAUSE.1);
    }
}

/// Waits until the chain's time is `until`; a chain that does not answer is asked again.
pub(crate) async fn await_time(ports: &Ports, until: u64) {
    loop {
        let now = match ports.chain.head().await {
            Ok(head) => head.timestamp,
            Err(error) => {
                tracing::warn!(%error, "the chain cannot be asked");
                0
            }
        };
        if now >= until {
            return;
        }
        let left = Duration::from_secs(until.saturating_sub(now));
        ports.clock.sleep(left.clamp(LOOK.0, LOOK.1)).await;
    }
}
