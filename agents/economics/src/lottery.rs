//! Who is drawn to audit a claim, and who of them looks.
//!
//! After a claim is committed a beacon draws every validator on its own, with the same chance. Nobody is excluded by
//! being drawn late or by somebody else's draw.

/// The validators, by what they do when drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crowd {
    /// They execute the interval again and say what they found.
    pub honest: u32,
    /// They answer without looking, or with an answer that they bought.
    pub lazy: u32,
    /// They belong to the cheater, and have no objection to its claims; or they do not answer at all.
    pub colluding: u32,
}

impl Crowd {
    /// Of `validators` the two shares, of one; validators that are no whole number are counted against honesty.
    pub fn of(validators: u32, lazy: f64, colluding: f64) -> Self {
        // Casts saturate; the small number undoes rounding of shares such as 0.07 · 100.
        let count = |share: f64| (share * f64::from(validators) - 1e-9).ceil() as u32;
        let lazy = count(lazy).min(validators);
        let colluding = count(colluding).min(validators.saturating_sub(lazy));
        Self { honest: validators.saturating_sub(lazy).saturating_sub(colluding), lazy, colluding }
    }

    /// All validators.
    pub fn size(&self) -> u32 {
        self.honest.saturating_add(self.lazy).saturating_add(self.colluding)
    }

    /// Chance of one validator to be drawn for a claim that gets `audits` on the mean: at most 1.
    pub fn chance(&self, audits: f64) -> f64 {
        (audits / f64::from(self.size().max(1))).clamp(0.0, 1.0)
    }

    /// Chance that an honest validator is drawn, and so that a wrong claim is caught.
    pub fn caught(&self, audits: f64) -> f64 {
        some(self.honest, self.chance(audits))
    }

    /// Chance that a lazy validator is drawn.
    pub fn copied(&self, audits: f64) -> f64 {
        some(self.lazy, self.chance(audits))
    }

    /// Mean audits per claim at which a wrong claim is caught with the chance `caught`. None if no rate does it.
    pub fn audits_for(&self, caught: f64) -> Option<f64> {
        if self.honest == 0 || !(0.0..1.0).contains(&caught) {
            return None;
        }
        let chance = 1.0 - (1.0 - caught).powf(1.0 / f64::from(self.honest));
        Some(chance * f64::from(self.size()))
    }
}

/// Chance that one of `count` is drawn.
fn some(count: u32, chance: f64) -> f64 {
    1.0 - (1.0 - chance).powf(f64::from(count))
}
