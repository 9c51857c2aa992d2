//! Clocks whose waits are over at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tensorlink_node::ports::{Clock, SystemClock};

/// Tells the time, and has nobody wait.
pub struct Hasty;

/// Tells the time that it is told, seconds.
#[derive(Default)]
pub struct Set(pub AtomicU64);

#[async_trait]
impl Clock for Set {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    async fn sleep(&self, wait: Duration) {
        Hasty.sleep(wait).await;
    }
}

#[async_trait]
impl Clock for Hasty {
    fn now(&self) -> u64 {
        SystemClock.now()
    }

    async fn sleep(&self, _: Duration) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
