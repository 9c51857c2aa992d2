//! By what workers are chosen.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tensorlink_node::speed::Tier;
use tensorlink_placement::Strategy;
use tensorlink_placement::objective::Objective;
use thiserror::Error;

/// What is to be small when workers are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aim {
    /// What the work costs.
    #[default]
    Price,
    /// The time of a step, or of a token.
    Latency,
    /// The time of the slowest worker, which bounds what all together do.
    Throughput,
}

impl Aim {
    /// What a planner makes small; a price is asked by the multiply-add, and needs no planner.
    pub const fn objective(self) -> Objective {
        match self {
            Self::Price | Self::Latency => Objective::Latency,
            Self::Throughput => Objective::Throughput,
        }
    }
}

/// The slowest tier of workers that is hired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Serialize, Deserialize)]
pub enum LeastTier {
    /// 20 teraflops and more.
    #[value(name = "A")]
    A,
    /// 5 and more.
    #[value(name = "B")]
    B,
    /// Any.
    #[default]
    #[value(name = "C")]
    C,
}

impl From<LeastTier> for Tier {
    fn from(least: LeastTier) -> Self {
        match least {
            LeastTier::A => Self::A,
            LeastTier::B => Self::B,
            LeastTier::C => Self::C,
        }
    }
}

/// Pipeline stages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Stages {
    /// So many.
    Exactly(u16),
    /// As many as are best.
    As(Auto),
}

/// As many as are best.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auto {
    /// `auto`.
    Auto,
}

/// Neither a number nor `auto`.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} is no number of stages: give 1 to 65535, or auto")]
pub struct UnknownStages(String);

impl Stages {
    /// How many, if it was said.
    pub const fn said(self) -> Option<u16> {
        match self {
            Self::Exactly(stages) => Some(stages),
            Self::As(Auto::Auto) => None,
        }
    }

    /// How many there are at least.
    pub const fn least(self) -> u16 {
        match self {
            Self::Exactly(stages) => stages,
            Self::As(Auto::Auto) => 1,
        }
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(stages) => stages.fmt(f),
            Self::As(Auto::Auto) => f.write_str("auto"),
        }
    }
}

impl FromStr for Stages {
    type Err = UnknownStages;

    fn from_str(text: &str) -> Result<Self, UnknownStages> {
        match text {
            "auto" => Ok(Self::As(Auto::Auto)),
            number => number.parse().map(Self::Exactly).map_err(|_| UnknownStages(text.to_owned())),
        }
    }
}

/// A rule by which a planner chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule(pub Strategy);

impl Default for Rule {
    fn default() -> Self {
        Self(Strategy::Best)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Rule {
    type Err = <Strategy as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl TryFrom<String> for Rule {
    type Error = <Strategy as FromStr>::Err;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_a_number_or_auto() {
        assert_eq!("3".parse(), Ok(Stages::Exactly(3)));
        assert_eq!("auto".parse::<Stages>().unwrap().said(), None);
        for wrong in ["", "-1", "65536", "Auto", "two"] {
            let error = wrong.parse::<Stages>().unwrap_err().to_string();
            assert!(error.contains("or auto"), "{error}");
        }
        for stages in [Stages::Exactly(7), Stages::As(Auto::Auto)] {
            assert_eq!(stages.to_string().parse(), Ok(stages));
        }
    }

    #[test]
    fn a_job_file_says_the_same_as_the_options() {
        #[derive(Deserialize)]
        struct Said {
            stages: Stages,
            objective: Aim,
            strategy: Rule,
            tier: LeastTier,
        }
        let said = "stages = \"auto\"\nobjective = \"latency\"\nstrategy = \"rmw\"\ntier = \"B\"";
        let said: Said = toml::from_str(said).unwrap();
        assert_eq!(said.tier, LeastTier::B);
        assert_eq!(said.stages, Stages::As(Auto::Auto));
        assert_eq!((said.objective, said.strategy), (Aim::Latency, Rule(Strategy::Rmw)));
        let wrong = toml::from_str::<Rule>("strategy = 1");
        assert!(wrong.is_err());
    }
}
