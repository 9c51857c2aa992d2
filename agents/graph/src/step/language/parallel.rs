//! Data parallelism: each stage has the whole model, and takes its share of a step's sequences.
//!
//! What a stage computes of its own stands in its preparation. Then gradients are summed from stage to stage, one parameter a
//! micro-batch, and the totals go back. They are integers of one exponent, so that the state after a step is the same bits as that
//! of one worker with all sequences, however many share them.
//!
//! | segment | what is in it |
//! |---|---|
//! | preparation | forward and backward passes of the stage's sequences |
//! | forward m | the sum of parameter m's gradients over the stages before and this one |
//! | backward m | the same over all stages |
//! | update | the optimiser, the same everywhere |

use std::collections::BTreeMap;

use super::{Builder, Recipe, Untrainable, Weight, part_of_sum, sum_site};
use crate::step::{NodeId, Op, Phase, StepGraph};
use crate::transformer::Architecture;

/// What is known of a stage when its sequences are done.
struct Done {
    weights: BTreeMap<String, Weight>,
    gradients: BTreeMap<String, NodeId>,
}

impl StepGraph {
    /// Builds the training step of a language model whose sequences are shared among so many stages. A layer of the graph is a stage.
    ///
    /// # Errors
    /// [`Untrainable`], also where there is no sequence for each stage.
    pub fn data_parallel(
        architecture: &Architecture,
        recipe: &Recipe,
        rows: u32,
        stages: u16,
    ) -> Result<Self, Untrainable> {
        if stages == 0 || u32::from(stages) > recipe.sequences {
            return Err(Untrainable::Shares { sequences: recipe.sequences, stages });
        }
        // SAFETY of the cast: a model has far fewer parameters.
        let exchanges = recipe.parameters(architecture).len() as u32;
        let mut builder = Builder::new(architecture, recipe, rows, Self::empty(stages.into(), exchanges))?;
        let mut done = Vec::new();
        for stage in 0..stages {
            done.push(builder.share_of(stage, stages));
        }
        builder.sum_up(&mut done);
        for (stage, Done { weights, gradients }) in done.into_iter().enumerate() {
            (builder.stage, builder.weights, builder.gradients) = (Some(stage), weights, gradients);
            builder.update();
        }
        Ok(builder.graph)
    }
}

impl Builder<'_> {
    /// Parameters and sequences of a stage.
    fn share_of(&mut self, stage: u16, stages: u16) -> Done {
        self.stage = Some(stage.into());
        // Constants are the same for all, what a stage makes of them is not.
        self.transposed.clear();
        self.sliced.clear();
        self.prepare();
        let all = u64::from(self.recipe.sequences);
        let first = |stage: u16| (u64::from(stage) * all).checked_div(stages.into()).unwrap_or(all) as u32;
        for sequence in first(stage)..first(stage.saturating_add(1)) {
            self.sequence(sequence);
        }
        Done { weights: std::mem::take(&mut self.weights), gradients: std::mem::take(&mut self.gradients) }
    }

    /// From the first stage to the last, and back: then each has the gradients over all.
    fn sum_up(&mut self, stages: &mut [Done]) {
        let names: Vec<String> = stages.first().into_iter().flat_map(|stage| stage.gradients.keys().cloned()).collect();
        for (exchange, name) in (0..).zip(&names) {
            let mut total: Option<NodeId> = None;
            for (stage, done) in stages.iter().enumerate() {
                let Some(own) = done.gradients.get(name) else { continue };
                (self.place.phase, self.place.layer) = (Phase::Forward(exchange), stage);
                total = Some(match total {
                    None => self.hand_on(name, *own),
                    Some(before) => self.sum(&sum_site(name), before, *own, part_of_sum(name)),
                });
            }
            for (stage, done) in stages.iter_mut().enumerate().rev() {
                let Some(sum) = total else { continue };
                (self.place.phase, self.place.layer) = (Phase::Backward(exchange), stage);
                let sum = self.hand_on(name, sum);
                done.gradients.insert(name.clone(), sum);
                total = Some(sum);
            }
        }
    }

    /// The same tensor once more: what is passed on is an operator's output.
    fn hand_on(&mut self, name: &str, gradient: NodeId) -> NodeId {
        self.like(&sum_site(name), Op::Cast, &[gradient], part_of_sum(name))
    }
}
