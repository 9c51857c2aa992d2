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

/// Most channels that are looked at together: their products take a megabyte.
const MOST_TOGETHER: u32 = 512;

/// Channels in blocks of one length, the last of which may have fewer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    /// How many.
    pub count: u32,
    /// Channels of each.
    pub length: u32,
}

impl Blocks {
    /// As few as 512 channels a block allow, as even as they come.
    pub const fn of(channels: u32) -> Self {
        let count = channels.div_ceil(MOST_TOGETHER);
        Self { count, length: if count == 0 { 0 } else { channels.div_ceil(count) } }
    }
}

/// A site that calibration never saw.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("no exponent for {0}: calibrate this very model first")]
pub struct Uncalibrated(pub String);

/// Largest magnitude at every site, as calibration saw them, and sums of products of channels (elements of the last
/// dimension).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Magnitudes {
    largest: BTreeMap<String, f64>,
    products: BTreeMap<String, Vec<f32>>,
}

impl Magnitudes {
    /// Takes in the largest magnitude that was seen at a site. What is no number counts as infinite, for it comes of
    /// numbers that are.
    pub fn see(&mut self, site: &str, largest: f32) {
        let largest = if largest.is_nan() { f64::INFINITY } else { largest.into() };
        let most = self.largest.entry(site.to_owned()).or_default();
        *most = most.max(largest);
    }

    /// A site at which activations, or sums of their products, are larger than floats can be squared and summed.
    pub(super) fn overflown(&self) -> Option<&str> {
        let large = self.largest.iter().find(|(_, largest)| **largest > f64::from(MOST)).map(|(site, _)| site);
        let products = || self.products.iter().find(|(_, values)| values.iter().any(|x| !x.is_finite()));
        large.or_else(|| products().map(|(site, _)| site)).map(String::as_str)
    }

    /// Takes in sums over tokens of products of every two channels of a block, `[count, length, length]` of the site's
    /// [`Blocks`], at a site that projections take. A site without them has its weights rounded each for itself.
    pub fn see_products(&mut self, site: &str, products: &[f32]) {
        match self.products.get_mut(site) {
            Some(sums) => sums.iter_mut().zip(products).for_each(|(sum, new)| *sum += new),
            None => drop(self.products.insert(site.to_owned(), products.to_vec())),
        }
    }

    /// Sums of products of channels, block after block; none where calibration told nothing.
    pub(super) fn products(&self, site: &str) -> &[f32] {
        self.products.get(site).map(Vec::as_slice).unwrap_or_default()
    }

    /// Largest magnitude by site.
    pub(super) fn sites(&self) -> Sites {
        Sites(self.largest.clone())
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
    fn blocks_hold_all_channels_and_are_even() {
        for (channels, count, length) in [(0, 0, 0), (1, 1, 1), (512, 1, 512), (513, 2, 257), (576, 2, 288)] {
            assert_eq!(Blocks::of(channels), Blocks { count, length }, "{channels}");
        }
    }

    #[test]
    fn exponents_leave_the_margin() {
        let mut seen = Magnitudes::default();
        seen.see("a", 2.0);
        seen.see("a", 3.0);
        seen.see("b", 0.0);
        let sites = seen.sites();
        // 3 < 2^2, one more bit, 15 bits of magnitude.
        assert_eq!(sites.exponent("a", 16), Ok(12));
        assert_eq!(sites.exponent("b", 12), Ok(10));
        assert_eq!(sites.exponent("c", 16), Err(Uncalibrated("c".to_owned())));
    }

    #[test]
    fn what_floats_cannot_hold_is_noticed() {
        let mut seen = Magnitudes::default();
        seen.see("a", 1e16);
        assert_eq!(seen.overflown(), None);
        for bad in [f32::NAN, f32::INFINITY, 1.1e16] {
            let (mut first, mut later) = (seen.clone(), seen.clone());
            first.see("b", bad);
            assert_eq!(first.overflown(), Some("b"));
            later.see("a", bad);
            assert_eq!(later.overflown(), Some("a"));
        }
        seen.see_products("a", &[1.0, f32::INFINITY]);
        assert_eq!(seen.overflown(), Some("a"));
    }
}
