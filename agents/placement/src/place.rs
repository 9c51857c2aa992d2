//! A request, and a plan for it.

use crate::best::pack::pack;
use crate::best::rings::rings;
use crate::best::{Effort, Found, chains};
use crate::constraints::{Constraints, MAX_CHAINS, Replicas};
use crate::cuts::cut;
use crate::fleet::Fleet;
use crate::model::{Kind, ModelProfile};
use crate::number::{Invalid, counted};
use crate::objective::{Figures, Objective};
use crate::oracle;
use crate::plan::{Broken, Chain, Plan};
use crate::problem::{Goal, Problem};
use crate::rules::{Assigned, layer_aware, parallax, petals, rmw};
use crate::score::Score;
use crate::strategy::Strategy;
use crate::table::mark;

/// A search looks at so many nodes unless told otherwise: of larger fleets, at those with the best scores.
pub const SEARCHED: usize = 256;
/// Larger fleets are packed in groups of at most so many neighbours.
const PACKED: usize = 128;
/// The most that it looks at: tables of links grow with the square.
pub const MOST_SEARCHED: usize = 2_048;
/// Rounds in which servers of a swarm move.
const SETTLED: usize = 3;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Who is there.
    pub fleet: &'a Fleet,
    /// What is to be computed.
    pub model: &'a ModelProfile,
    /// For what.
    pub kind: Kind,
    /// What is to be small.
    pub objective: Objective,
    /// What must hold.
    pub constraints: Constraints,
    /// How a large fleet is thinned out.
    pub score: Score,
    /// To how many nodes.
    pub searched: usize,
}

impl<'a> Request<'a> {
    /// One chain without further constraints.
    pub fn new(fleet: &'a Fleet, model: &'a ModelProfile, kind: Kind, objective: Objective) -> Self {
        Self {
            fleet,
            model,
            kind,
            objective,
            constraints: Constraints::default(),
            score: Score::default(),
            searched: SEARCHED,
        }
    }

    /// # Errors
    /// If anything in it is no number, or nothing, or more than can be planned with.
    pub fn check(&self) -> Result<(), Invalid> {
        self.fleet.check()?;
        self.model.check()?;
        self.objective.check()?;
        self.score.check()?;
        counted("nodes that a search looks at", self.searched, 1, MOST_SEARCHED)?;
        self.constraints.check()
    }

    /// What a chain costs by what is known of the fleet.
    ///
    /// # Errors
    /// [`Broken`] for a chain that is no placement of the model, or breaks a constraint.
    pub fn figures(&self, chain: &Chain) -> Result<Figures, Broken> {
        chain.figures(self.fleet, self.model, self.kind, &self.constraints)
    }

    /// The nodes that a search looks at.
    pub(crate) fn problem(&self) -> Problem {
        let nodes: Vec<usize> = match self.fleet.nodes.len() {
            few if few <= self.searched => (0..few).collect(),
            _ => {
                let Self { fleet, model, kind, objective, constraints, score, searched } = self;
                score.candidates(fleet, model, *kind, *objective, constraints, *searched)
            }
        };
        Problem::new(self.fleet, self.model, self.kind, &self.constraints, nodes)
    }

    /// The plan that a strategy makes; [`None`] if it finds none. Rules of others know single chains only.
    pub(crate) fn attempt(&self, strategy: Strategy) -> Option<Plan> {
        let Constraints { stages, rings, replicas, .. } = self.constraints;
        let one = rings == 1 && replicas == Replicas::Exactly(1);
        let plan = |chains: Vec<Chain>| (!chains.is_empty()).then_some(Plan { chains, rings });
        if strategy != Strategy::Best {
            let problem = self.problem();
            let as_asked = |found: &Assigned| stages.is_none_or(|stages| stages == found.order.len());
            let assigned = ruled(&problem, &Goal::new(self.objective), strategy).filter(|_| one).filter(as_asked)?;
            return plan(vec![problem.chain(&assigned.order, &assigned.ends)]);
        }
        let several = rings == 1 && replicas != Replicas::Exactly(1);
        // Packing takes chains of any length.
        if several && stages.is_none() && self.objective == Objective::Throughput {
            return self.packed(replicas).and_then(plan);
        }
        let problem = self.problem();
        let goal = Goal::new(self.objective);
        let effort = Effort::of(problem.nodes());
        let operator = |id: &usize| self.fleet.nodes.get(*id).map(|node| node.operator);
        let operators: Vec<u64> = problem.ids.iter().filter_map(operator).collect();
        let mut taken = vec![false; problem.nodes()];
        let mut found: Vec<Chain> = Vec::new();
        let most = match replicas {
            Replicas::Exactly(count) => count,
            Replicas::AsPays => MAX_CHAINS / rings,
        };
        for _ in 0..most {
            let next = match rings {
                1 => chains(&problem, &goal, &taken, &effort).into_iter().next().map(|found| vec![found]),
                _ => self::rings(&problem, &goal, &operators, &taken, &effort, rings),
            };
            let Some(next) = next else { break };
            for Found { order, cut } in next {
                found.push(problem.chain(&order, &cut.ends));
                mark(&mut taken, &order, true);
            }
        }
        let complete = replicas == Replicas::AsPays || found.len() == most * rings;
        plan(found).filter(|_| complete)
    }

    /// Chains for the throughput of all together.
    fn packed(&self, replicas: Replicas) -> Option<Vec<Chain>> {
        let Self { fleet, model, kind, constraints, score, searched, .. } = self;
        let most = if let Replicas::Exactly(count) = replicas { count } else { MAX_CHAINS };
        let groups = match replicas {
            Replicas::Exactly(_) => vec![self.problem()],
            Replicas::AsPays => score
                .groups(fleet, model, *kind, constraints, PACKED.min(*searched))
                .into_iter()
                .map(|nodes| Problem::new(fleet, model, *kind, constraints, nodes))
                .collect(),
        };
        let chains = |problem: &Problem| {
            let found = pack(problem, most);
            found.into_iter().map(|Found { order, cut }| problem.chain(&order, &cut.ends)).collect::<Vec<_>>()
        };
        let found: Vec<Chain> = groups.iter().flat_map(chains).collect();
        (replicas == Replicas::AsPays || found.len() == most).then_some(found)
    }

    /// The best chain of a fleet of up to eight nodes, exactly, among those that cost less than `below`.
    pub fn exact(&self, below: f64) -> Option<Chain> {
        let problem = self.problem();
        let (order, cut) = oracle::search(&problem, &Goal::new(self.objective), below)?;
        Some(problem.chain(&order, &cut.ends))
    }

    /// Units a second of a whole fleet under the rules of Parallax and of Petals, counted to their advantage: as if all
    /// clients together used every pipeline or server fully. For up to a thousand nodes.
    pub fn others_throughput(&self) -> (f64, f64) {
        let nodes = 0..self.fleet.nodes.len().min(crate::generate::world::MATRIX_NODES);
        let problem = Problem::new(self.fleet, self.model, self.kind, &self.constraints, nodes);
        let slowest = |at: &Assigned| crate::cuts::bottleneck(&problem, &at.order, &at.ends);
        let parallax: f64 = parallax::pipelines(&problem).iter().map(|pipeline| 1.0 / slowest(pipeline)).sum();
        (parallax, petals::Swarm::settle(&problem, 1, 1).throughput(&problem))
    }
}

/// A chain by a rule of others.
fn ruled(problem: &Problem, goal: &Goal, strategy: Strategy) -> Option<Assigned> {
    match strategy {
        Strategy::Rmw => rmw::all(problem),
        Strategy::RmwSmallest => rmw::smallest(problem),
        Strategy::RmwCut => {
            let order = crate::rules::by_memory(problem);
            let ends = cut(problem, goal, &order)?.ends;
            Some(Assigned { order, ends })
        }
        Strategy::LayerAware => layer_aware::ring(problem),
        Strategy::Petals => petals::Swarm::settle(problem, 1, SETTLED).path(problem, goal),
        Strategy::Parallax => parallax::chain(problem, goal),
        Strategy::Best => chains(problem, goal, &[], &Effort::of(problem.nodes()))
            .into_iter()
            .next()
            .map(|Found { order, cut }| Assigned { order, ends: cut.ends }),
    }
}
