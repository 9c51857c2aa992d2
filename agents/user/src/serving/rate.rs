//! How fast a lane multiplies, by the time that long prompts take it. Only what the link to its worker may have taken
//! is left out: whatever else a worker does with the time, it does not compute.

use std::collections::VecDeque;

use tensorlink_node::link::Link;

use crate::placing::Reach;

/// Answers of which the second fastest says how fast a lane is: its worker may do other work at the same time, but not
/// always. And how many are enough.
const NEWEST: usize = 16;
const ENOUGH: usize = 4;
/// Tokens of a long prompt, and the least seconds that one takes beyond the round trip. It also takes longer than that:
/// of less, what any question takes is too large a part.
const LONG: (u32, f64) = (64, 0.03);
/// The most of that time that the bytes are taken to have needed, and what they are taken to have over a link that is
/// not known: a worker that makes its link look slow, or keeps it secret, must not look much faster for it.
const MOST: f64 = 0.5;

/// A question that was answered, and that nothing held up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Answered {
    /// Tokens that the lane did not have yet.
    pub(super) tokens: u32,
    /// What was multiplied for them.
    pub(super) multiply_adds: f64,
    /// Bytes to the lane, and from it.
    pub(super) bytes: (u64, u64),
    /// From the request to its answer.
    pub(super) seconds: f64,
    /// When, seconds of this machine's clock.
    pub(super) at: u64,
}

impl Answered {
    /// Multiply-adds a second of a worker that is reached so, whose quickest answer to anything took so long; none if
    /// it was asked too little. It can make itself look far, but not farther than that.
    fn rate(&self, reach: Option<Reach>, quickest: f64) -> Option<f64> {
        let round_trip = reach.map_or(quickest, |reach| quickest.min(2.0 * reach.away));
        let beyond = self.seconds - round_trip;
        if beyond < LONG.1.max(round_trip) {
            return None;
        }
        let passed = |link: Link| self.bytes.0 as f64 / link.to + self.bytes.1 as f64 / link.from;
        let most = MOST * beyond;
        Some(self.multiply_adds / (beyond - reach.and_then(|reach| reach.link).map_or(most, passed).min(most)))
    }
}

/// The answers that say how fast a lane is.
#[derive(Debug, Default)]
pub(super) struct Rate {
    /// The newest to long prompts.
    long: VecDeque<Answered>,
    /// What the quickest answer of all took.
    quickest: Option<f64>,
}

impl Rate {
    /// Takes an answer into account.
    pub(super) fn answer(&mut self, answered: Answered) {
        let quickest = self.quickest.get_or_insert(answered.seconds);
        *quickest = quickest.min(answered.seconds);
        if answered.tokens < LONG.0 || answered.multiply_adds <= 0.0 {
            return;
        }
        if self.long.len() >= NEWEST {
            self.long.pop_front();
        }
        self.long.push_back(answered);
    }

    /// When the newest answer came, once there are enough.
    pub(super) fn newest(&self) -> Option<u64> {
        self.long.back().filter(|_| self.long.len() >= ENOUGH).map(|answered| answered.at)
    }

    /// Multiply-adds a second of a worker that is reached so, once there are enough answers; and when the newest came.
    pub(super) fn of(&self, reach: Option<Reach>) -> Option<(f64, u64)> {
        let (at, quickest) = (self.newest()?, self.quickest?);
        let mut rates: Vec<f64> = self.long.iter().filter_map(|answered| answered.rate(reach, quickest)).collect();
        rates.sort_unstable_by(|a, b| b.total_cmp(a));
        // The fastest of all may be chance.
        rates.get(1).filter(|_| rates.len() >= ENOUGH).map(|rate| (*rate, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A megabyte each way and 100 tokens, for a billion multiply-adds.
    fn answered(seconds: f64, at: u64) -> Answered {
        Answered { tokens: 100, multiply_adds: 1e9, bytes: (1_000_000, 1_000_000), seconds, at }
    }

    /// After a short question that was answered in a tenth of a second.
    fn rate(seconds: &[f64]) -> Rate {
        let mut rate = Rate::default();
        rate.answer(Answered { tokens: 1, ..answered(0.1, 0) });
        (0..).zip(seconds).for_each(|(at, seconds)| rate.answer(answered(*seconds, at)));
        rate
    }

    /// Billions a second, over a link of so many megabytes a second each way to who is so far.
    fn billions(rate: &Rate, megabytes: f64, away: f64) -> Option<f64> {
        let link = Some(Link { to: megabytes * 1e6, from: megabytes * 1e6 });
        rate.of(Some(Reach { away, link })).map(|(rate, _)| (rate / 1e6).round() / 1e3)
    }

    #[test]
    fn four_long_prompts_tell_and_short_ones_do_not() {
        assert_eq!(billions(&rate(&[1.0; 3]), 1e9, 0.0), None);
        assert_eq!(billions(&rate(&[1.0; 4]), 1e9, 0.0), Some(1.0));
        let mut short = rate(&[0.02; 3]);
        for _ in 0..16 {
            short.answer(Answered { tokens: 63, ..answered(1.0, 0) });
            short.answer(Answered { multiply_adds: 0.0, ..answered(1.0, 0) });
        }
        assert_eq!(short.newest(), None);
        assert_eq!(billions(&rate(&[0.02; 16]), 1e9, 0.0), None, "what any question takes is too much of it");
    }

    #[test]
    fn what_the_link_takes_is_not_held_against_the_worker_but_never_more_than_half() {
        let rate = rate(&[1.0; 4]);
        let over = |megabytes, away| billions(&rate, megabytes, away);
        assert_eq!([over(20.0, 0.0), over(20.0, 0.05)], [Some(1.111), Some(1.25)]);
        assert_eq!(over(1e9, 9.0), Some(1.111), "it answers in a tenth of a second, and so is no farther");
        assert_eq!(over(0.1, 0.0), Some(2.0));
        assert_eq!(rate.of(Some(Reach { away: 0.0, link: None })), Some((2e9, 3)));
        assert_eq!(rate.of(None).map(|(rate, _)| (rate / 1e6).round()), Some(2_222.0));
    }

    #[test]
    fn a_prompt_that_takes_little_more_than_the_way_tells_nothing() {
        let rate = rate(&[0.19; 16]);
        assert_eq!([billions(&rate, 1e9, 0.05), billions(&rate, 1e9, 0.04)], [None, Some(9.091)]);
    }

    #[test]
    fn a_worker_that_does_other_work_most_of_the_time_is_as_fast_as_when_it_does_none() {
        assert_eq!(billions(&rate(&[4.0, 1.0, 4.0, 4.0, 1.0, 4.0, 9.0]), 1e9, 0.0), Some(1.0));
        assert_eq!(billions(&rate(&[4.0, 0.2, 4.0, 4.0, 4.0, 4.0, 9.0]), 1e9, 0.0), Some(0.25), "one is chance");
    }

    #[test]
    fn only_the_newest_count_and_tell_when_they_came() {
        let mut rate = rate(&[0.5; 100]);
        (100..100 + NEWEST as u64).for_each(|at| rate.answer(answered(1.0, at)));
        assert_eq!((billions(&rate, 1e9, 0.0), rate.newest()), (Some(1.0), Some(115)));
        assert_eq!(rate.long.len(), NEWEST);
    }
}
