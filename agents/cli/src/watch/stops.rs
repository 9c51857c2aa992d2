//! When a job is stopped before its last interval: by the loss that its last stage reports.
//!
//! A report is one worker's word, of an interval's mean training loss, and nothing proves it. Who lies about it ends its own job early, or lets
//! it go on at its user's price until the user looks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Least improvement that counts, nats, where none is named.
const MIN_DELTA: f32 = 0.001;

/// Share of a weight's elements at the limit of their type that ends a job: calibration left room for twice of what it saw, so that this many
/// are no outliers but a training out of its range, where steps have no effect any more.
const MAX_SATURATION: f32 = 0.05;

/// What ends a job early; by itself a loss that is no number, and weights out of their range.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rules {
    /// When it has learned enough.
    pub early: Early,
    /// A loss above so many times the first reported one.
    pub max_loss: Option<f32>,
    /// A larger share of a weight's elements at the limit of their type, 5 % if none is named.
    pub max_saturation: Option<f32>,
}

/// When a job has learned enough.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
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
    /// It learns the wrong way.
    Exploded {
        /// The loss.
        loss: f32,
        /// What it may be at most.
        most: f32,
    },
    /// Its loss is no number any more.
    NotFinite,
    /// Its weights do not fit their types any more.
    Saturated {
        /// Share of elements at the limit of their type, of the worst weight.
        share: f32,
        /// What it may be at most.
        most: f32,
    },
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reached { loss, goal } => write!(f, "its loss is {loss:.4}, {goal} was asked for"),
            Self::Stale { best, intervals } => {
                write!(f, "its loss was {best:.4} {intervals} intervals ago, and never lower since")
            }
            Self::Exploded { loss, most } => write!(
                f,
                "its loss is {loss:.4}, more than {most:.4}: it does not learn; lower learning_rate, or raise max_loss"
            ),
            Self::NotFinite => f.write_str("its loss is not a number any more: lower learning_rate"),
            Self::Saturated { share, most } => write!(
                f,
                "{:.1} % of a weight's elements are as large as their type allows, more than {:.1} %: it does not learn; lower \
                 learning_rate, calibrate for more steps, or raise max_saturation",
                share * 100.0,
                most * 100.0
            ),
        }
    }
}

/// Takes in reports until one of them ends the job.
#[derive(Debug)]
pub(super) struct Judge {
    rules: Rules,
    first: Option<f32>,
    /// The least loss, and the interval that had it.
    best: Option<(f32, u32)>,
    /// The interval that was judged last.
    last: Option<u32>,
}

impl Judge {
    pub(super) const fn new(rules: Rules) -> Self {
        Self { rules, first: None, best: None, last: None }
    }

    /// Takes in the share of saturated elements that any lane reports.
    pub(super) fn hear_saturation(&self, share: f32) -> Option<Stop> {
        let most = self.rules.max_saturation.unwrap_or(MAX_SATURATION);
        // A share that is no number is no report.
        (share > most).then_some(Stop::Saturated { share, most })
    }

    /// Takes in the loss of an interval. An interval that was judged before is not judged again: replicas report the same.
    pub(super) fn hear(&mut self, interval: u32, loss: f32) -> Option<Stop> {
        if self.last.is_some_and(|last| interval <= last) {
            return None;
        }
        self.last = Some(interval);
        if !loss.is_finite() {
            return Some(Stop::NotFinite);
        }
        let first = *self.first.get_or_insert(loss);
        let Rules { early, max_loss, .. } = self.rules;
        if let Some(most) = max_loss.map(|times| times * first)
            && loss > most
        {
            return Some(Stop::Exploded { loss, most });
        }
        if let Some(goal) = early.loss
            && loss <= goal
        {
            return Some(Stop::Reached { loss, goal });
        }
        match self.best {
            Some((best, at)) if loss > best - early.min_delta.unwrap_or(MIN_DELTA) => {
                let intervals = interval.saturating_sub(at);
                early.patience.filter(|patience| intervals >= *patience).map(|_| Stop::Stale { best, intervals })
            }
            _ => {
                self.best = Some((loss, interval));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(rules: Rules, losses: &[f32]) -> Option<(u32, Stop)> {
        let mut judge = Judge::new(rules);
        (0..).zip(losses).find_map(|(interval, loss)| Some((interval, judge.hear(interval, *loss)?)))
    }

    #[test]
    fn a_loss_that_is_low_enough_ends_a_job() {
        let rules = Rules { early: Early { loss: Some(1.3), ..Early::default() }, ..Rules::default() };
        assert_eq!(judged(rules, &[3.0, 1.4, 1.3]), Some((2, Stop::Reached { loss: 1.3, goal: 1.3 })));
        assert_eq!(judged(rules, &[3.0, 1.4, 1.31]), None);
    }

    #[test]
    fn patience_ends() {
        let early = Early { patience: Some(2), min_delta: Some(0.1), loss: None };
        let rules = Rules { early, ..Rules::default() };
        // 1.95 is no improvement of 2.0, but 1.85 is.
        assert_eq!(
            judged(rules, &[3.0, 2.0, 1.95, 1.85, 1.9, 1.8]),
            Some((5, Stop::Stale { best: 1.85, intervals: 2 }))
        );
        assert_eq!(judged(rules, &[3.0, 2.5, 2.0, 2.5, 1.5]), None);
        let mut judge = Judge::new(rules);
        // The second report of an interval is another replica's.
        assert_eq!([(0, 1.0), (1, 1.0), (1, 1.0), (0, 1.0)].map(|(at, loss)| judge.hear(at, loss)), [None; 4]);
        assert_eq!(judge.hear(2, 1.0), Some(Stop::Stale { best: 1.0, intervals: 2 }));
    }

    #[test]
    fn a_loss_that_explodes_ends_a_job() {
        let rules = Rules { max_loss: Some(1.5), ..Rules::default() };
        assert_eq!(judged(rules, &[4.0, 5.9, 6.1]), Some((2, Stop::Exploded { loss: 6.1, most: 6.0 })));
        for loss in [f32::NAN, f32::INFINITY] {
            assert_eq!(judged(Rules::default(), &[4.0, loss]), Some((1, Stop::NotFinite)));
        }
        assert_eq!(judged(Rules::default(), &[4.0, 400.0]), None);
    }

    #[test]
    fn weights_out_of_their_range_end_a_job() {
        let judge = Judge::new(Rules::default());
        assert_eq!([0.0, 0.049, f32::NAN].map(|share| judge.hear_saturation(share)), [None; 3]);
        assert_eq!(judge.hear_saturation(0.06), Some(Stop::Saturated { share: 0.06, most: MAX_SATURATION }));
        let judge = Judge::new(Rules { max_saturation: Some(0.001), ..Rules::default() });
        assert_eq!(judge.hear_saturation(0.06), Some(Stop::Saturated { share: 0.06, most: 0.001 }));
    }
}
