//! Which of the workers that answer hold a job's lanes, in which order, and which layers each of them: chosen jointly,
//! by what they advertise or were seen to do, and how they are reached.
//!
//! | module | what lives there |
//! |---|---|
//! | here | a request of the market, and the placement that a strategy makes of it |
//! | [`work`] | what a training or a model to be served asks of whoever computes it |
//! | [`fleet`](mod@fleet) | candidates as a planner sees them |
//! | [`reach`] | how workers are reached from this node: how far they are, and how many bytes a second pass |

pub mod fleet;
pub mod reach;
pub mod work;

use std::ops::Range;

use tensorlink_placement::constraints::Constraints;
use tensorlink_placement::explain::{Expected, ring};
use tensorlink_placement::fleet::Fleet;
use tensorlink_placement::objective::{Figures, Objective};
use tensorlink_placement::plan::{Broken, Chain, Plan, Stage};
use tensorlink_placement::{Refusal, Request, Strategy, explain, place};
use tensorlink_types::Address;

pub use self::fleet::{Seen, fleet};
pub use self::reach::Reach;
pub(crate) use self::reach::Reaches;
pub use self::work::Work;

/// How workers are chosen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wish {
    /// What is to be small.
    pub objective: Objective,
    /// By which rule.
    pub strategy: Strategy,
    /// Stages of a chain; none: as many as are best.
    pub stages: Option<usize>,
    /// Chains with the same cut: replicas of the pipeline, times the shares of a step's sequences.
    pub chains: usize,
    /// The least bytes a second of a hop.
    pub bandwidth: f64,
}

/// Who has each lane, and which layers.
#[derive(Clone, PartialEq, Debug)]
pub struct Placement {
    /// By lane, in the order of lanes: a position among the candidates.
    pub lanes: Vec<usize>,
    /// Layers of each stage of a chain.
    pub cut: Vec<Range<usize>>,
}

impl Placement {
    /// Stages of a chain.
    pub const fn stages(&self) -> usize {
        self.cut.len()
    }

    fn plan(&self) -> Plan {
        let chain = |lanes: &[usize]| {
            let stage =
                |(node, layers): (&usize, &Range<usize>)| Stage { node: *node, first: layers.start, end: layers.end };
            Chain(lanes.iter().zip(&self.cut).map(stage).collect())
        };
        let chains: Vec<Chain> = self.lanes.chunks(self.stages().max(1)).map(chain).collect();
        Plan { rings: chains.len(), chains }
    }
}

/// An address as short as people tell it apart.
fn short(address: Address) -> String {
    address.to_string().chars().take(10).collect()
}

/// The market that a job is placed on.
#[derive(Clone, Debug)]
pub struct Market<'a> {
    work: &'a Work,
    fleet: Fleet,
    names: Vec<String>,
}

impl<'a> Market<'a> {
    /// What these candidates can do of the work.
    pub fn new(work: &'a Work, candidates: &[Seen<'_>]) -> Self {
        let names = candidates.iter().map(|seen| short(seen.candidate.address)).collect();
        Self { work, fleet: fleet(work, candidates), names }
    }

    /// Places the work.
    ///
    /// # Errors
    /// [`Refusal`], which names the tightest constraint, and what would mend it.
    pub fn place(&self, wish: &Wish) -> Result<Placement, Refusal> {
        let plan = place(wish.strategy, &self.request(wish))?;
        let cut = plan.chains.first().map_or_else(Vec::new, |chain| chain.0.iter().map(|s| s.first..s.end).collect());
        let lanes = plan.chains.iter().flat_map(|chain| &chain.0).map(|stage| stage.node).collect();
        Ok(Placement { lanes, cut })
    }

    /// What the slowest chain of a placement costs: seconds of a unit of the work.
    ///
    /// # Errors
    /// [`Broken`] for a placement that is none of these candidates.
    pub fn figures(&self, wish: &Wish, placement: &Placement) -> Result<Figures, Broken> {
        let request = self.request(wish);
        let mut slowest = Figures::default();
        for chain in placement.plan().chains {
            let figures = request.figures(&chain)?;
            slowest.latency = slowest.latency.max(figures.latency);
            slowest.bottleneck = slowest.bottleneck.max(figures.bottleneck);
        }
        Ok(slowest)
    }

    /// Each lane as it is expected to go, in the order of lanes.
    ///
    /// # Errors
    /// [`Broken`] for a placement that is none of these candidates.
    pub fn ring(&self, wish: &Wish, placement: &Placement) -> Result<Vec<Expected>, Broken> {
        let request = self.request(wish);
        let mut lanes = Vec::new();
        for chain in placement.plan().chains {
            request.figures(&chain)?;
            lanes.extend(ring(&request, &chain));
        }
        Ok(lanes)
    }

    /// A placement as a picture in text: who, which layers, seconds a hop, what bounds it, and the runner-up.
    ///
    /// # Errors
    /// [`Broken`] for a placement that is none of these candidates.
    pub fn explain(&self, wish: &Wish, placement: &Placement) -> Result<String, Broken> {
        let name = |node: usize| self.names.get(node).cloned().unwrap_or_default();
        explain(&self.request(wish), &placement.plan(), &name)
    }

    fn request(&self, wish: &Wish) -> Request<'_> {
        let Wish { stages, chains, bandwidth, .. } = *wish;
        let constraints = Constraints { stages, rings: chains.max(1), bandwidth, ..Constraints::default() };
        Request { constraints, ..Request::new(&self.fleet, &self.work.model, self.work.kind, wish.objective) }
    }
}

#[cfg(test)]
mod tests;
