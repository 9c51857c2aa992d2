//! Data parallelism: so many shares of a step's sequences, each with all of the model. A share is one stage, or is cut
//! into a pipeline of its own; stages of all shares stand in one line, share after share.
//!
//! What a share of one stage computes of its own stands in its preparation; in longer ones its sequences are
//! micro-batches, all shares' at the same time. Then gradients are summed from share to share, one parameter a
//! micro-batch, and the totals go back. They are integers of one exponent, so that the state after a step is the same
//! bits as that of one worker with all sequences, however many share them.
//!
//! | micro-batch | what is in its passes |
//! |---|---|
//! | sequence m of each share, in stages | forward and backward passes |
//! | exchange m, forward | the sum of parameter m's gradients over the shares before and this one; stages between hand it on |
//! | exchange m, backward | the same over all shares |
//! | the last, in stages | the norm of all gradients |
//!
//! A stage hands something to its neighbour in every pass, so that where it has nothing to say there is a tick.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tensorlink_model::Architecture;

use super::{Builder, Recipe, Untrainable, Weight, part_of_sum, sum_site};
use crate::step::place::Place;
use crate::step::{NodeId, Op, Phase, Precision, StepGraph};

/// What a tick is in.
const TICK: Precision = Precision::Fixed { bits: 8, exponent: 0 };

/// A share of a step's sequences, and where it is computed.
#[derive(Clone, Debug)]
pub(super) struct Share<'a> {
    /// The model's layers, by the stages of the share.
    cut: &'a [Range<usize>],
    /// Stage that the first layers are in.
    first_stage: usize,
    /// First of the step's sequences that are its own.
    pub(super) first_sequence: u32,
}

impl Share<'_> {
    /// Stage of a layer.
    pub(super) fn stage(&self, layer: usize) -> usize {
        self.first_stage.saturating_add(self.cut.partition_point(|part| part.end <= layer))
    }

    /// Whether it is a pipeline.
    pub(super) const fn is_cut(&self) -> bool {
        self.cut.len() > 1
    }

    /// Where a layer's pass is computed: if nobody else takes part in it, before all exchanges.
    pub(super) fn place(&self, phase: Phase, layer: usize) -> Place {
        let layer = self.stage(layer);
        match phase {
            Phase::Forward(_) | Phase::Backward(_) if !self.is_cut() => Place { phase: Phase::Prepare, layer },
            phase => Place { phase, layer },
        }
    }
}

/// What is known of a share when its sequences are done.
struct Done<'a> {
    share: Share<'a>,
    weights: BTreeMap<String, Weight>,
    gradients: BTreeMap<String, NodeId>,
}

impl StepGraph {
    /// Builds the training step of a language model whose sequences are in so many shares, each cut by layers as `cut`
    /// says. A layer of the graph is a stage.
    ///
    /// # Errors
    /// [`Untrainable`], also where there is no sequence for each share.
    pub fn shared(
        architecture: &Architecture,
        recipe: &Recipe,
        rows: u32,
        (shares, cut): (u16, &[Range<usize>]),
    ) -> Result<Self, Untrainable> {
        recipe.check_shares(shares)?;
        let stages = cut.len().saturating_mul(shares.into());
        // Micro-batches of sequences, and one to sum up all gradients' squares.
        let (longest, norm) = if cut.len() > 1 { (recipe.sequences.div_ceil(shares.into()), 1) } else { (0, 0) };
        // SAFETY of the cast: a model has far fewer parameters.
        let exchanges = recipe.parameters(architecture).len() as u32;
        let graph = Self::empty(stages, longest.saturating_add(exchanges).saturating_add(norm));
        let mut builder = Builder::new(architecture, recipe, rows, graph)?;
        let first = |share: u16| {
            (u64::from(share) * u64::from(recipe.sequences)).checked_div(shares.into()).unwrap_or_default() as u32
        };
        let mut done = Vec::new();
        for index in 0..shares {
            let first_stage = cut.len().saturating_mul(index.into());
            let share = Share { cut, first_stage, first_sequence: first(index) };
            done.push(builder.share(share, first(index)..first(index.saturating_add(1))));
        }
        builder.sum_up(&mut done, longest);
        for Done { share, weights, gradients } in done {
            (builder.share, builder.weights, builder.gradients) = (Some(share), weights, gradients);
            builder.update();
        }
        builder.tick();
        Ok(builder.graph)
    }
}

impl Recipe {
    /// Whether there is a sequence for each of so many shares.
    ///
    /// # Errors
    /// [`Untrainable::Shares`].
    pub fn check_shares(&self, shares: u16) -> Result<(), Untrainable> {
        let fits = shares > 0 && u32::from(shares) <= self.sequences;
        if fits { Ok(()) } else { Err(Untrainable::Shares { sequences: self.sequences, shares }) }
    }
}

impl<'a> Builder<'a> {
    /// Parameters and sequences of a share.
    fn share(&mut self, share: Share<'a>, sequences: Range<u32>) -> Done<'a> {
        self.share = Some(share.clone());
        // Constants are the same for all, what a share makes of them is not.
        self.transposed.clear();
        self.sliced.clear();
        self.prepare();
        for sequence in sequences {
            self.sequence(sequence);
        }
        Done { share, weights: std::mem::take(&mut self.weights), gradients: std::mem::take(&mut self.gradients) }
    }

    /// From the first share to the last, and back: then each has the gradients over all.
    fn sum_up(&mut self, shares: &mut [Done<'_>], first_exchange: u32) {
        let mut names = BTreeMap::new();
        for name in shares.iter().flat_map(|share| share.gradients.keys()) {
            names.insert(name.clone(), self.recipe.layer_of(self.architecture, name));
        }
        for (exchange, (name, layer)) in (first_exchange..).zip(names) {
            let owners: BTreeMap<usize, usize> =
                shares.iter().enumerate().map(|(index, done)| (done.share.stage(layer), index)).collect();
            let (Some(first), Some(last)) = (owners.keys().next(), owners.keys().next_back()) else { continue };
            let mut total: Option<NodeId> = None;
            for stage in *first..=*last {
                self.place = Place { phase: Phase::Forward(exchange), layer: stage };
                let own = owners.get(&stage).and_then(|index| shares.get(*index)?.gradients.get(&name)).copied();
                total = match (total, own) {
                    (Some(before), Some(own)) => Some(self.sum(&sum_site(&name), before, own, part_of_sum(&name))),
                    (Some(only), None) | (None, Some(only)) => Some(self.hand_on(&name, only)),
                    (None, None) => None,
                };
            }
            for stage in (*first..=*last).rev() {
                let Some(sum) = total else { continue };
                self.place = Place { phase: Phase::Backward(exchange), layer: stage };
                let sum = self.hand_on(&name, sum);
                if let Some(done) = owners.get(&stage).and_then(|index| shares.get_mut(*index)) {
                    done.gradients.insert(name.clone(), sum);
                }
                total = Some(sum);
            }
        }
    }

    /// The same tensor once more: what is passed on is an operator's output.
    fn hand_on(&mut self, name: &str, gradient: NodeId) -> NodeId {
        self.like(&sum_site(name), Op::Cast, &[gradient], part_of_sum(name))
    }

    /// Hands a tick on wherever a stage has nothing else for its neighbour.
    fn tick(&mut self) {
        let told = self.told();
        let stages = self.graph.layers;
        for pass in (0..self.graph.micro_batches).flat_map(|mb| [Phase::Forward(mb), Phase::Backward(mb)]) {
            let mut line: Vec<usize> = (0..stages).collect();
            if matches!(pass, Phase::Backward(_)) {
                line.reverse();
            }
            let mut received: Option<NodeId> = None;
            for (stage, next) in line.iter().zip(line.iter().skip(1).map(Some).chain([None])) {
                self.place = Place { phase: pass, layer: *stage };
                let is_due = next.is_some() && !told.contains(&(pass, *stage));
                let tick = match received {
                    Some(before) => Some(self.like("tick", Op::Cast, &[before], TICK)),
                    None if is_due => {
                        let zero = self.constant("tick", &[1], TICK, || vec![0.0]);
                        Some(self.like("tick", Op::Cast, &[zero], TICK))
                    }
                    None => None,
                };
                self.graph.ticks.extend(tick);
                received = tick.filter(|_| is_due);
            }
        }
    }

    /// The passes in which a stage tells the next one something, and which.
    fn told(&self) -> BTreeSet<(Phase, usize)> {
        let needed = self.graph.needed();
        let mut told = BTreeSet::new();
        for (_, reader) in self.graph.nodes().filter(|(id, _)| needed.contains(id)) {
            for input in reader.inputs.iter().map(|id| self.graph.node(*id)) {
                if !input.is_leaf() && input.layer != reader.layer {
                    told.insert((input.phase, input.layer));
                }
            }
        }
        told
    }
}
