//! What a worker says of itself, or what was measured of it.

use std::fmt;

use crate::number::{Invalid, at_least_zero, positive};

/// The width in which a model's weights are multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// Weights of 4 bits, unpacked where they are multiplied.
    Int4,
    /// 8 bits.
    Int8,
    /// 16 bits.
    Int16,
}

/// Multiply-adds a second, as reached in practice, not a maker's peak.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// Of weights of 4 bits.
    pub int4: f64,
    /// Of 8 bits.
    pub int8: f64,
    /// Of 16 bits.
    pub int16: f64,
}

/// A class of devices by teraflops: by what its maker states, or by what was measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tier {
    /// Less than 5.
    C,
    /// From 5 to less than 20.
    B,
    /// 20 and more.
    A,
}

impl Tier {
    /// The class of a device with so many.
    pub fn of(teraflops: f64) -> Self {
        match teraflops {
            many if many >= 20.0 => Self::A,
            some if some >= 5.0 => Self::B,
            _ => Self::C,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        })
    }
}

/// One device of a worker. A worker with several gives a profile for each, all with its operator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Profile {
    /// Multiply-adds a second.
    pub rates: Rates,
    /// Bytes a second between the device and its memory.
    pub memory_rate: f64,
    /// Bytes of the device's memory that are free.
    pub free_bytes: f64,
    /// Bytes of disk that are free.
    pub disk_bytes: f64,
    /// Peak teraflops as its maker states them; they decide the tier only.
    pub teraflops: f64,
    /// What an hour costs, in the unit in which the caller counts.
    pub price_per_hour: f64,
    /// Stake behind it, in the unit in which the caller counts.
    pub stake: f64,
    /// Who runs it: devices of one operator are no witnesses of each other.
    pub operator: u64,
    /// Watts drawn while it computes.
    pub watts: f64,
}

impl Profile {
    /// Multiply-adds a second in a precision.
    pub fn rate(&self, precision: Precision) -> f64 {
        match precision {
            Precision::Int4 => self.rates.int4,
            Precision::Int8 => self.rates.int8,
            Precision::Int16 => self.rates.int16,
        }
    }

    /// Its class.
    pub fn tier(&self) -> Tier {
        Tier::of(self.teraflops)
    }

    /// # Errors
    /// For a rate that is not positive and finite, and for an amount that is negative or not a number.
    pub fn check(&self) -> Result<(), Invalid> {
        let Rates { int4, int8, int16 } = self.rates;
        for rate in [int4, int8, int16] {
            positive("multiply-adds a second", rate)?;
        }
        positive("bytes of memory a second", self.memory_rate)?;
        for (what, value) in [
            ("free bytes", self.free_bytes),
            ("bytes of disk", self.disk_bytes),
            ("teraflops", self.teraflops),
            ("price", self.price_per_hour),
            ("stake", self.stake),
            ("watts", self.watts),
        ] {
            at_least_zero(what, value)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_begin_where_they_should() {
        assert_eq!([4.9, 5.0, 19.9, 20.0].map(Tier::of), [Tier::C, Tier::B, Tier::B, Tier::A]);
        assert!(Tier::A > Tier::B && Tier::B > Tier::C);
    }
}
