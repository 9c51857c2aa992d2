//! Pseudo-random numbers for simulations and searches: each a function of seed and counter, on every machine alike, so
//! that a trial can be told again without those before it.
//!
//! SplitMix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, OOPSLA 2014). What the network
//! draws with is Philox (rule N-4).
//!
//! ```
//! use tensorlink_draws::Draws;
//!
//! let told = |trial| Draws::of(7, trial).unit();
//! assert_eq!(told(3), told(3));
//! assert_ne!(told(3), told(4));
//! ```

#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable))]

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Word number `counter` of a seed, from 1.
pub fn word(seed: u64, counter: u64) -> u64 {
    let mixed = seed.wrapping_add(GOLDEN.wrapping_mul(counter));
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A stream of draws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draws {
    seed: u64,
    counter: u64,
}

impl Draws {
    /// The stream of a seed for one trial, or one purpose. Streams of others are unrelated.
    pub fn of(seed: u64, trial: u64) -> Self {
        Self { seed: word(word(seed, 1), trial.wrapping_add(1)), counter: 0 }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        word(self.seed, self.counter)
    }

    /// Uniform in [0, 1), a multiple of 2^−53.
    pub fn unit(&mut self) -> f64 {
        // The upper 53 bits fit a double's mantissa.
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with the chance given.
    pub fn happens(&mut self, chance: f64) -> bool {
        self.unit() < chance
    }

    /// How many of `count` happen, each with the chance given.
    pub fn how_many(&mut self, count: u32, chance: f64) -> u32 {
        (0..count).fold(0, |sum: u32, _| sum.saturating_add(self.happens(chance).into()))
    }

    /// Uniform in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// With a logarithm that is uniform between those of both bounds, which are positive.
    pub fn log_between(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    /// A whole number in [0, bound); 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The product of a fraction below one and the bound is below the bound, for every bound that is a
        // memory's size.
        (self.unit() * bound as f64) as usize
    }

    /// Normal, of mean 0 and deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Log-normal of the median and the deviation of its logarithm given.
    pub fn log_normal(&mut self, median: f64, deviation: f64) -> f64 {
        median * (deviation * self.normal()).exp()
    }

    /// Puts what it is given in a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last.saturating_add(1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for seed 0 of the reference implementation (Vigna, `splitmix64.c`).
    #[test]
    fn known_answers() {
        assert_eq!(
            [1, 2, 3].map(|n| word(0, n)),
            [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F]
        );
    }

    #[test]
    fn a_trial_is_told_alike_twice_and_unlike_its_neighbour() {
        let told = |trial| {
            let mut draws = Draws::of(7, trial);
            [draws.unit(), draws.unit(), draws.unit()]
        };
        assert_eq!(told(3), told(3));
        assert_ne!(told(3), told(4));
    }

    #[test]
    fn draws_are_uniform() {
        let mut draws = Draws::of(1, 1);
        let mut bins = [0_u32; 16];
        for _ in 0..160_000 {
            bins[(draws.unit() * 16.0) as usize] += 1;
        }
        // Chi-square of 15 degrees of freedom: above 37.7 once in a thousand seeds; this one is fixed.
        let chi: f64 = bins.map(|n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0).iter().sum();
        assert!(chi < 37.7, "{chi}");
    }

    #[test]
    fn draws_have_their_means() {
        let mut draws = Draws::of(1, 2);
        let count = 100_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..count).map(|_| draw()).sum::<f64>() / f64::from(count);
        assert!((mean(&mut || draws.unit()) - 0.5).abs() < 0.01);
        assert!(mean(&mut || draws.normal()).abs() < 0.02);
        assert!((mean(&mut || draws.normal().powi(2)) - 1.0).abs() < 0.03);
        assert!((mean(&mut || draws.log_between(1.0, 100.0).ln()) - 10_f64.ln()).abs() < 0.02);
        assert!((mean(&mut || draws.below(11) as f64) - 5.0).abs() < 0.05);
    }

    #[test]
    fn a_shuffle_keeps_what_it_shuffles() {
        let mut items = [0, 1, 2, 3, 4, 5, 6, 7];
        Draws::of(3, 0).shuffle(&mut items);
        assert_ne!(items, [0, 1, 2, 3, 4, 5, 6, 7]);
        items.sort_unstable();
        assert_eq!(items, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
