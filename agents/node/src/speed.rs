//! How fast a worker computes, as it measured itself and tells everybody.

use std::fmt;

use serde::{Deserialize, Serialize};
use tensorlink_model::Setting;
pub use tensorlink_placement::node::Tier;
use thiserror::Error;

/// Most multiply-adds a second that are believed: a hundred times what the fastest device of today has.
pub const MOST_MULTIPLY_ADDS: u64 = 100_000_000_000_000_000;
/// Most bytes a second read from memory that are believed, likewise.
pub const MOST_BYTES: u64 = 1_000_000_000_000_000;

/// Operations of a multiply-add, as teraflops are counted.
const OPERATIONS: f64 = 2.0;

/// What was measured, before anybody looked whether it can be.
///
/// There is none of weights of 4 bits: the engine has no products of those. It multiplies them as weights of 8 or 16.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Multiply-adds a second of 8 bits by 8.
    pub fast: u64,
    /// Multiply-adds a second of activations of 16 bits by weights of 8.
    pub standard: u64,
    /// Multiply-adds a second of 16 bits by 16.
    pub reference: u64,
    /// Bytes of weights a second that are read from memory where each is used once, as for one more token.
    pub memory: u64,
}

/// A speed that can be: none of its figures is 0, none beyond what a device may have some day.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Measured", into = "Measured")]
pub struct Speed(Measured);

/// A figure that no worker has. Measure again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{value} {what} a second are not between 1 and {most}: measure again by `tensorlink bench profile`")]
pub struct Implausible {
    /// Of what.
    pub what: &'static str,
    /// The figure.
    pub value: u64,
    /// The most that is believed.
    pub most: u64,
}

impl Speed {
    /// The slowest that can be told, for where nobody looks at it.
    pub const LEAST: Self = Self(Measured { fast: 1, standard: 1, reference: 1, memory: 1 });

    /// Multiply-adds a second in a setting. Of `fast` it is that of its products of 8 by 8 bits; where it takes
    /// activations of 11, it is as fast as `standard`.
    pub const fn multiply_adds(self, setting: Setting) -> u64 {
        match setting {
            Setting::Fast => self.0.fast,
            Setting::Standard => self.0.standard,
            Setting::Reference => self.0.reference,
        }
    }

    /// Bytes of weights a second that are read from memory where each is used once.
    pub const fn memory(self) -> u64 {
        self.0.memory
    }

    /// Trillions of operations a second in the default setting, two for a multiply-add.
    pub fn teraflops(self) -> f64 {
        self.multiply_adds(Setting::default()) as f64 * OPERATIONS / 1e12
    }

    /// The class of devices that this is, by what was measured in the default setting.
    pub fn tier(self) -> Tier {
        Tier::of(self.teraflops())
    }
}

impl TryFrom<Measured> for Speed {
    type Error = Implausible;

    fn try_from(measured: Measured) -> Result<Self, Implausible> {
        let Measured { fast, standard, reference, memory } = measured;
        for (what, value, most) in [
            ("multiply-adds of 8 by 8 bits", fast, MOST_MULTIPLY_ADDS),
            ("multiply-adds of 16 by 8 bits", standard, MOST_MULTIPLY_ADDS),
            ("multiply-adds of 16 by 16 bits", reference, MOST_MULTIPLY_ADDS),
            ("bytes of memory", memory, MOST_BYTES),
        ] {
            if value == 0 || value > most {
                return Err(Implausible { what, value, most });
            }
        }
        Ok(Self(measured))
    }
}

/// For people, in billions.
impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let billions = |amount: u64| amount as f64 / 1e9;
        let Measured { fast, standard, reference, memory } = self.0;
        let [fast, standard, reference, memory] = [fast, standard, reference, memory].map(billions);
        write!(
            f,
            "tier {}: {standard:.1} billion multiply-adds a second (fast {fast:.1}, reference {reference:.1}), \
             {memory:.1} GB a second from memory",
            self.tier()
        )
    }
}

impl From<Speed> for Measured {
    fn from(speed: Speed) -> Self {
        speed.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure among ones.
    fn with(change: impl FnOnce(&mut Measured)) -> Result<Speed, Implausible> {
        let mut measured = Speed::LEAST.into();
        change(&mut measured);
        measured.try_into()
    }

    #[test]
    fn a_speed_of_nothing_and_one_beyond_all_devices_are_refused() {
        let fields: [fn(&mut Measured) -> &mut u64; 4] =
            [|of| &mut of.fast, |of| &mut of.standard, |of| &mut of.reference, |of| &mut of.memory];
        let most = [MOST_MULTIPLY_ADDS, MOST_MULTIPLY_ADDS, MOST_MULTIPLY_ADDS, MOST_BYTES];
        for (field, most) in fields.into_iter().zip(most) {
            for value in [1, most] {
                with(|of| *field(of) = value).unwrap();
            }
            for value in [0, most + 1, u64::MAX] {
                assert_eq!(with(|of| *field(of) = value).unwrap_err().value, value);
            }
        }
    }

    #[test]
    fn people_are_told_billions() {
        let measured = Measured { fast: 25_040_000_000, standard: 12_000_000_000, reference: 1, memory: 4_960_000_000 };
        let words =
            "tier C: 12.0 billion multiply-adds a second (fast 25.0, reference 0.0), 5.0 GB a second from memory";
        assert_eq!(Speed::try_from(measured).unwrap().to_string(), words);
    }

    #[test]
    fn nobody_reads_a_speed_that_cannot_be() {
        let read = |bytes: &[u8]| postcard::from_bytes::<Speed>(bytes).is_ok();
        assert!(read(&[1, 2, 3, 4]) && !read(&[1, 0, 3, 4]));
        let text = serde_json::to_string(&Speed::LEAST).unwrap();
        assert_eq!(serde_json::from_str::<Speed>(&text).unwrap(), Speed::LEAST);
        assert!(serde_json::from_str::<Speed>(&text.replace('1', "0")).is_err());
    }

    #[test]
    fn a_tier_is_told_by_two_operations_a_multiply_add_in_the_default_setting() {
        let tier = |standard| with(|of| of.standard = standard).unwrap().tier();
        let rates = [2_499_999_999_999, 2_500_000_000_000, 9_999_000_000_000, 10_000_000_000_000];
        assert_eq!(rates.map(tier), [Tier::C, Tier::B, Tier::B, Tier::A]);
        assert_eq!(with(|of| (of.fast, of.reference) = (1 << 50, 1 << 50)).unwrap().tier(), Tier::C);
    }
}
