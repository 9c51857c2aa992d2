//! What all parts of a worker share.

use std::sync::Arc;
use std::time::Duration;

use tensorlink_node::budget::Budget;
use tensorlink_node::price::Prices;
use tensorlink_node::{Ports, Roster, Speed};
use tensorlink_program::engine::EngineError;
use tensorlink_types::abi::JobKind;
use tokio::sync::watch;

use crate::hiring::hours::Hours;
use crate::stream_router::StreamRouter;

/// Wait after the chain failed us.
pub(crate) const BACK_OFF: Duration = Duration::from_secs(3);

/// What a worker lets a job ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most stake to put at risk in one lane, wei of SNO.
    pub stake: u128,
    /// Longest time from a job's start to its deadline, seconds.
    pub duration: u64,
    /// Longest time from the offer until the job must have started, seconds; its stake may be locked so long for
    /// nothing.
    pub wait: u64,
    /// Hours of the day in which jobs are taken; those that were taken go on.
    pub hours: Option<Hours>,
    /// The only kind of job that is taken.
    pub only: Option<JobKind>,
}

impl Limits {
    /// None but those of the contracts.
    pub const NONE: Self = Self { stake: u128::MAX, duration: u64::MAX, wait: u64::MAX, hours: None, only: None };

    /// Whether jobs are taken at a time, seconds since 1970.
    pub const fn taken_at(&self, time: u64) -> bool {
        match self.hours {
            Some(hours) => hours.contain(time),
            None => true,
        }
    }
}

/// What a worker is willing to do.
#[derive(Clone, Debug)]
pub struct WorkerConfig {
    /// The memory that is lent; whoever audits on this node takes of it, too.
    pub memory: Arc<Budget>,
    /// Lanes at once.
    pub max_lanes: u16,
    /// How fast the device was when it was measured.
    pub speed: Speed,
    /// Asking prices.
    pub prices: Prices,
    /// What a job may ask for.
    pub limits: Limits,
    /// Whether the owner uses the machine, as whoever looks at it tells: no new jobs are taken then.
    pub in_use: watch::Receiver<bool>,
    /// Most tokens that a serving lane delivers unpaid; none for 65,536 or 16 longest texts, whichever is more.
    pub credit: Option<u32>,
}

impl WorkerConfig {
    /// Whether new jobs are taken at a time, seconds since 1970.
    pub(crate) fn is_open_at(&self, time: u64) -> bool {
        self.limits.taken_at(time) && !*self.in_use.borrow()
    }
}

/// Makes an engine for a lane; each lane has its own.
pub type EngineFactory<E> = Arc<dyn Fn() -> Result<E, EngineError> + Send + Sync>;

/// What all parts of a worker share.
pub struct Context<E> {
    /// Its world.
    pub ports: Ports,
    /// What we are willing to do.
    pub config: WorkerConfig,
    /// Makes engines.
    pub engine: EngineFactory<E>,
    /// Who is who.
    pub roster: Arc<Roster>,
    /// Streams that peers open.
    pub stream_router: StreamRouter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_jobs_are_taken_in_the_hours_in_which_the_owner_is_away() {
        let (tell, in_use) = watch::channel(false);
        let config = WorkerConfig {
            memory: Budget::new(1),
            max_lanes: 1,
            speed: Speed::LEAST,
            prices: Prices { sno: 1, eth: None },
            limits: Limits { hours: Some("00:00-12:00".parse().unwrap()), ..Limits::NONE },
            in_use,
            credit: None,
        };
        let (morning, evening) = (3_600, 72_000);
        assert_eq!([morning, evening].map(|time| config.is_open_at(time)), [true, false]);
        tell.send_replace(true);
        assert_eq!([morning, evening].map(|time| config.is_open_at(time)), [false, false]);
    }
}
