//! How far nodes are from each other: measured between all in a small fleet, estimated between most in a large one.

use std::collections::BTreeMap;

use crate::number::{Invalid, at_least_zero, counted, positive};

/// One direction between two nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Seconds until the first byte arrives, one way.
    pub seconds: f64,
    /// Bytes a second after that.
    pub rate: f64,
}

impl Link {
    /// From a node to itself.
    pub const NONE: Self = Self { seconds: 0.0, rate: 1e15 };
    /// One that never delivers.
    pub const NEVER: Self = Self { seconds: f64::INFINITY, rate: 1.0 };

    fn check(&self) -> Result<(), Invalid> {
        at_least_zero("seconds of a link", self.seconds)?;
        positive("bytes a second of a link", self.rate)
    }
}

/// Where a node is, by its own measurements against a few others (Dabek et al.: *Vivaldi*, SIGCOMM 2004).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Coordinate {
    /// A place in a plane whose distances are seconds, one way.
    pub position: [f64; 2],
    /// Seconds between the node and that plane, which every path to it passes.
    pub access: f64,
    /// Bytes a second that it sends.
    pub up: f64,
    /// Bytes a second that it receives.
    pub down: f64,
}

impl Coordinate {
    /// The link that both coordinates foretell.
    pub fn link(&self, to: &Self) -> Link {
        let ([x, y], [to_x, to_y]) = (self.position, to.position);
        let [x, y] = [x - to_x, y - to_y];
        Link { seconds: self.access + to.access + x.hypot(y), rate: self.up.min(to.down) }
    }
}

/// Links between all nodes of a fleet, each direction on its own.
#[derive(Clone, PartialEq, Debug)]
pub enum Proximity {
    /// Every link, those from the first node first.
    Matrix {
        /// How many nodes.
        nodes: usize,
        /// `nodes · nodes` links; those of a node to itself are not looked at.
        links: Vec<Link>,
    },
    /// A coordinate for each node, and what was measured.
    Coordinates {
        /// Of each node.
        places: Vec<Coordinate>,
        /// Measured links by sender and receiver; they count before what coordinates foretell.
        measured: BTreeMap<(u32, u32), Link>,
    },
}

impl Proximity {
    /// How many nodes it knows.
    pub fn nodes(&self) -> usize {
        match self {
            Self::Matrix { nodes, .. } => *nodes,
            Self::Coordinates { places, .. } => places.len(),
        }
    }

    /// The link from one node to another; [`None`] if it does not know one of them.
    pub fn link(&self, from: usize, to: usize) -> Option<Link> {
        if from >= self.nodes() || to >= self.nodes() {
            return None;
        }
        if from == to {
            return Some(Link::NONE);
        }
        match self {
            Self::Matrix { nodes, links } => links.get(from * nodes + to).copied(),
            Self::Coordinates { places, measured } => {
                let key = (u32::try_from(from).ok()?, u32::try_from(to).ok()?);
                let foretold = || Some(places.get(from)?.link(places.get(to)?));
                measured.get(&key).copied().or_else(foretold)
            }
        }
    }

    /// # Errors
    /// For a matrix that is not square, and for links that are no numbers.
    pub fn check(&self) -> Result<(), Invalid> {
        match self {
            Self::Matrix { nodes, links } => {
                let square = nodes.saturating_mul(*nodes);
                counted("links of a matrix", links.len(), square, square)?;
                let others = links.iter().enumerate().filter(|(at, _)| at / nodes != at % nodes);
                others.map(|(_, link)| link).try_for_each(Link::check)
            }
            Self::Coordinates { places, measured } => {
                for place in places {
                    for axis in place.position {
                        at_least_zero("coordinates, without their sign,", axis.abs())?;
                    }
                    at_least_zero("seconds of access", place.access)?;
                    positive("bytes sent a second", place.up)?;
                    positive("bytes received a second", place.down)?;
                }
                measured.values().try_for_each(Link::check)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(x: f64, up: f64) -> Coordinate {
        Coordinate { position: [x, 0.0], access: 0.001, up, down: 100.0 }
    }

    #[test]
    fn what_was_measured_counts_before_what_is_foretold() {
        let measured = BTreeMap::from([((0, 1), Link { seconds: 0.5, rate: 7.0 })]);
        let proximity = Proximity::Coordinates { places: vec![place(0.0, 10.0), place(0.01, 20.0)], measured };
        assert_eq!(proximity.link(0, 1), Some(Link { seconds: 0.5, rate: 7.0 }));
        let back = proximity.link(1, 0).expect("both are known");
        assert!((back.seconds - 0.012).abs() < 1e-12 && back.rate == 20.0);
        assert_eq!(proximity.link(1, 1), Some(Link::NONE));
        assert_eq!(proximity.link(0, 2), None);
    }

    #[test]
    fn a_matrix_that_is_not_square_or_has_nan_is_refused() {
        let link = Link { seconds: 0.0, rate: 1.0 };
        assert!(Proximity::Matrix { nodes: 2, links: vec![link; 3] }.check().is_err());
        assert_eq!(Proximity::Matrix { nodes: 2, links: vec![link; 4] }.check(), Ok(()));
        let bad = Link { seconds: f64::NAN, ..link };
        assert!(Proximity::Matrix { nodes: 2, links: vec![link, bad, link, link] }.check().is_err());
    }
}
