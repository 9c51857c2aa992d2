//! A cheater that proposes blocks. Amounts are in prices of an interval.
//!
//! The beacon is `prevrandao` of a block, which every block before it changes. Whoever proposes the last blocks before
//! it can withhold some of them: with `slots` of them in a row it has 2^slots beacons to choose from, knows them all
//! beforehand, and pays the rewards of the blocks withheld. Proposers are known minutes before, so it cheats only where
//! it has the slots. It takes the cheapest beacon that draws nobody honest, unless that costs more than to be caught.
//! Of all beacons `n(j)` cost `j` blocks or fewer, `n(j)` being the sum of the binomials of `slots` over 0 … `j`, and
//! with `L = stake·(1 − recaptured) + 1` the gain of cheating once is
//!
//! ```text
//! saving − Σ (caught^n(j−1) − caught^n(j)) · min(j·reward, L) − caught^n(slots) · L          j = 1 … slots
//! ```
//!
//! Every beacon but the first costs a block at least. So cheating loses, however many slots there are, if it loses
//! without any and `caught · reward > saving`.

/// A worker that cheats on one interval, and may propose blocks before the beacon's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bias {
    /// What cheating saves, prices.
    pub saving: f64,
    /// Stake of the lane, prices.
    pub stake: f64,
    /// Share of the stake that comes back.
    pub recaptured: f64,
    /// Chance to be caught by one beacon, see [`crate::Crowd::caught`].
    pub caught: f64,
    /// Blocks in a row, up to the beacon's, that are the worker's.
    pub slots: u32,
    /// What withholding one forgoes, prices.
    pub reward: f64,
}

impl Bias {
    /// What being caught costs against having escaped, prices: stake and pay.
    pub fn loss(&self) -> f64 {
        self.stake * (1.0 - self.recaptured) + 1.0
    }

    /// Chance that a beacon to choose draws nobody honest.
    pub fn escapes(&self) -> f64 {
        1.0 - self.caught.powf(f64::from(self.slots).exp2())
    }

    /// Expected gain over honest work, prices.
    pub fn gain(&self) -> f64 {
        let slots = f64::from(self.slots);
        let (mut beacons, mut binomial, mut gain) = (1.0, 1.0, self.saving);
        for withheld in (1..=self.slots).map(f64::from) {
            binomial *= (slots - withheld + 1.0) / withheld;
            let before = self.caught.powf(beacons);
            beacons += binomial;
            gain -= (before - self.caught.powf(beacons)) * (withheld * self.reward).min(self.loss());
        }
        gain - self.caught.powf(beacons) * self.loss()
    }
}

/// Least stake, prices, with which cheating gains nothing though withheld blocks cost nothing.
pub fn least_stake(saving: f64, recaptured: f64, caught: f64, slots: u32) -> f64 {
    crate::cheating::least_stake(caught.powf(f64::from(slots).exp2()), saving, recaptured)
}

/// Least reward of a block, prices, with which cheating gains nothing whatever the slots, if it gains nothing
/// without any.
pub fn least_reward(saving: f64, caught: f64) -> f64 {
    saving / caught
}
