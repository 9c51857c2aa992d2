//! What several tests of a worker begin with.

use std::path::Path;
use std::time::Duration;

use tensorlink_node::Speed;
use tensorlink_node::budget::Budget;
use tensorlink_node::ports::StoreError;
use tensorlink_node::price::Prices;
use tensorlink_store::Embedded;
use tensorlink_worker::{Limits, WorkerConfig};
use tokio::sync::watch;

/// A worker that lends so much memory to so many lanes, for a wei of SNO, at a risk of 100.
pub(crate) fn config(memory: u64, max_lanes: u16) -> WorkerConfig {
    let limits = Limits { stake: 100, ..Limits::NONE };
    let (memory, speed, prices) = (Budget::new(memory), Speed::LEAST, Prices { sno: 1, eth: None });
    WorkerConfig { memory, max_lanes, speed, prices, limits, in_use: watch::channel(false).1, credit: None }
}

/// A disk, once whoever had it open before has ended.
pub(crate) async fn open(folder: &Path, budget: u64) -> Embedded {
    let opened = async {
        loop {
            match Embedded::open(folder, budget) {
                Err(StoreError::InUse(_)) => tokio::time::sleep(Duration::from_millis(10)).await,
                opened => return opened.unwrap(),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), opened).await.unwrap()
}
