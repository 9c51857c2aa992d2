//! Whether what others use of a machine is much: by the average of the last minute, so that a moment tells nothing, and
//! with two thresholds, so that what varies around one of them does not open and close in turn.

use std::collections::VecDeque;

use super::Percent;

/// Looks that the average is of.
const LOOKS: usize = 12;
/// Which part of the most is little again.
const LITTLE: f64 = 0.5;

/// What others used in each of the last looks, and whether that is much.
#[derive(Debug)]
pub(super) struct Gate {
    most: f64,
    looks: VecDeque<f64>,
    is_much: bool,
}

impl Gate {
    /// Before anybody looked.
    pub(super) fn new(most: Percent) -> Self {
        Self { most: most.share(), looks: VecDeque::with_capacity(LOOKS), is_much: false }
    }

    /// Takes in what part of all others used since the last look. More than the most is much, until it is half of the
    /// most, or less.
    pub(super) fn look(&mut self, share: f64) {
        if self.looks.len() >= LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back(share);
        self.is_much = self.average() > if self.is_much { self.most * LITTLE } else { self.most };
    }

    /// What part of all others used, by the last looks.
    pub(super) fn average(&self) -> f64 {
        self.looks.iter().sum::<f64>() / self.looks.len().max(1) as f64
    }

    /// Whether it is much.
    pub(super) const fn is_much(&self) -> bool {
        self.is_much
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many looks of the same share each, whether it is much.
    fn after(gate: &mut Gate, share: f64, looks: usize) -> bool {
        for _ in 0..looks {
            gate.look(share);
        }
        gate.is_much()
    }

    fn gate(most: u8) -> Gate {
        Gate::new(most.try_into().unwrap())
    }

    #[test]
    fn a_moment_tells_nothing_and_a_minute_does() {
        let mut gate = gate(25);
        assert!(!after(&mut gate, 0.0, LOOKS));
        assert!(!after(&mut gate, 1.0, 3), "a quarter of the minute is not more than 25 %");
        assert!(after(&mut gate, 1.0, 1));
        assert!(after(&mut gate, 1.0, LOOKS));
        assert!(after(&mut gate, 0.0, 10), "a pause is no end");
        assert!(!after(&mut gate, 0.0, 1));
    }

    #[test]
    fn between_the_thresholds_it_stays_as_it_is() {
        let mut gate = gate(40);
        assert!(!after(&mut gate, 0.3, 5 * LOOKS) && !after(&mut gate, 0.4, LOOKS));
        assert!(after(&mut gate, 0.5, LOOKS));
        assert!(after(&mut gate, 0.3, 5 * LOOKS), "less than the most, and more than half of it");
        assert!(!after(&mut gate, 0.2, LOOKS));
        assert!(!after(&mut gate, 0.3, 5 * LOOKS));
    }

    #[test]
    fn the_first_look_tells_and_no_more_are_kept_than_count() {
        let mut gate = gate(25);
        assert!(after(&mut gate, 0.5, 1));
        gate.look(0.0);
        assert!((gate.average() - 0.25).abs() < 1e-9, "of both looks");
        after(&mut gate, 0.1, 1_000);
        assert_eq!(gate.looks.len(), LOOKS);
        assert!((gate.average() - 0.1).abs() < 1e-9, "what came before is forgotten");
    }
}
