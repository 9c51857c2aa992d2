//! In how many bits a model is computed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bits of weights, and of the activations that they multiply. What lies between products has 24 in each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// 8 by 8, and activations of 11 where 8 would cost the most: for models without outliers.
    Fast,
    /// Activations of 16 bits by weights of 8.
    #[default]
    Standard,
    /// 16 by 16.
    Reference,
}

/// A word that names no setting.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("there is no setting {0:?}: choose fast, standard or reference")]
pub struct UnknownSetting(String);

impl Setting {
    /// Every setting, from the cheapest on.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Standard, Self::Reference];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Standard => "standard",
            Self::Reference => "reference",
        }
    }

    /// Gas of convicting a worker by one element of a product over 4,096 elements, the most that a contract recomputes
    /// at once, in this setting's bits; by shorter ones it costs less. Of `fast` it is that of its products of 8 by 8
    /// bits; those of 11 by 8 cost as much as in `standard`. As the contracts' tests measure it.
    pub const fn conviction_gas(self) -> u64 {
        match self {
            Self::Fast => 447_256,
            Self::Standard => 652_260,
            Self::Reference => 815_530,
        }
    }

    /// Bits of a weight.
    pub const fn weight_bits(self) -> u8 {
        match self {
            Self::Fast | Self::Standard => 8,
            Self::Reference => 16,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Setting {
    type Err = UnknownSetting;

    fn from_str(name: &str) -> Result<Self, UnknownSetting> {
        Self::ALL.into_iter().find(|setting| setting.name() == name).ok_or_else(|| UnknownSetting(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const CONVICTIONS: &str = include_str!("../../../tests/contracts/snapshots/conviction.json");

    #[test]
    fn convictions_cost_what_the_contracts_tests_measure() {
        let gas: BTreeMap<String, String> = serde_json::from_str(CONVICTIONS).unwrap();
        let products = ["int8 dot product", "int16 by int8 shifted dot product", "int16 shifted dot product"];
        for (setting, product) in Setting::ALL.into_iter().zip(products) {
            let measured = &gas[&format!("proveSigned, {product} of 4096")];
            assert_eq!(setting.conviction_gas().to_string(), *measured, "{setting}");
        }
    }

    #[test]
    fn settings_are_read_as_they_are_written() {
        assert!(Setting::ALL.into_iter().all(|setting| setting.to_string().parse() == Ok(setting)));
        let message = "there is no setting \"Fast\": choose fast, standard or reference";
        assert_eq!("Fast".parse::<Setting>().unwrap_err().to_string(), message);
    }
}
