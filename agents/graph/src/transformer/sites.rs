//! Exponents of activations, from the largest magnitudes that calibration saw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bits that an activation may outgrow what calibration saw before it saturates.
const MARGIN: i16 = 1;
/// No exponent goes beyond this, however small the values.
const FINEST: i16 = 40;

/// A site that calibration never saw.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("no exponent for {0}: calibrate this very model first")]
pub struct Uncalibrated(pub String);

/// Largest magnitude at every site of a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sites(BTreeMap<String, f64>);

impl Sites {
    /// Takes what calibration saw.
    pub const fn new(largest: BTreeMap<String, f64>) -> Self {
        Self(largest)
    }

    /// The exponent at which `bits` bits hold a site's values with their margin.
    ///
    /// # Errors
    /// [`Uncalibrated`].
    pub fn exponent(&self, site: &str, bits: u8) -> Result<i16, Uncalibrated> {
        let largest = *self.0.get(site).ok_or_else(|| Uncalibrated(site.to_owned()))?;
        Ok(exponent(largest, bits).saturating_sub(MARGIN))
    }
}

/// Exponent at which a magnitude fills `bits` bits.
pub(super) fn exponent(largest: f64, bits: u8) -> i16 {
    let ceiling = if largest > 0.0 { libm::ceil(libm::log2(largest)) } else { 0.0 };
    // SAFETY of the cast: the logarithm of a double lies within ±1100.
    i16::from(bits).saturating_sub(1).saturating_sub(ceiling as i16).min(FINEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_leave_the_margin() {
        let sites = Sites::new(BTreeMap::from([("a".to_owned(), 3.0), ("b".to_owned(), 0.0)]));
        // 3 < 2^2, one more bit, 15 bits of magnitude.
        assert_eq!(sites.exponent("a", 16), Ok(12));
        assert_eq!(sites.exponent("b", 12), Ok(10));
        assert_eq!(sites.exponent("c", 16), Err(Uncalibrated("c".to_owned())));
    }
}
