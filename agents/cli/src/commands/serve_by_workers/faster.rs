//! When a served model goes to workers that would be much faster.

use std::time::Duration;

use crate::commands::hiring::Faster;
use crate::when;

/// How many times as fast others must be, in so many looks in a row, to serve in place of those that do.
const FASTER: (f64, u32) = (1.5, 2);
/// How many times as much they may ask; rounding apart, no more than those that do.
const DEARER: f64 = 1.000_001;
/// Looks that are left out after others were hired; twice as many after each attempt in vain, for so many seconds at
/// most.
const LEFT_OUT: (u64, u64) = (6, 86_400);

/// Looks for faster workers.
pub(super) struct Looks {
    /// Seconds between two of them; none where nobody looks.
    between: Option<u64>,
    /// When the next is.
    next: u64,
    /// Those in a row by which others would be faster.
    faster: u32,
    /// Attempts in vain to hire those.
    in_vain: u32,
}

impl Looks {
    /// The first is after the wait between two.
    pub(super) fn every(between: Option<Duration>) -> Self {
        let between = between.map(|between| between.as_secs());
        Self { between, next: when::now().saturating_add(between.unwrap_or_default()), faster: 0, in_vain: 0 }
    }

    /// Whether it is time for one.
    pub(super) const fn is_due(&mut self, now: u64) -> bool {
        let Some(between) = self.between else { return false };
        let is_due = now >= self.next;
        if is_due {
            self.next = now.saturating_add(between);
        }
        is_due
    }

    /// Whether others are to be hired, by what was found now and before.
    pub(super) fn found(&mut self, found: Option<&Faster>) -> bool {
        self.faster = if found.is_some_and(is_better) { self.faster.saturating_add(1) } else { 0 };
        let is_enough = self.faster >= FASTER.1;
        if is_enough {
            self.faster = 0;
        }
        is_enough
    }

    /// Others were hired, or could not be: seconds until the next look.
    pub(super) fn pause(&mut self, is_hired: bool, now: u64) -> u64 {
        self.in_vain = if is_hired { 0 } else { self.in_vain.saturating_add(1) };
        let (looks, most) = LEFT_OUT;
        let between = self.between.unwrap_or_default();
        let pause = between.saturating_mul(looks << self.in_vain.min(32)).min(most.max(between));
        self.next = now.saturating_add(pause);
        pause
    }
}

/// Whether others are to serve in place of those that do, as they would be much faster and are no dearer.
pub(super) fn is_better(found: &Faster) -> bool {
    found.times >= FASTER.0 && found.dearer <= DEARER && !found.without.is_empty()
}

#[cfg(test)]
mod tests {
    use tensorlink_types::Address;

    use super::*;

    fn found(times: f64, dearer: f64) -> Faster {
        Faster { times, dearer, without: vec![Address::ZERO] }
    }

    #[test]
    fn others_must_be_much_faster_twice_in_a_row_and_no_dearer() {
        let mut looks = Looks::every(Some(Duration::from_secs(10)));
        let much = found(1.6, 1.0);
        assert!(!looks.found(Some(&much)));
        for not in
            [Some(found(1.4, 0.5)), Some(found(9.0, 1.01)), Some(Faster { without: vec![], ..much.clone() }), None]
        {
            assert!(!looks.found(not.as_ref()));
            assert!(!looks.found(Some(&much)), "the first in a row again");
        }
        assert!(looks.found(Some(&much)));
        assert!(!looks.found(Some(&much)), "those are hired now");
    }

    #[test]
    fn looks_are_left_out_after_others_were_hired_and_more_after_each_attempt_in_vain() {
        let mut looks = Looks { between: Some(600), next: 0, faster: 0, in_vain: 0 };
        assert!(looks.is_due(1_000) && !looks.is_due(1_599) && looks.is_due(1_600));
        assert_eq!(looks.pause(true, 2_000), 3_600);
        assert!(!looks.is_due(5_599) && looks.is_due(5_600));
        let pauses = [(); 6].map(|()| looks.pause(false, 0));
        assert_eq!(pauses, [7_200, 14_400, 28_800, 57_600, 86_400, 86_400]);
        assert_eq!(looks.pause(true, 0), 3_600);
        let mut never = Looks::every(None);
        assert!(!never.is_due(u64::MAX));
        // Who looks once in three days leaves out no more.
        assert_eq!(Looks { between: Some(259_200), ..looks }.pause(false, 0), 259_200);
    }
}
