//! When a job is stopped before its last interval: by the loss of held-out rows where its user tests it on the way,
//! else by the one that its last stage reports.
//!
//! A report is one worker's word, of an interval's mean training loss, and nothing proves it. Who lies about it ends
//! its own job early, or lets it go on at its user's price until the user looks. That a loss explodes, only reports
//! tell in time.

use std::fmt;

use serde::{Deserialize, Serialize};
use tensorlink_node::bounds::{Bounds, Excess, MAX_SATURATION};
use tensorlink_node::journal::{Journal, JournalError};
use tensorlink_node::ports::chain::JobView;
use tensorlink_types::JobId;

/// Least improvement that counts, nats, where none is named.
const MIN_DELTA: f32 = 0.001;

/// What ends a job early; by itself a loss that is no number, and weights out of their range.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Rules {
    /// When it has learned enough.
    pub early: Early,
    /// Intervals after each of which it is tested on held-out rows; by that loss, then, it has learned enough.
    pub evaluate_every: Option<u32>,
    /// A loss above so many times the first reported one.
    pub max_loss: Option<f32>,
    /// A larger share of a weight's elements at the limit of their type, 5 % if none is named.
    pub max_saturation: Option<f32>,
}

impl Rules {
    /// These, in place of what bounds the training.
    pub const fn within(self, Bounds { max_saturation, max_loss }: Bounds) -> Self {
        Self { max_loss, max_saturation, ..self }
    }

    /// What the training may not exceed, be it named or not: its workers go no further than that.
    pub fn bounds(&self) -> Bounds {
        Bounds { max_saturation: Some(self.max_saturation.unwrap_or(MAX_SATURATION)), max_loss: self.max_loss }
    }
}

/// When a job has learned enough.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Early {
    /// At this loss, nats, or below.
    pub loss: Option<f32>,
    /// After so many intervals without an improvement.
    pub patience: Option<u32>,
    /// By how much a loss must be lower to be one, nats.
    pub min_delta: Option<f32>,
}

/// Why a job was stopped.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has learned enough.
    Reached {
        /// The loss.
        loss: f32,
        /// What was asked for.
        goal: f32,
    },
    /// It learns no more.
    Stale {
        /// The least loss.
        best: f32,
        /// Intervals since.
        intervals: u32,
    },
    /// It leaves its bounds.
    #[serde(untagged)]
    Exceeded(Excess),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reached { loss, goal } => write!(f, "its loss is {loss:.4}, {goal} was asked for"),
            Self::Stale { best, intervals } => {
                write!(f, "its loss was {best:.4} {intervals} intervals ago, and never lower since")
            }
            Self::Exceeded(excess) => excess.fmt(f),
        }
    }
}

/// Takes in reports until one of them ends the job. It is written down, so that whoever follows the job after an
/// interruption goes on with the same rules and losses.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Judge {
    rules: Rules,
    /// When the job started: it tells jobs of one number on two chains apart.
    started_at: u64,
    first: Option<f32>,
    /// The least loss, and the interval that had it.
    best: Option<(f32, u32)>,
    /// Intervals before the one that is judged next.
    judged: u32,
    /// Intervals before the last test on held-out rows.
    #[serde(default)]
    tested: u32,
    /// Why the job ends, and after how many intervals.
    verdict: Option<(Stop, u32)>,
}

/// Name of the record of a judge.
fn record(job: JobId) -> String {
    format!("judge-{job}")
}

impl Judge {
    const fn new(rules: Rules, started_at: u64) -> Self {
        Self { rules, started_at, first: None, best: None, judged: 0, tested: 0, verdict: None }
    }

    /// As it was left when the job was last followed from here; if it never was, one with these rules.
    ///
    /// # Errors
    /// [`JournalError`].
    pub(super) fn of(journal: &Journal, job: &JobView, rules: Rules) -> Result<Self, JournalError> {
        let left: Option<Self> = journal.read(&record(job.id))?;
        if let Some(left) = left.filter(|left| left.started_at == job.started_at) {
            return Ok(left);
        }
        let judge = Self::new(rules, job.started_at);
        judge.write(journal, job.id)?;
        Ok(judge)
    }

    fn write(&self, journal: &Journal, job: JobId) -> Result<(), JournalError> {
        journal.write(&record(job), self)
    }

    /// Writes it down; where the disk refuses, the job goes on all the same.
    pub(super) fn keep(&self, journal: &Journal, job: JobId) {
        if let Err(error) = self.write(journal, job) {
            tracing::warn!(%job, %error, "after an interruption this report would not count");
        }
    }

    /// Intervals after each of which the job is tested on held-out rows, and those before the last test.
    pub(super) const fn tests(&self) -> (Option<u32>, u32) {
        (self.rules.evaluate_every, self.tested)
    }

    /// Takes in what a test on held-out rows came to, after so many intervals.
    pub(super) fn tested(&mut self, intervals: u32, loss: f64) {
        self.tested = intervals;
        if self.verdict.is_none() {
            self.verdict = self.enough(intervals, loss as f32).map(|why| (why, intervals));
        }
    }

    /// Why the job ends, and after how many intervals, if it does.
    pub(super) const fn verdict(&self) -> Option<(Stop, u32)> {
        self.verdict
    }

    /// Takes in what a lane reports after so many intervals: the largest share of a weight's elements at the limit of
    /// their type, and, from the last stage, the last interval's loss. Whether there was anything new to judge.
    pub(super) fn hear(&mut self, intervals: u32, saturation: Option<f32>, loss: Option<f32>) -> bool {
        if self.verdict.is_some() {
            return false;
        }
        let saturated = saturation.and_then(|share| self.rules.bounds().saturated(share)).map(Stop::Exceeded);
        // An interval that was judged before is not judged again: replicas report the same.
        let loss = loss.filter(|_| intervals > self.judged);
        let learned = loss.and_then(|loss| {
            self.judged = intervals;
            self.learned(intervals, loss)
        });
        self.verdict = saturated.or(learned).map(|why| (why, intervals));
        self.verdict.is_some() || loss.is_some()
    }

    /// Takes in that a lane goes no further after so many intervals, for this excess: it may know a first loss that
    /// nobody heard here, and bounds of its own. Whether there was anything new in it.
    pub(super) fn halted(&mut self, intervals: u32, excess: Excess) -> bool {
        let new = self.verdict.is_none();
        self.verdict.get_or_insert((Stop::Exceeded(excess), intervals));
        new
    }

    fn learned(&mut self, intervals: u32, loss: f32) -> Option<Stop> {
        if let Some(excess) = self.rules.bounds().exploded(loss, self.first.unwrap_or(loss)) {
            return Some(Stop::Exceeded(excess));
        }
        self.first.get_or_insert(loss);
        if self.rules.evaluate_every.is_none() { self.enough(intervals, loss) } else { None }
    }

    fn enough(&mut self, intervals: u32, loss: f32) -> Option<Stop> {
        let Rules { early, .. } = self.rules;
        if let Some(goal) = early.loss
            && loss <= goal
        {
            return Some(Stop::Reached { loss, goal });
        }
        match self.best {
            Some((best, at)) if loss > best - early.min_delta.unwrap_or(MIN_DELTA) => {
                let since = intervals.saturating_sub(at);
                early.patience.filter(|patience| since >= *patience).map(|_| Stop::Stale { best, intervals: since })
            }
            _ => {
                self.best = Some((loss, intervals));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn saturated(share: f32, most: f32) -> Stop {
        Stop::Exceeded(Excess::Saturated { share, most })
    }

    fn judged(rules: Rules, losses: &[f32]) -> Option<(Stop, u32)> {
        let mut judge = Judge::new(rules, 0);
        for (intervals, loss) in (1..).zip(losses) {
            judge.hear(intervals, None, Some(*loss));
        }
        judge.verdict()
    }

    #[test]
    fn a_loss_that_is_low_enough_ends_a_job() {
        let rules = Rules { early: Early { loss: Some(1.3), ..Early::default() }, ..Rules::default() };
        assert_eq!(judged(rules, &[3.0, 1.4, 1.3]), Some((Stop::Reached { loss: 1.3, goal: 1.3 }, 3)));
        assert_eq!(judged(rules, &[3.0, 1.4, 1.31]), None);
    }

    #[test]
    fn patience_ends() {
        let early = Early { patience: Some(2), min_delta: Some(0.1), loss: None };
        let rules = Rules { early, ..Rules::default() };
        // 1.95 is no improvement of 2.0, but 1.85 is.
        assert_eq!(
            judged(rules, &[3.0, 2.0, 1.95, 1.85, 1.9, 1.8]),
            Some((Stop::Stale { best: 1.85, intervals: 2 }, 6))
        );
        assert_eq!(judged(rules, &[3.0, 2.5, 2.0, 2.5, 1.5]), None);
        let mut judge = Judge::new(rules, 0);
        // The second report of an interval is another replica's.
        let heard = [1, 2, 2, 1].map(|intervals| judge.hear(intervals, None, Some(1.0)));
        assert_eq!((heard, judge.verdict()), ([true, true, false, false], None));
        assert!(judge.hear(3, None, Some(1.0)));
        let verdict = Some((Stop::Stale { best: 1.0, intervals: 2 }, 3));
        assert_eq!(judge.verdict(), verdict);
        assert!(!judge.hear(4, None, Some(0.1)), "it is final");
        assert_eq!(judge.verdict(), verdict);
    }

    #[test]
    fn where_held_out_rows_are_tested_they_decide_when_enough_is_learned() {
        let early = Early { loss: Some(1.3), patience: Some(2), min_delta: None };
        let rules = Rules { early, evaluate_every: Some(2), max_loss: Some(2.0), ..Rules::default() };
        let mut judge = Judge::new(rules, 0);
        for intervals in 1..=4 {
            judge.hear(intervals, None, Some(1.0));
        }
        judge.tested(2, 1.6);
        judge.tested(4, 1.5);
        assert_eq!((judge.verdict(), judge.tests()), (None, (Some(2), 4)), "what workers report does not");
        let mut stale: Judge = serde_json::from_slice(&serde_json::to_vec(&judge).unwrap()).unwrap();
        stale.tested(6, 1.7);
        assert_eq!(stale.verdict(), Some((Stop::Stale { best: 1.5, intervals: 2 }, 6)));
        judge.hear(5, None, Some(2.5));
        let exploded = Some((Stop::Exceeded(Excess::Exploded { loss: 2.5, most: 2.0 }), 5));
        assert_eq!(judge.verdict(), exploded, "but that it explodes");
        judge.tested(6, 1.2);
        assert_eq!(judge.verdict(), exploded, "it is final");
    }

    #[test]
    fn a_loss_that_explodes_ends_a_job() {
        let rules = Rules { max_loss: Some(1.5), ..Rules::default() };
        assert_eq!(
            judged(rules, &[4.0, 5.9, 6.1]),
            Some((Stop::Exceeded(Excess::Exploded { loss: 6.1, most: 6.0 }), 3))
        );
        for loss in [f32::NAN, f32::INFINITY] {
            assert_eq!(judged(Rules::default(), &[4.0, loss]), Some((Stop::Exceeded(Excess::NotFinite), 2)));
        }
        assert_eq!(judged(Rules::default(), &[4.0, 400.0]), None);
    }

    #[test]
    fn weights_out_of_their_range_end_a_job() {
        let mut judge = Judge::new(Rules::default(), 0);
        for share in [0.0, 0.049, f32::NAN, f32::INFINITY, 1.1] {
            assert!(!judge.hear(1, Some(share), None), "{share}");
        }
        assert!(judge.hear(2, Some(0.06), None));
        assert_eq!(judge.verdict(), Some((saturated(0.06, MAX_SATURATION), 2)));
        let mut judge = Judge::new(Rules { max_saturation: Some(0.001), ..Rules::default() }, 0);
        judge.hear(1, Some(0.06), Some(1.0));
        assert_eq!(judge.verdict(), Some((saturated(0.06, 0.001), 1)));
    }

    #[test]
    fn a_lane_that_goes_no_further_ends_a_job_once() {
        let mut judge = Judge::new(Rules::default(), 0);
        judge.hear(1, Some(0.01), Some(2.0));
        let excess = Excess::Exploded { loss: 2.5, most: 2.4 };
        assert!(judge.halted(1, excess), "by a first loss that was not heard");
        assert!(!judge.halted(1, excess) && !judge.hear(2, Some(0.9), None), "it is final");
        assert_eq!(judge.verdict(), Some((Stop::Exceeded(excess), 1)));
    }

    #[test]
    fn a_stop_is_written_as_one_word_of_what_it_is_of() {
        for (stop, text) in [
            (saturated(0.5, 0.25), r#"{"saturated":{"share":0.5,"most":0.25}}"#),
            (Stop::Exceeded(Excess::NotFinite), r#""not_finite""#),
            (Stop::Reached { loss: 1.5, goal: 1.5 }, r#"{"reached":{"loss":1.5,"goal":1.5}}"#),
        ] {
            assert_eq!(serde_json::to_string(&stop).unwrap(), text);
            assert_eq!(serde_json::from_str::<Stop>(text).unwrap(), stop);
        }
    }

    #[test]
    fn what_was_written_down_goes_on() {
        let rules =
            Rules { max_loss: Some(1.5), early: Early { patience: Some(3), ..Early::default() }, ..Rules::default() };
        let whole = |cut: Option<usize>| {
            let mut judge = Judge::new(rules, 7);
            for (at, loss) in [4.0, 2.1, 2.2, 2.3, 2.4].into_iter().enumerate() {
                if cut == Some(at) {
                    judge = serde_json::from_slice(&serde_json::to_vec(&judge).unwrap()).unwrap();
                }
                judge.hear(at as u32 + 1, Some(0.01), Some(loss));
            }
            judge
        };
        let undisturbed = whole(None);
        assert_eq!(undisturbed.verdict(), Some((Stop::Stale { best: 2.1, intervals: 3 }, 5)));
        for cut in 0..5 {
            assert_eq!(whole(Some(cut)), undisturbed);
        }
    }
}
