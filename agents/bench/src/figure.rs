//! One figure: what was measured, what it should be, and whether it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Row;
use super::time::millis;

/// What a figure should be.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// No less.
    AtLeast(f64),
    /// No more.
    AtMost(f64),
}

/// Of what a figure is a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Times something else.
    Times,
    /// A share; 1 is all.
    Share,
    /// A cosine, a perplexity.
    Number,
    /// How far two states are apart, of the larger update.
    Distance,
    /// Gas of a transaction, or of a call within one.
    Gas,
}

/// How a figure compares with its goal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Verdict {
    Met,
    Missed,
    NotMeasured,
    NoGoal,
}

/// A line of the table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// The row that it belongs to.
    pub row: Row,
    /// What was measured.
    pub what: String,
    /// What it should be, if anything.
    pub goal: Option<Goal>,
    /// What it is, unless it was not measured.
    pub measured: Option<f64>,
    /// Of what it is a number.
    pub unit: Unit,
    /// Whether it is what it should be.
    pub verdict: Verdict,
    /// What the figure was made from, or why there is none.
    pub note: String,
}

impl Figure {
    /// A figure that was measured.
    pub fn new(row: Row, what: impl Into<String>, (measured, unit): (f64, Unit), goal: Option<Goal>) -> Self {
        let verdict = match goal {
            _ if !measured.is_finite() => Verdict::NotMeasured,
            None => Verdict::NoGoal,
            Some(Goal::AtLeast(least)) if measured >= least => Verdict::Met,
            Some(Goal::AtMost(most)) if measured <= most => Verdict::Met,
            Some(_) => Verdict::Missed,
        };
        let measured = Some(measured).filter(|measured| measured.is_finite());
        Self { row, what: what.into(), goal, measured, unit, verdict, note: String::new() }
    }

    /// How many times faster than a peer, out of both times.
    pub(super) fn faster(row: Row, what: String, (ours, theirs): (Duration, Duration), goal: f64) -> Self {
        let (ours, theirs) = (millis(ours), millis(theirs));
        let figure = Self::new(row, what, (theirs / ours, Unit::Times), Some(Goal::AtLeast(goal)));
        figure.from(format!("{ours:.2} ms against {theirs:.2}"))
    }

    /// A row that was not measured, and why.
    pub fn absent(row: Row, what: impl Into<String>, why: impl Into<String>) -> Self {
        let (what, note) = (what.into(), why.into());
        Self { row, what, goal: None, measured: None, unit: Unit::Number, verdict: Verdict::NotMeasured, note }
    }

    /// With what it was made from.
    #[must_use]
    pub fn from(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_from_goal_and_measure() {
        let verdict = |measured, goal| Figure::new(Row::Gas, "", (measured, Unit::Times), goal).verdict;
        assert_eq!(verdict(2.5, Some(Goal::AtLeast(2.5))), Verdict::Met);
        assert_eq!(verdict(2.4, Some(Goal::AtLeast(2.5))), Verdict::Missed);
        assert_eq!(verdict(1.5, Some(Goal::AtMost(1.5))), Verdict::Met);
        assert_eq!(verdict(1.6, Some(Goal::AtMost(1.5))), Verdict::Missed);
        assert_eq!(verdict(1.6, None), Verdict::NoGoal);
        assert_eq!(verdict(f64::NAN, Some(Goal::AtMost(1.5))), Verdict::NotMeasured);
    }
}
