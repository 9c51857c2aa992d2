//! Static exponents: one for every site of a step graph, found by calibration and fixed for the life of the job.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::step::Class;

/// Master weights keep at least this many fraction bits free of range: ±4 in 32 bits.
const MASTER_EXPONENT: i16 = 29;
/// No exponent goes beyond this, however small the values seen.
const FINEST: i16 = 96;
/// A gradient smaller than 2 to minus this is what floats leave of a zero, as that by a bias of keys is: no reason to
/// be finer.
const GRADIENT_PLACES: i16 = 30;

/// How many bits each kind of tensor may outgrow what calibration saw, before it saturates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Margins {
    /// Weights in operand width; the masters have one bit more.
    pub weight: u8,
    /// Activations, logits and the sums before them.
    pub activation: u8,
    /// Gradients of activations.
    pub gradient: u8,
    /// Velocities.
    pub velocity: u8,
}

impl Margins {
    /// What suits matmul operands of `bits` bits: narrow operands cannot spare bits, and their calibration runs longer.
    pub const fn for_operands(bits: u8) -> Self {
        if bits <= 8 {
            Self { weight: 1, activation: 1, gradient: 0, velocity: 3 }
        } else {
            Self { weight: 2, activation: 2, gradient: 3, velocity: 3 }
        }
    }
}

/// Largest magnitude seen at every site of a step graph, with the margins to leave above it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Exponents {
    /// Margins.
    pub margins: Margins,
    /// Largest magnitude by site, e.g. `fc1.matmul`.
    pub largest: BTreeMap<String, f64>,
}

impl Exponents {
    /// The exponent at which a tensor of `bits` bits holds what was seen at `site` with its margin; None for a site
    /// that calibration never saw.
    pub fn of(&self, site: &str, bits: u8, class: Class) -> Option<i16> {
        let largest = *self.largest.get(site)?;
        let margin = match class {
            Class::Weight => self.margins.weight.saturating_add(1),
            Class::Operand => self.margins.weight,
            Class::Activation => self.margins.activation,
            Class::Gradient => self.margins.gradient,
            Class::Velocity => self.margins.velocity,
        };
        let of_one = i16::from(bits).saturating_sub(1).saturating_sub(margin.into());
        let finest = match class {
            Class::Weight => MASTER_EXPONENT,
            Class::Gradient | Class::Velocity => of_one.saturating_add(GRADIENT_PLACES),
            Class::Operand | Class::Activation => FINEST,
        };
        Some(of_one.saturating_sub(log2_above(largest)).min(finest))
    }
}

/// Least `n` with `2^n ≥ x`, for finite `x`; 0 for zero, which says nothing about magnitude.
fn log2_above(x: f64) -> i16 {
    let bits = x.abs().to_bits();
    if bits == 0 {
        return 0;
    }
    // SAFETY of the cast: the biased exponent of a double has 11 bits.
    let exponent = ((bits >> 52) as i16).saturating_sub(1023);
    let power_of_two = bits & ((1 << 52) - 1) == 0;
    if power_of_two { exponent } else { exponent.saturating_add(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log2_rounds_up() {
        for (x, n) in [(0.0, 0), (1.0, 0), (1.1, 1), (2.0, 1), (-3.0, 2), (0.5, -1), (0.6, 0), (0.25, -2)] {
            assert_eq!(log2_above(x), n, "{x}");
        }
    }

    #[test]
    fn margins_leave_room() {
        let margins = Margins { weight: 1, activation: 2, gradient: 3, velocity: 3 };
        let largest = BTreeMap::from([("a".to_owned(), 3.0), ("w".to_owned(), 0.3), ("zero".to_owned(), 1e-17)]);
        let exponents = Exponents { margins, largest };
        // 3 < 2^2; two more bits; 15 bits of magnitude.
        assert_eq!(exponents.of("a", 16, Class::Activation), Some(11));
        // Small master weights still get ±4.
        assert_eq!(exponents.of("w", 32, Class::Weight), Some(29));
        // What is left of a zero is not made large.
        assert_eq!(exponents.of("zero", 24, Class::Gradient), Some(50));
        assert_eq!(exponents.of("b", 16, Class::Weight), None);
    }
}
