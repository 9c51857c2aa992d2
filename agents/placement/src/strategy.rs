//! Strategies by name.

use std::fmt;
use std::str::FromStr;

/// How a plan is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// exo's ring over all nodes, in proportion to memory.
    Rmw,
    /// The same over the fewest of the largest nodes that hold the model.
    RmwSmallest,
    /// The ring's order with the best cut.
    RmwCut,
    /// DCI's layer-aware ring.
    LayerAware,
    /// A client's path through a swarm as Petals forms it.
    Petals,
    /// Parallax' pipelines and paths.
    Parallax,
    /// The joint search.
    Best,
}

impl Strategy {
    /// All, the best last.
    pub const ALL: [Self; 7] =
        [Self::Rmw, Self::RmwSmallest, Self::RmwCut, Self::LayerAware, Self::Petals, Self::Parallax, Self::Best];

    fn name(self) -> &'static str {
        match self {
            Self::Rmw => "rmw",
            Self::RmwSmallest => "rmw-smallest",
            Self::RmwCut => "rmw-cut",
            Self::LayerAware => "layer-aware",
            Self::Petals => "petals",
            Self::Parallax => "parallax",
            Self::Best => "best",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no strategy's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no strategy is called {0:?}: rmw, rmw-smallest, rmw-cut, layer-aware, petals, parallax, best")]
pub struct UnknownStrategy(String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| UnknownStrategy(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        assert!("Best".parse::<Strategy>().is_err());
    }
}
