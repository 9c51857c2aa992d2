//! Which lanes' states are fetched, so that no worker keeps places from others by fetches that come to nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tensorlink_types::{Address, JobId, Lane};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::KeepError;

/// How a fetch ended.
pub(super) struct Ended<'a> {
    pub(super) result: &'a Result<(), KeepError>,
    /// Who has the state.
    pub(super) worker: Address,
    pub(super) took: Duration,
    /// Fetches of the lane that had failed before it, in a row.
    pub(super) failures: u32,
}

/// How long a lane has to wait after a fetch of its state.
pub(super) type Wait = fn(&Ended<'_>) -> Duration;

/// Fetches of one kind: so many at once, one of each lane, and none of a lane that has to wait.
pub(super) struct Turns {
    wait: Wait,
    places: Semaphore,
    lanes: Mutex<HashMap<Lane, OfLane>>,
}

/// How a lane gets on.
#[derive(Default)]
struct OfLane {
    is_fetched: bool,
    /// Fetches in a row that failed.
    failures: u32,
    /// Until when it has to wait.
    until: Option<Instant>,
}

/// A fetch under way. It ends when this is dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    lane: Lane,
    worker: Address,
    began: Instant,
    _place: SemaphorePermit<'a>,
}

impl Turns {
    pub(super) fn new(places: usize, wait: Wait) -> Self {
        Self { wait, places: Semaphore::new(places), lanes: Mutex::default() }
    }

    /// Begins a fetch of a lane's state from a worker.
    ///
    /// # Errors
    /// [`KeepError::Busy`] where all places are taken, or another of its states is fetched; [`KeepError::Paused`] where
    /// it has to wait.
    pub(super) fn begin(&self, lane: Lane, worker: Address) -> Result<Turn<'_>, KeepError> {
        let place = self.places.try_acquire().map_err(|_| KeepError::Busy)?;
        let began = Instant::now();
        let mut lanes = self.lanes();
        let of_lane = lanes.entry(lane).or_default();
        if of_lane.is_fetched {
            return Err(KeepError::Busy);
        }
        if let Some(left) =
            of_lane.until.map(|until| until.saturating_duration_since(began)).filter(|left| !left.is_zero())
        {
            return Err(KeepError::Paused(left.as_secs().saturating_add(1)));
        }
        of_lane.is_fetched = true;
        Ok(Turn { turns: self, lane, worker, began, _place: place })
    }

    /// A job is over.
    pub(super) fn forget(&self, job: JobId) {
        self.lanes().retain(|lane, of_lane| lane.job != job || of_lane.is_fetched);
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Lane, OfLane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// It has come to this.
    pub(super) fn end(self, result: &Result<(), KeepError>) {
        let now = Instant::now();
        let (worker, took) = (self.worker, now.saturating_duration_since(self.began));
        if let Some(of_lane) = self.turns.lanes().get_mut(&self.lane) {
            let wait = (self.turns.wait)(&Ended { result, worker, took, failures: of_lane.failures });
            of_lane.until = now.checked_add(wait);
            of_lane.failures = if result.is_ok() { 0 } else { of_lane.failures.saturating_add(1) };
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(of_lane) = self.turns.lanes().get_mut(&self.lane) {
            of_lane.is_fetched = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LANE: Lane = Lane { job: JobId(1), stage: 0, replica: 0 };
    const OTHER: Lane = Lane { job: JobId(2), ..LANE };
    const FAILED: Result<(), KeepError> = Err(KeepError::Late);

    /// A hundred seconds after a failure, and one more for each before it.
    fn turns(places: usize) -> Turns {
        Turns::new(places, |ended| match ended.result {
            Ok(()) => Duration::ZERO,
            Err(_) => Duration::from_secs(100 + u64::from(ended.failures)),
        })
    }

    fn begin(turns: &Turns, lane: Lane) -> Result<Turn<'_>, KeepError> {
        turns.begin(lane, Address::ZERO)
    }

    fn refused(turns: &Turns, lane: Lane) -> Option<u64> {
        match begin(turns, lane) {
            Err(KeepError::Paused(seconds)) => Some(seconds),
            _ => None,
        }
    }

    #[test]
    fn one_state_of_a_lane_is_fetched_at_once_and_so_many_in_all() {
        let turns = turns(2);
        let first = begin(&turns, LANE).unwrap();
        assert!(matches!(begin(&turns, LANE), Err(KeepError::Busy)));
        let other = begin(&turns, OTHER).unwrap();
        assert!(matches!(begin(&turns, Lane { stage: 1, ..LANE }), Err(KeepError::Busy)), "no place is left");
        drop((first, other));
        assert!(begin(&turns, LANE).is_ok(), "one that was given up is over");
    }

    #[test]
    fn a_lane_waits_as_long_as_the_rule_says_and_others_do_not() {
        let turns = turns(2);
        begin(&turns, LANE).unwrap().end(&FAILED);
        assert!(matches!(refused(&turns, LANE), Some(99..=101)));
        assert!(begin(&turns, OTHER).is_ok());
        turns.forget(OTHER.job);
        assert!(refused(&turns, LANE).is_some());
        turns.forget(LANE.job);
        assert!(begin(&turns, LANE).is_ok() && turns.lanes().len() == 1);
    }

    #[test]
    fn failures_in_a_row_are_counted_until_one_is_good() {
        let turns = Turns::new(1, |_| Duration::ZERO);
        let failures = |result| {
            begin(&turns, LANE).unwrap().end(&result);
            turns.lanes()[&LANE].failures
        };
        assert_eq!([FAILED, FAILED, Ok(()), FAILED].map(failures), [1, 2, 0, 1]);
    }

    #[test]
    fn the_rule_knows_who_was_asked_and_a_short_wait_is_one() {
        let turns =
            Turns::new(1, |ended| Duration::from_millis(if ended.worker == Address::repeat_byte(1) { 300 } else { 0 }));
        begin(&turns, LANE).unwrap().end(&FAILED);
        turns.begin(LANE, Address::repeat_byte(1)).unwrap().end(&FAILED);
        assert_eq!(refused(&turns, LANE), Some(1));
        std::thread::sleep(Duration::from_millis(310));
        assert!(begin(&turns, LANE).is_ok());
    }
}
