//! Which lanes' states are fetched, so that no worker keeps places from others by fetches that come to nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tensorlink_types::{JobId, Lane};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::KeepError;

/// Fetches of one kind: so many at once, one of each lane, and none of a lane that has to wait.
pub(super) struct Turns {
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
    began: Instant,
    _place: SemaphorePermit<'a>,
}

impl Turns {
    pub(super) fn new(places: usize) -> Self {
        Self { places: Semaphore::new(places), lanes: Mutex::default() }
    }

    /// Begins a fetch of a lane's state.
    ///
    /// # Errors
    /// [`KeepError::Busy`] where all places are taken, or another of its states is fetched; [`KeepError::Paused`] where
    /// it has to wait.
    pub(super) fn begin(&self, lane: Lane) -> Result<Turn<'_>, KeepError> {
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
        Ok(Turn { turns: self, lane, began, _place: place })
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
    /// It has come to this. The lane has to wait for as long as `wait` says, by what the fetch took and how many in a
    /// row have failed before it.
    pub(super) fn end<T>(self, result: &Result<T, KeepError>, wait: impl Fn(Duration, u32) -> Duration) {
        let now = Instant::now();
        if let Some(of_lane) = self.turns.lanes().get_mut(&self.lane) {
            of_lane.until = now.checked_add(wait(now.saturating_duration_since(self.began), of_lane.failures));
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

    fn refused(turns: &Turns, lane: Lane) -> Option<u64> {
        match turns.begin(lane) {
            Err(KeepError::Paused(seconds)) => Some(seconds),
            _ => None,
        }
    }

    #[test]
    fn one_state_of_a_lane_is_fetched_at_once_and_so_many_in_all() {
        let turns = Turns::new(2);
        let first = turns.begin(LANE).unwrap();
        assert!(matches!(turns.begin(LANE), Err(KeepError::Busy)));
        let other = turns.begin(OTHER).unwrap();
        assert!(matches!(turns.begin(Lane { stage: 1, ..LANE }), Err(KeepError::Busy)), "no place is left");
        drop((first, other));
        assert!(turns.begin(LANE).is_ok(), "one that was given up is over");
    }

    #[test]
    fn a_lane_waits_as_long_as_it_is_told_and_others_do_not() {
        let turns = Turns::new(2);
        turns.begin(LANE).unwrap().end(&FAILED, |_, failures| Duration::from_secs(100 + u64::from(failures)));
        assert!(matches!(refused(&turns, LANE), Some(99..=101)));
        assert!(turns.begin(OTHER).is_ok());
        turns.forget(OTHER.job);
        assert!(refused(&turns, LANE).is_some());
        turns.forget(LANE.job);
        assert!(turns.begin(LANE).is_ok() && turns.lanes().len() == 1);
    }

    #[test]
    fn failures_in_a_row_are_counted_and_a_short_wait_is_one() {
        let turns = Turns::new(1);
        let before = |result| {
            let counted = std::cell::Cell::new(0);
            turns.begin(LANE).unwrap().end(&result, |_, failures| {
                counted.set(failures);
                Duration::ZERO
            });
            counted.get()
        };
        assert_eq!([FAILED, FAILED, Ok(()), FAILED].map(before), [0, 1, 2, 0]);
        turns.begin(LANE).unwrap().end(&FAILED, |_, _| Duration::from_millis(300));
        assert_eq!(refused(&turns, LANE), Some(1));
        std::thread::sleep(Duration::from_millis(310));
        assert!(turns.begin(LANE).is_ok());
    }
}
