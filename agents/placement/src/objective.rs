//! What a plan is judged by.

use std::fmt;
use std::str::FromStr;

use crate::number::{Invalid, at_least_zero, positive};

/// What a chain costs. The unit of work is that of the plan's [`Kind`](crate::model::Kind).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Figures {
    /// Seconds from a unit's beginning until the first stage can begin with what follows from it.
    pub latency: f64,
    /// Seconds of the slowest stage or transfer: with enough units under way, one is finished in each.
    pub bottleneck: f64,
    /// What a unit costs when all workers are paid for the bottleneck's time.
    pub price: f64,
    /// Joules that devices draw to compute a unit.
    pub energy: f64,
}

impl Figures {
    /// Units a second with enough of them under way.
    pub fn throughput(&self) -> f64 {
        1.0 / self.bottleneck
    }
}

/// How much a second of latency, a second of the bottleneck, a unit of price and a joule count in a mix.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Weights {
    /// Of a second of latency.
    pub latency: f64,
    /// Of a second of the bottleneck.
    pub bottleneck: f64,
    /// Of a unit of price.
    pub price: f64,
    /// Of a joule.
    pub energy: f64,
}

/// What is to be small.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Objective {
    /// The latency of a unit.
    Latency,
    /// The bottleneck, so that throughput is large.
    Throughput,
    /// The price of a unit.
    Price,
    /// The energy of a unit.
    Energy,
    /// A weighted sum.
    Mix(Weights),
}

impl Weights {
    /// Nothing counts.
    pub const NONE: Self = Self { latency: 0.0, bottleneck: 0.0, price: 0.0, energy: 0.0 };
}

impl Objective {
    /// The same as a weighted sum.
    pub fn weights(self) -> Weights {
        let none = Weights::NONE;
        match self {
            Self::Latency => Weights { latency: 1.0, ..none },
            Self::Throughput => Weights { bottleneck: 1.0, ..none },
            Self::Price => Weights { price: 1.0, ..none },
            Self::Energy => Weights { energy: 1.0, ..none },
            Self::Mix(weights) => weights,
        }
    }

    /// What figures are worth: less is better.
    pub fn cost(self, figures: &Figures) -> f64 {
        let weights = self.weights();
        weights.latency * figures.latency
            + weights.bottleneck * figures.bottleneck
            + weights.price * figures.price
            + weights.energy * figures.energy
    }

    /// # Errors
    /// For a mix with a weight that is negative or no number, or in which nothing counts.
    pub fn check(self) -> Result<(), Invalid> {
        let Weights { latency, bottleneck, price, energy } = self.weights();
        for weight in [latency, bottleneck, price, energy] {
            at_least_zero("weights of an objective", weight)?;
        }
        positive("the sum of an objective's weights", latency + bottleneck + price + energy)
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency => f.write_str("latency"),
            Self::Throughput => f.write_str("throughput"),
            Self::Price => f.write_str("price"),
            Self::Energy => f.write_str("energy"),
            Self::Mix(Weights { latency, bottleneck, price, energy }) => {
                write!(f, "mix:{latency},{bottleneck},{price},{energy}")
            }
        }
    }
}

/// A name that is no objective's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no objective is called {0:?}: latency, throughput, price, energy, or mix:LATENCY,BOTTLENECK,PRICE,ENERGY")]
pub struct UnknownObjective(String);

impl FromStr for Objective {
    type Err = UnknownObjective;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownObjective(name.into());
        match name {
            "latency" => Ok(Self::Latency),
            "throughput" => Ok(Self::Throughput),
            "price" => Ok(Self::Price),
            "energy" => Ok(Self::Energy),
            _ => {
                let list = name.strip_prefix("mix:").ok_or_else(unknown)?;
                let numbers: Vec<f64> = list.split(',').map_while(|number| number.trim().parse().ok()).collect();
                let &[latency, bottleneck, price, energy] = numbers.as_slice() else { return Err(unknown()) };
                Ok(Self::Mix(Weights { latency, bottleneck, price, energy }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let mix = Objective::Mix(Weights { latency: 1.0, bottleneck: 0.5, price: 0.0, energy: 2.0 });
        for objective in [Objective::Latency, Objective::Throughput, Objective::Price, Objective::Energy, mix] {
            assert_eq!(objective.to_string().parse(), Ok(objective));
        }
        for wrong in ["speed", "mix:1,2,3", "mix:1,2,3,x", "mix:1,2,3,4,5"] {
            assert!(wrong.parse::<Objective>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_mix_of_nothing_or_of_nan_is_refused() {
        let mix = |latency, energy| Objective::Mix(Weights { latency, bottleneck: 0.0, price: 0.0, energy }).check();
        assert!(mix(0.0, 0.0).is_err() && mix(f64::NAN, 1.0).is_err() && mix(-1.0, 2.0).is_err());
        assert_eq!(mix(1.0, 0.0), Ok(()));
    }
}
