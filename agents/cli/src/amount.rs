//! Amounts and sizes as people write them.

use std::fmt;
use std::ops::AddAssign;

use anyhow::{Context, bail};
use serde::{Serialize, Serializer};
use tensorlink_types::U256;

const DECIMALS: usize = 18;

/// An amount of SNO or ETH in wei. In JSON a decimal string of wei, which every language reads exactly; for people,
/// whole tokens with decimals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Wei(pub U256);

impl Serialize for Wei {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl fmt::Display for Wei {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show_amount(self.0))
    }
}

impl AddAssign for Wei {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }
}

impl From<u128> for Wei {
    fn from(wei: u128) -> Self {
        Self(U256::from(wei))
    }
}

/// Parses a decimal amount of SNO or ETH into wei. At most 18 decimals; no sign, no exponent.
pub fn parse_amount(text: &str) -> anyhow::Result<U256> {
    let clean = text.replace('_', "");
    let (whole, fraction) = clean.split_once('.').unwrap_or((&clean, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
        bail!("{text:?} is not an amount: write it like 12.5");
    }
    if fraction.len() > DECIMALS {
        bail!("{text:?} has more than {DECIMALS} decimals");
    }
    let padded = format!("{whole}{fraction:0<DECIMALS$}");
    U256::from_str_radix(&padded, 10).with_context(|| format!("{text:?} is too large"))
}

/// Writes wei as a decimal amount without trailing zeros.
fn show_amount(wei: U256) -> String {
    let text = format!("{:0>width$}", wei.to_string(), width = DECIMALS + 1);
    let (whole, fraction) = text.split_at(text.len() - DECIMALS);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Parses a size such as `8GiB`, `500MB` or `1024` into bytes.
pub fn parse_size(text: &str) -> anyhow::Result<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        other => bail!("unknown unit {other:?} in {text:?}: use KiB, MiB, GiB or TiB"),
    };
    let number: u64 = number.parse().with_context(|| format!("{text:?} is not a size: write it like 8GiB"))?;
    number.checked_mul(factor).with_context(|| format!("{text:?} is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_round_trip() {
        for (text, wei) in
            [("1", "1000000000000000000"), ("0.000000000000000001", "1"), ("12.5", "12500000000000000000")]
        {
            let amount = parse_amount(text).unwrap();
            assert_eq!(amount.to_string(), wei);
            assert_eq!(show_amount(amount), text);
        }
        for bad in ["", ".", "-1", "1e5", "1.2.3", "0.0000000000000000001", "ten"] {
            assert!(parse_amount(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("8GiB").unwrap(), 8 << 30);
        assert_eq!(parse_size("1024").unwrap(), 1024);
        assert!(parse_size("8 parsecs").is_err());
        assert!(parse_size("99999999999TiB").is_err());
    }
}
