//! What a plan must satisfy, besides that each device holds its layers in memory and on disk.

use std::collections::BTreeMap;

use crate::model::MAX_LAYERS;
use crate::node::{Profile, Tier};
use crate::number::{Invalid, at_least_zero, counted};

/// The most chains that a plan is asked for.
pub const MAX_CHAINS: usize = 4_096;

/// What lanes that a node already runs take of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Bytes of its memory.
    pub bytes: f64,
    /// The share of its time, in [0, 1).
    pub share: f64,
}

/// How many data-parallel replicas a plan has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replicas {
    /// So many.
    Exactly(usize),
    /// As many as make the throughput of all together largest.
    AsPays,
}

/// What a plan must satisfy.
#[derive(Clone, PartialEq, Debug)]
pub struct Constraints {
    /// The least stake of a worker.
    pub stake: f64,
    /// The least class of a worker.
    pub tier: Tier,
    /// The least bytes a second of a hop.
    pub bandwidth: f64,
    /// Stages of each chain; none: as many as are best.
    pub stages: Option<usize>,
    /// Security level: so many rings compute each replica, with the same cuts, and no operator is in two of them.
    pub rings: usize,
    /// Data-parallel replicas.
    pub replicas: Replicas,
    /// By node: what it already runs.
    pub running: BTreeMap<usize, Load>,
}

impl Default for Constraints {
    /// One chain of whoever is there.
    fn default() -> Self {
        Self {
            stake: 0.0,
            tier: Tier::C,
            bandwidth: 0.0,
            stages: None,
            rings: 1,
            replicas: Replicas::Exactly(1),
            running: BTreeMap::new(),
        }
    }
}

impl Constraints {
    /// Whether a node may take part at all.
    pub fn admits(&self, node: &Profile) -> bool {
        node.stake >= self.stake && node.tier() >= self.tier
    }

    /// What a node already runs.
    pub fn load(&self, node: usize) -> Load {
        self.running.get(&node).copied().unwrap_or(Load { bytes: 0.0, share: 0.0 })
    }

    /// # Errors
    /// For no stage, ring or replica, for more than [`MAX_LAYERS`] stages or [`MAX_CHAINS`] chains, and for amounts
    /// that are no numbers.
    pub fn check(&self) -> Result<(), Invalid> {
        if let Some(stages) = self.stages {
            counted("stages", stages, 1, MAX_LAYERS)?;
        }
        counted("rings", self.rings, 1, MAX_CHAINS)?;
        if let Replicas::Exactly(replicas) = self.replicas {
            counted("replicas", replicas, 1, MAX_CHAINS / self.rings)?;
        }
        at_least_zero("the least stake", self.stake)?;
        at_least_zero("the least bandwidth", self.bandwidth)?;
        for load in self.running.values() {
            at_least_zero("bytes of lanes already running", load.bytes)?;
            at_least_zero("the share of lanes already running", load.share)?;
            at_least_zero("what lanes already running leave of a node's time", 0.999 - load.share)?;
        }
        Ok(())
    }
}
