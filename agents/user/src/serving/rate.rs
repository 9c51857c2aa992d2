//! How fast a lane multiplies, by how much longer it takes for long questions than for its quickest.

use std::collections::VecDeque;

use tensorlink_node::link::Link;

/// Answers whose median says how fast a lane is; and how many are enough.
const NEWEST: usize = 16;
const ENOUGH: usize = 4;
/// A question is a long one if it is so many times the work of the quickest, and takes so many times as long: what any
/// question takes, such as the way, a signature and the weights that are read, is a small part of it then.
const LONG: (f64, f64) = (16.0, 3.0);
/// The most of a long question's time that the link may take: where it takes more, the answer tells little of the
/// worker.
const MOST: f64 = 0.25;

/// A question that was answered, and that nothing held up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Answered {
    /// What was multiplied for it.
    pub(super) multiply_adds: f64,
    /// Bytes to the lane, and from it.
    pub(super) bytes: (u64, u64),
    /// How long it took.
    pub(super) seconds: f64,
}

impl Answered {
    /// Multiply-adds a second beyond those of the quickest; none for a question that is not a long one.
    fn beyond(&self, quickest: &Self, link: Link) -> Option<f64> {
        let is_long =
            self.multiply_adds >= LONG.0 * quickest.multiply_adds && self.seconds >= LONG.1 * quickest.seconds;
        let passed = |of: u64, before: u64, rate: f64| of.saturating_sub(before) as f64 / rate;
        let way = passed(self.bytes.0, quickest.bytes.0, link.to) + passed(self.bytes.1, quickest.bytes.1, link.from);
        let took = self.seconds - quickest.seconds;
        (is_long && way <= MOST * took).then(|| (self.multiply_adds - quickest.multiply_adds) / (took - way))
    }
}

/// The answers that say how fast a lane is.
#[derive(Debug, Default)]
pub(super) struct Rate {
    quickest: Option<Answered>,
    newest: VecDeque<Answered>,
}

impl Rate {
    /// Takes an answer into account.
    pub(super) fn answer(&mut self, answered: Answered) {
        if answered.multiply_adds <= 0.0 {
            return;
        }
        let quickest = *self.quickest.get_or_insert(answered);
        if answered.seconds < quickest.seconds {
            self.quickest = Some(answered);
        }
        // Short ones do not push the long ones out.
        if answered.multiply_adds < LONG.0 * quickest.multiply_adds {
            return;
        }
        if self.newest.len() >= NEWEST {
            self.newest.pop_front();
        }
        self.newest.push_back(answered);
    }

    /// Whether there are enough answers, if the link took little of them.
    pub(super) fn is_timed(&self) -> bool {
        self.newest.len() >= ENOUGH
    }

    /// Multiply-adds a second over such a link: the median of the newest answers to long questions, once there are
    /// enough. One answer that was held up says nothing.
    pub(super) fn median(&self, link: Link) -> Option<f64> {
        let quickest = self.quickest?;
        let mut sorted: Vec<f64> = self.newest.iter().filter_map(|answered| answered.beyond(&quickest, link)).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().filter(|_| sorted.len() >= ENOUGH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So wide that no byte takes time.
    const WIDE: Link = Link { to: 1e15, from: 1e15 };

    /// A lane that takes 10 ms for anything, and a second for each billion beside; a byte goes each way for each of a
    /// thousand.
    fn asked(rate: &mut Rate, millions: &[u64]) {
        for millions in millions {
            let bytes = (millions * 1_000, millions * 1_000);
            let seconds = 0.01 + *millions as f64 / 1e3;
            rate.answer(Answered { multiply_adds: *millions as f64 * 1e6, bytes, seconds });
        }
    }

    fn close(rate: Option<f64>, billions: f64) -> bool {
        rate.is_some_and(|rate| (rate / 1e9 / billions - 1.0).abs() < 1e-6)
    }

    #[test]
    fn the_time_that_any_question_takes_does_not_count() {
        let mut rate = Rate::default();
        asked(&mut rate, &[1, 100, 200, 100]);
        assert_eq!(rate.median(WIDE), None, "three long ones are not enough");
        asked(&mut rate, &[1, 1, 400]);
        assert!(close(rate.median(WIDE), 1.0), "{:?}", rate.median(WIDE));
    }

    #[test]
    fn what_the_link_takes_is_not_held_against_the_worker() {
        let mut rate = Rate::default();
        asked(&mut rate, &[1, 100, 200, 300, 400]);
        // A tenth of each second, and a fifth: of 0.9 s and 0.8 s is what it computes in.
        assert!(close(rate.median(Link { to: 2e7, from: 2e7 }), 1.0 / 0.9));
        assert!(close(rate.median(Link { to: 1e7, from: 1e7 }), 1.0 / 0.8));
        assert_eq!(rate.median(Link { to: 1e6, from: 1e15 }), None, "all that can be seen is the link");
    }

    #[test]
    fn an_answer_that_was_held_up_does_not_count_and_short_ones_tell_nothing() {
        let mut rate = Rate::default();
        asked(&mut rate, &[1, 300, 300, 300, 300]);
        rate.answer(Answered { multiply_adds: 3e8, bytes: (0, 0), seconds: 60.0 });
        assert!(close(rate.median(WIDE), 1.0));
        let mut rate = Rate::default();
        asked(&mut rate, &[10, 20, 30, 40, 30, 20, 10]);
        rate.answer(Answered { multiply_adds: 0.0, bytes: (0, 0), seconds: 1.0 });
        assert_eq!(rate.median(WIDE), None);
    }

    #[test]
    fn a_lane_that_is_asked_long_questions_first_is_measured_as_well() {
        let mut rate = Rate::default();
        asked(&mut rate, &[300, 1, 300, 300, 300, 1, 300]);
        assert!(close(rate.median(WIDE), 1.0));
    }

    #[test]
    fn only_the_newest_count() {
        let mut rate = Rate::default();
        asked(&mut rate, &[1]);
        for _ in 0..100 {
            rate.answer(Answered { multiply_adds: 1e9, bytes: (0, 0), seconds: 2.0 });
        }
        asked(&mut rate, &[300; NEWEST]);
        assert!(close(rate.median(WIDE), 1.0));
        assert_eq!(rate.newest.len(), NEWEST);
    }
}
