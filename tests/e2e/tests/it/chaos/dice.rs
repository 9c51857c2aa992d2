//! Pseudo-random numbers that a seed fixes: SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number
//! generators*, 2014).

use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `bound`; the bias of a remainder is nothing here.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    pub(super) const fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// From a least to a most, to the millisecond.
    pub(super) const fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let range = (most.as_millis() - least.as_millis()) as u64;
        Duration::from_millis(least.as_millis() as u64 + self.below(range + 1))
    }

    /// Fisher and Yates.
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
