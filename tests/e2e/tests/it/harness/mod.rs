//! A network of processes on this machine, and what a test sees of it.

mod chain;
mod documented;
mod job;
mod network;
mod process;
mod purses;
mod quiet;
mod serving;
mod verdict;

pub(crate) use chain::{sno, whole_sno};
pub(crate) use job::{Job, Model, Report, Subject};
pub(crate) use network::{
    COLLATERAL, FIRST_WORKER, Network, OBSERVER, PURSE, STAKE, TREASURY, USER, VALIDATOR, address, worker_address,
};
pub(crate) use process::{Output, Process, run, shell, tensorlink, villain};
pub(crate) use purses::Purses;
pub(crate) use quiet::{assert_claimed, quiet_run, recut_run, unshared_run};
pub(crate) use serving::{Completed, Served, Serving, Shape};
pub(crate) use verdict::Slash;

use std::time::{Duration, Instant};

/// What a job or a command comes to within. It takes a fraction where nothing else runs; this only ends what would
/// never end.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);
/// The same of a game on chain, and of whoever waits for a worker's clock.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// Between two looks at something that is waited for.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// Looks until there is something to see, at most for `limit`.
pub(crate) async fn eventually<T>(what: &str, limit: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(started.elapsed() < limit, "{what}: did not happen within {limit:?}");
        tokio::time::sleep(LOOK).await;
    }
}
