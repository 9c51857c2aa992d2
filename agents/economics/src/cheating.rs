//! A worker that cheats now and then, against the same worker being honest.
//!
//! In every interval it cheats with the chance `wrong`, and a wrong claim is caught with the chance `caught`, whatever
//! happened to the others. Caught, it loses the stake and the pay of that claim and of the `lag` claims that it has put
//! on top meanwhile. All money here is in prices of an interval.
//!
//! With `h = wrong · caught`, `r = 1 − h` and `G(n) = 1 + r + … + r^(n−1)`, the mean number of the first `n` intervals
//! that it starts unconvicted, the gain is
//!
//! ```text
//! G(length) · [wrong·(1 − caught)·saving − h·(stake·(1 − recaptured) + 1 − saving)]
//!     − (1 − wrong·saving) · [m − r^(length−m) · G(m)]          m = min(lag, length)
//! ```
//!
//! The bracket of the first line is one gamble, repeated: if it loses once it loses always. The second line, work on
//! claims that are void already, only takes. So cheating loses for runs of every length if it loses for one interval.

/// A run of intervals of one lane in which some are cheated on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// Intervals.
    pub length: u32,
    /// Chance that an interval is cheated on: 0.01 is one in a hundred.
    pub wrong: f64,
    /// What cheating on an interval saves of its cost, prices. At most 1: no worker spends more than the price
    /// for long.
    pub saving: f64,
    /// Claims committed after a caught one before it is convicted.
    pub lag: u32,
    /// Stake of the lane, prices.
    pub stake: f64,
    /// Share of the stake that comes back to the cheater. The bounty does if it convicts itself once it sees that it
    /// is found.
    pub recaptured: f64,
    /// Chance that a wrong claim is caught, see [`crate::Crowd::caught`].
    pub caught: f64,
}

impl Run {
    /// Expected gain over honest work, prices. Profit that a closed lane would have made is not counted: the worker
    /// finds other work.
    pub fn gain(&self) -> f64 {
        let hazard = self.wrong * self.caught;
        let escaped = self.wrong * (1.0 - self.caught) * self.saving;
        let taken = hazard * (self.stake * (1.0 - self.recaptured) + 1.0 - self.saving);
        let lag = self.lag.min(self.length);
        let before = f64::from(self.length.saturating_sub(lag));
        let void = f64::from(lag) - (1.0 - hazard).powf(before) * started(hazard, lag);
        started(hazard, self.length) * (escaped - taken) - (1.0 - self.wrong * self.saving) * void
    }

    /// Chance to be convicted before the run ends.
    pub fn convicted(&self) -> f64 {
        self.wrong * self.caught * started(self.wrong * self.caught, self.length)
    }

    /// Length from which on every run loses, if that is at most `longest`. This run's own length is not looked at.
    pub fn loses_from(&self, longest: u32) -> Option<u32> {
        let loses = |length: u32| Self { length, ..*self }.gain() < 0.0;
        if !loses(longest) {
            return None;
        }
        // Void work grows with the run while the gamble stays the same: having begun to lose, it loses.
        let (mut low, mut high) = (1, longest);
        while low < high {
            let middle = low.midpoint(high);
            if loses(middle) { high = middle } else { low = middle.saturating_add(1) }
        }
        Some(low)
    }
}

/// Least stake, prices, with which cheating gains nothing however short the run; infinite if nobody can catch it. The 1
/// is the pay of the claim itself.
pub fn least_stake(caught: f64, saving: f64, recaptured: f64) -> f64 {
    ((saving / caught - 1.0) / (1.0 - recaptured)).max(0.0)
}

/// Least chance to be caught with which `stake`, prices, deters: the inverse of [`least_stake`].
pub fn least_caught(stake: f64, saving: f64, recaptured: f64) -> f64 {
    saving / (stake * (1.0 - recaptured) + 1.0)
}

/// Mean number of the first `count` intervals that begin unconvicted, each ending so with the chance `hazard`: G.
fn started(hazard: f64, count: u32) -> f64 {
    if hazard <= 0.0 || count == 0 {
        return f64::from(count);
    }
    // 1 − (1 − h)^n without cancelling where h is small.
    -(f64::from(count) * (-hazard).ln_1p()).exp_m1() / hazard
}
