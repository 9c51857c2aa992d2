//! How fast a lane multiplies, by how much longer it takes for long questions than for short ones.

use std::collections::VecDeque;

/// Answers whose median says how fast a lane is; and how many are enough.
const NEWEST: usize = 16;
const ENOUGH: usize = 4;
/// A question is a long one if it takes so many times what the shortest does: the way, signatures, and whatever else
/// takes the same time for any question, are a small part of it then.
const LONG: f64 = 4.0;

/// Multiply-adds a second of a lane.
#[derive(Debug, Default)]
pub(super) struct Rate {
    /// What its quickest answer took, seconds.
    shortest: Option<f64>,
    newest: VecDeque<f64>,
}

impl Rate {
    /// Takes an answer into account for which so much was multiplied, and which took so many seconds.
    pub(super) fn answer(&mut self, multiply_adds: u64, took: f64) {
        let shortest = self.shortest.map_or(took, |shortest| shortest.min(took));
        self.shortest = Some(shortest);
        if multiply_adds == 0 || took <= LONG * shortest {
            return;
        }
        if self.newest.len() >= NEWEST {
            self.newest.pop_front();
        }
        self.newest.push_back(multiply_adds as f64 / (took - shortest));
    }

    /// The median of the newest answers to long questions, once there are enough: one answer that was held up says
    /// nothing.
    pub(super) fn median(&self) -> Option<f64> {
        let mut sorted: Vec<f64> = self.newest.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().filter(|_| sorted.len() >= ENOUGH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lane that takes 10 ms for anything, and a second for each billion beside.
    fn asked(rate: &mut Rate, millions: &[u64]) {
        for millions in millions {
            rate.answer(millions * 1_000_000, 0.01 + *millions as f64 / 1e3);
        }
    }

    #[test]
    fn the_time_that_any_question_takes_does_not_count() {
        let mut rate = Rate::default();
        asked(&mut rate, &[1, 100, 200, 100]);
        assert_eq!(rate.median(), None, "three long ones are not enough");
        asked(&mut rate, &[1, 1, 400]);
        let median = rate.median().unwrap();
        assert!((median / 1e9 - 1.0).abs() < 0.02, "{median}");
    }

    #[test]
    fn an_answer_that_was_held_up_does_not_count_and_short_ones_tell_nothing() {
        let mut rate = Rate::default();
        asked(&mut rate, &[1, 300, 300, 300, 300]);
        rate.answer(300_000_000, 60.0);
        assert!(rate.median().unwrap() > 0.9e9);
        let mut rate = Rate::default();
        asked(&mut rate, &[10, 20, 30, 40, 30, 20, 10]);
        rate.answer(0, 1.0);
        assert_eq!(rate.median(), None);
    }

    #[test]
    fn only_the_newest_count() {
        let mut rate = Rate::default();
        asked(&mut rate, &[1]);
        for _ in 0..100 {
            rate.answer(1_000_000_000, 2.0);
        }
        asked(&mut rate, &[300; NEWEST]);
        assert!((rate.median().unwrap() / 1e9 - 1.0).abs() < 0.02);
        assert_eq!(rate.newest.len(), NEWEST);
    }
}
