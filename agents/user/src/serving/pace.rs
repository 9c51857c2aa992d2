//! How long lanes take for their answers, and whether that has become much longer than it was.
//!
//! A user's own texts keep a worker busy, and long texts take longer. So only questions count that a lane was asked
//! alone, and each is held against others like it: of about as many tokens, about as far into a text. Where all lanes
//! have become slow alike, it is this machine, or its network.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::rate::{Answered, Rate};
use crate::placing::Reach;

/// Answers whose mean says how long a lane takes.
const SOME: usize = 16;
/// A lane that takes more than so many times what it took at its best is slow.
const SLOW: f64 = 4.0;
/// What takes less is as quick as anybody notices, seconds.
const QUICK: f64 = 0.01;
/// Seconds after which a slow lane that was asked nothing may be quick again.
const RESTED: u64 = 600;

/// A lane, by stage and replica.
type Place = (usize, usize);

/// What a lane is asked for: questions of one kind take about as long.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Kind {
    /// Whether it signs for the text as well.
    last: bool,
    /// Bits of the number of tokens, and of how many it has of the text.
    bits: (u32, u32),
}

impl Kind {
    /// Of so many tokens, by a lane that has `held` of the text.
    pub(super) const fn of(tokens: u32, held: u32, last: bool) -> Self {
        Self { last, bits: (u32::BITS - tokens.leading_zeros(), u32::BITS - held.leading_zeros()) }
    }
}

/// How long each lane takes.
#[derive(Debug, Default)]
pub(super) struct Paces(Mutex<HashMap<Place, Pace>>);

/// A question that a lane is asked; dropped when it is answered, or given up.
#[derive(Debug)]
pub(super) struct Question<'a> {
    paces: &'a Paces,
    place: Place,
    /// Which of the lane's it is; none if others were open.
    number: Option<u64>,
    /// Questions to all lanes until this; none if others were open.
    alone: Option<u64>,
    asked: Instant,
}

impl Paces {
    /// A lane is asked now.
    pub(super) fn ask(&self, place: Place) -> Question<'_> {
        let mut all = self.all();
        let number = all.entry(place).or_default().ask();
        let open: u32 = all.values().map(|pace| pace.open).sum();
        let alone = (open == 1).then(|| all.values().map(|pace| pace.asked).sum());
        Question { paces: self, place, number, alone, asked: Instant::now() }
    }

    /// Whether a lane is slow, and has been at all of its answers for more than so many seconds.
    pub(super) fn is_slow(&self, place: Place, borne: u64) -> bool {
        self.all().get(&place).is_some_and(|pace| pace.is_slow(borne))
    }

    /// Whether a lane was slow at its last answer, not long ago.
    pub(super) fn lags(&self, place: Place, now: u64) -> bool {
        self.all().get(&place).is_some_and(|pace| pace.lags(now))
    }

    /// When the newest answer came that tells how fast a lane is, once there are enough.
    pub(super) fn timed(&self, place: Place) -> Option<u64> {
        self.all().get(&place).and_then(|pace| pace.rate.newest())
    }

    /// Multiply-adds a second of a lane whose worker is reached so, once enough of its answers have told; and when the
    /// newest came.
    pub(super) fn rate(&self, place: Place, reach: Option<Reach>) -> Option<(f64, u64)> {
        self.all().get(&place).and_then(|pace| pace.rate.of(reach))
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Place, Pace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question<'_> {
    /// It was answered, at `now`, seconds; `rated` where nothing held it up.
    pub(super) fn answered(self, (kind, rated): (Kind, Option<Answered>), now: u64) {
        let took = self.asked.elapsed();
        let mut all = self.paces.all();
        let asked = all.values().map(|pace| pace.asked).sum();
        let others = all.iter().filter(|(place, _)| **place != self.place);
        let others = others.filter_map(|(_, pace)| pace.slowdown()).reduce(f64::min).unwrap_or(1.0);
        if let (Some(pace), Some(number)) = (all.get_mut(&self.place), self.number) {
            if let Some(rated) = rated.filter(|_| self.alone == Some(asked)) {
                pace.rate.answer(rated);
            }
            pace.answer(number, (kind, took), (now, others));
        }
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if let Some(pace) = self.paces.all().get_mut(&self.place) {
            pace.open = pace.open.saturating_sub(1);
        }
    }
}

/// How long a lane takes.
#[derive(Debug, Default)]
struct Pace {
    /// Questions so far, and how many of them are open.
    asked: u64,
    open: u32,
    kinds: BTreeMap<Kind, OfKind>,
    /// The newest answers, as multiples of the best of their kinds.
    newest: Newest,
    /// When it was slow first and last, seconds, if it has been quick at no answer between.
    slow: Option<(u64, u64)>,
    rate: Rate,
}

/// How long a lane takes for questions of a kind, seconds.
#[derive(Debug, Default)]
struct OfKind {
    newest: Newest,
    /// The smallest mean so far.
    best: Option<f64>,
}

impl Pace {
    /// Counts a question; its number, if no other is open.
    fn ask(&mut self) -> Option<u64> {
        self.asked = self.asked.saturating_add(1);
        self.open = self.open.saturating_add(1);
        (self.open == 1).then_some(self.asked)
    }

    /// Takes an answer into account that took so long, if nothing else was asked meanwhile. The quickest of the
    /// `others` takes so many times what it took at its best.
    fn answer(&mut self, number: u64, (kind, took): (Kind, Duration), (now, others): (u64, f64)) {
        if number != self.asked {
            return;
        }
        let took = took.as_secs_f64().max(QUICK);
        let of_kind = self.kinds.entry(kind).or_default();
        let best = of_kind.best;
        of_kind.newest.push(took);
        of_kind.best = of_kind.newest.mean().map(|now| best.map_or(now, |best| best.min(now)));
        let Some(best) = best else { return };
        self.newest.push(took / best);
        let is_slow = self.slowdown().is_some_and(|slowdown| slowdown > SLOW * others.max(1.0));
        self.slow = is_slow.then(|| (self.slow.map_or(now, |(first, _)| first), now));
    }

    /// How many times as long it takes as it did at its best.
    fn slowdown(&self) -> Option<f64> {
        self.newest.mean()
    }

    fn is_slow(&self, borne: u64) -> bool {
        self.slow.is_some_and(|(first, last)| last.saturating_sub(first) > borne)
    }

    fn lags(&self, now: u64) -> bool {
        self.slow.is_some_and(|(_, last)| now.saturating_sub(last) <= RESTED)
    }
}

/// The newest of some numbers.
#[derive(Debug, Default)]
struct Newest(VecDeque<f64>);

impl Newest {
    fn push(&mut self, number: f64) {
        if self.0.len() >= SOME {
            self.0.pop_front();
        }
        self.0.push_back(number);
    }

    /// Their mean, once there are enough.
    fn mean(&self) -> Option<f64> {
        (self.0.len() >= SOME).then(|| self.0.iter().sum::<f64>() / SOME as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Kind = Kind::of(1, 100, false);

    /// Answers of so many milliseconds, a second apart from `now` on; when the next would come.
    fn answers(pace: &mut Pace, (kind, took): (Kind, u64), (count, now): (u64, u64), others: f64) -> u64 {
        for second in 0..count {
            let number = pace.ask().unwrap();
            pace.answer(number, (kind, Duration::from_millis(took)), (now + second, others));
            pace.open -= 1;
        }
        now + count
    }

    #[test]
    fn a_lane_is_slow_that_takes_much_longer_than_it_did_for_long_enough() {
        let mut pace = Pace::default();
        let now = answers(&mut pace, (STEP, 40), (30, 0), 1.0);
        assert!(!pace.is_slow(0));
        // Five of sixteen that take ten times as long are 3.8 times as long in the mean.
        let now = answers(&mut pace, (STEP, 400), (5, now), 1.0);
        assert_eq!(pace.slow, None);
        let now = answers(&mut pace, (STEP, 400), (31, now), 1.0);
        assert!(pace.is_slow(29) && !pace.is_slow(30));
        assert!(pace.lags(now - 1 + RESTED) && !pace.lags(now + RESTED), "it may be quick again after a while");
        answers(&mut pace, (STEP, 40), (11, now), 1.0);
        assert_eq!(pace.slow, None, "it is quick again");
    }

    #[test]
    fn what_is_a_little_slower_or_quick_all_the_same_is_not_slow() {
        for (before, after) in [(40, 160), (1, 9)] {
            let mut pace = Pace::default();
            let now = answers(&mut pace, (STEP, before), (30, 0), 1.0);
            answers(&mut pace, (STEP, after), (100, now), 1.0);
            assert_eq!(pace.slow, None);
        }
    }

    #[test]
    fn where_all_are_slow_alike_nobody_is() {
        let mut pace = Pace::default();
        let now = answers(&mut pace, (STEP, 40), (30, 0), 1.0);
        let now = answers(&mut pace, (STEP, 400), (100, now), 3.0);
        assert_eq!(pace.slow, None);
        answers(&mut pace, (STEP, 400), (1, now), 2.0);
        assert!(pace.slow.is_some());
    }

    #[test]
    fn what_takes_longer_by_its_kind_is_not_slow() {
        let mut pace = Pace::default();
        let now = answers(&mut pace, (STEP, 40), (30, 0), 1.0);
        let now = answers(&mut pace, (Kind::of(1, 1_000, false), 400), (30, now), 1.0);
        let now = answers(&mut pace, (Kind::of(100, 0, false), 4_000), (30, now), 1.0);
        answers(&mut pace, (Kind::of(1, 100, true), 4_000), (30, now), 1.0);
        assert_eq!(pace.slow, None);
        assert_eq!(Kind::of(1, 64, false), Kind::of(1, 127, false));
        assert_ne!(Kind::of(1, 64, false), Kind::of(1, 128, false));
    }

    #[test]
    fn what_was_asked_beside_others_does_not_count() {
        let mut pace = Pace::default();
        answers(&mut pace, (STEP, 40), (30, 0), 1.0);
        let first = pace.ask().unwrap();
        assert_eq!(pace.ask(), None);
        pace.answer(first, (STEP, Duration::from_secs(9)), (30, 1.0));
        assert_eq!(pace.newest.0.back(), Some(&1.0));
        // Neither is answered; both are given up.
        let (paces, place) = (Paces::default(), (0, 0));
        drop((paces.ask(place), paces.ask(place)));
        assert!(paces.ask(place).number.is_some());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut pace = Pace::default();
        answers(&mut pace, (STEP, 40), (1_000, 0), 1.0);
        assert_eq!((pace.newest.0.len(), pace.kinds[&STEP].newest.0.len()), (SOME, SOME));
    }
}
