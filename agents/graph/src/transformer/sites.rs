//! What calibration saw of activations: their largest magnitudes, and how those that meet weights vary together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bits that an activation may outgrow what calibration saw before it saturates.
const MARGIN: i16 = 1;
/// No exponent goes beyond this, however small the values.
const FINEST: i16 = 40;

/// Beyond this a norm's sum of squares over 2^16 channels exceeds a 32-bit float, and the norm gives zeros.
const MOST: f32 = 1e16;

/// Channels that are looked at together: a block of 4096 operands' columns has whole ones.
pub const BLOCK: u16 = 128;

/// A site that calibration never saw.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("no exponent for {0}: calibrate this very model first")]
pub struct Uncalibrated(pub String);

/// Largest magnitude of every channel (element of the last dimension) at every site, as calibration saw them, and sums
/// of products of channels.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Magnitudes {
    largest: BTreeMap<String, Vec<f32>>,
    products: BTreeMap<String, Vec<f32>>,
}

impl Magnitudes {
    /// Takes in what was seen at a site; a site keeps the number of channels it had first. What is no number counts as
    /// infinite, for it comes of numbers that are.
    pub fn see(&mut self, site: &str, channels: &[f32]) {
        let magnitude = |x: &f32| if x.is_nan() { f32::INFINITY } else { *x };
        match self.largest.get_mut(site) {
            Some(most) => most.iter_mut().zip(channels).for_each(|(most, new)| *most = most.max(magnitude(new))),
            None => drop(self.largest.insert(site.to_owned(), channels.iter().map(magnitude).collect())),
        }
    }

    /// A site at which activations, or sums of their products, are larger than floats can be squared and summed.
    pub(super) fn overflown(&self) -> Option<&str> {
        let large = self.largest.iter().find(|(_, values)| values.iter().any(|x| *x > MOST));
        let products = || self.products.iter().find(|(_, values)| values.iter().any(|x| !x.is_finite()));
        large.or_else(products).map(|(site, _)| site.as_str())
    }

    /// Takes in sums over tokens of products of every two channels of a block of [`BLOCK`], `[blocks, BLOCK, BLOCK]`,
    /// at a site that projections take. A site without them has its weights rounded each for itself.
    pub fn see_products(&mut self, site: &str, products: &[f32]) {
        match self.products.get_mut(site) {
            Some(sums) => sums.iter_mut().zip(products).for_each(|(sum, new)| *sum += new),
            None => drop(self.products.insert(site.to_owned(), products.to_vec())),
        }
    }

    /// Sums of products of channels, block by block; none where calibration told nothing.
    pub(super) fn products(&self, site: &str) -> impl Iterator<Item = &[f32]> {
        let block = usize::from(BLOCK);
        self.products.get(site).map(Vec::as_slice).unwrap_or_default().chunks_exact(block.saturating_mul(block))
    }

    /// Largest magnitude by site.
    pub(super) fn sites(&self) -> Sites {
        let largest = |channels: &Vec<f32>| f64::from(channels.iter().fold(0.0, |most: f32, x| most.max(*x)));
        Sites(self.largest.iter().map(|(site, channels)| (site.clone(), largest(channels))).collect())
    }
}

/// Largest magnitude at every site of a model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sites(BTreeMap<String, f64>);

impl Sites {
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
        let mut seen = Magnitudes::default();
        seen.see("a", &[0.5, 2.0]);
        seen.see("a", &[3.0, 1.0]);
        seen.see("b", &[0.0]);
        let sites = seen.sites();
        // 3 < 2^2, one more bit, 15 bits of magnitude.
        assert_eq!(sites.exponent("a", 16), Ok(12));
        assert_eq!(sites.exponent("b", 12), Ok(10));
        assert_eq!(sites.exponent("c", 16), Err(Uncalibrated("c".to_owned())));
    }

    #[test]
    fn what_floats_cannot_hold_is_noticed() {
        let mut seen = Magnitudes::default();
        seen.see("a", &[1e16, 1.0]);
        assert_eq!(seen.overflown(), None);
        for bad in [f32::NAN, f32::INFINITY, 1.1e16] {
            let (mut first, mut later) = (seen.clone(), seen.clone());
            first.see("b", &[0.0, bad]);
            assert_eq!(first.overflown(), Some("b"));
            later.see("a", &[bad, 0.0]);
            assert_eq!(later.overflown(), Some("a"));
        }
        seen.see_products("a", &[1.0, f32::INFINITY]);
        assert_eq!(seen.overflown(), Some("a"));
    }
}
