//! What a training or a model to be served asks of whoever computes it.

use std::ops::Range;

use tensorlink_model::decode::bytes_per_token;
use tensorlink_model::partition::{PartitionError, partition};
use tensorlink_model::{Head, Plan, PlanError, Quantized, Setting};
use tensorlink_node::files::file_len;
use tensorlink_node::footprint::Footprint;
use tensorlink_node::price::multiply_adds;
use tensorlink_placement::model::{Cost, Kind, Layer, ModelProfile};
use tensorlink_placement::node::Precision;
use tensorlink_training::cost::LayerCost;
use tensorlink_training::start::TABLES;
use tensorlink_types::{Opcode, Operator, Program, TensorRoot, TensorType};

use crate::prepare::Draft;

/// Work that can be placed.
#[derive(Clone, PartialEq, Debug)]
pub struct Work {
    /// Its layers.
    pub model: ModelProfile,
    /// What a unit of it is: a micro-batch of a step, or a token of an answer.
    pub kind: Kind,
    /// In how many bits its products are.
    pub setting: Setting,
    /// Bytes that each worker needs beside its layers, whichever they are.
    pub beside: u64,
    /// Units that follow each other through the stages before the next round of them can begin.
    pub together: u32,
}

impl Work {
    /// A draft that is cut into so many stages a share.
    pub fn training(draft: &Draft, stages: usize) -> Self {
        let training = &draft.training;
        let mut costs = training.costs(stages);
        // The first stage of a share has the rows, the last has their classes.
        let rows = &draft.data.training;
        if let Some(first) = costs.first_mut() {
            first.bytes = first.bytes.saturating_add(rows.features.ty().byte_len());
        }
        if let Some(last) = costs.last_mut() {
            last.bytes = last.bytes.saturating_add(rows.labels.ty().byte_len());
        }
        let layer = |cost: &LayerCost| trained(number(cost.multiply_adds), cost.bytes, cost.handed);
        let layers = costs.iter().map(layer).collect();
        let is_fast = training.operand_bits() == 8;
        Self::of_layers(&draft.name, layers, is_fast, (TABLES, training.passes()))
    }

    /// What is left of a training, by the programs of its single layers, with so many steps in an interval. Stages of
    /// several need no more than their sum and what every worker has beside: what a stage receives, it receives at its
    /// two edges alone.
    pub fn resumed(name: &str, layers: &[Program], steps: u32) -> Self {
        let most = |of: fn(&Program) -> &Vec<TensorType>| {
            layers.iter().map(|program| file_len(of(program).iter())).max().unwrap_or_default()
        };
        let edges = most(|program| &program.from_previous).saturating_add(most(|program| &program.from_next));
        let passes = layers.first().map_or(1, |program| program.micro_batches.max(1));
        let layer = |program: &Program| {
            let macs = (multiply_adds(program) as f64 / f64::from(passes)).max(1.0);
            trained(macs, Footprint::training(program, 0).alone(), given(program).div_ceil(passes.into()))
        };
        let of_bytes = |operator: &Operator| {
            matches!(operator.opcode, Opcode::MatMul | Opcode::ScaledMatMul)
                && operator.operands.iter().take(2).all(|operand| operand.ty.bits() <= 8)
        };
        let is_fast = layers.iter().flat_map(|program| &program.operators).any(of_bytes);
        let beside = Footprint::received(edges.saturating_mul(steps.into())).alone();
        Self::of_layers(name, layers.iter().map(layer).collect(), is_fast, (beside, passes))
    }

    /// A training of these layers, with products of 8 bits or of 16.
    fn of_layers(name: &str, layers: Vec<Layer>, is_fast: bool, (beside, together): (u64, u32)) -> Self {
        let precision = Precision::Int16;
        Self {
            model: ModelProfile { name: name.to_owned(), precision, micro_batch: 1.0, layers },
            kind: Kind::Training,
            setting: if is_fast { Setting::Fast } else { Setting::Reference },
            beside,
            together,
        }
    }

    /// Cuts the layers of a training for workers of these memories (bytes), in their order.
    ///
    /// # Errors
    /// [`PartitionError`].
    pub fn cut(&self, memories: &[u64]) -> Result<Vec<Range<usize>>, PartitionError> {
        let layers: Vec<u64> = self.model.layers.iter().map(|layer| layer.training.state as u64).collect();
        let memories: Vec<u64> = memories.iter().map(|memory| memory.saturating_sub(self.beside)).collect();
        partition(&layers, &memories)
    }

    /// A model that answers texts of up to so many tokens. What single layers need is told by their programs, so that
    /// stages of several need no more than their sum and what every worker has beside.
    ///
    /// # Errors
    /// [`PlanError`] if a layer has no program.
    pub fn serving(name: &str, model: &Quantized, longest: u32) -> Result<Self, PlanError> {
        let head = Head::served(model.architecture().output);
        let plan = |layer: u32| model.plan(layer..layer.saturating_add(1), head, |_| TensorRoot::default());
        let plans = (0..model.architecture().layers).map(plan).collect::<Result<Vec<_>, _>>()?;
        Self::of_plans(name, &plans, longest)
    }

    /// The same of a model that is cut already: its stages are what can be placed.
    ///
    /// # Errors
    /// [`PlanError`] if a stage has no program.
    pub fn of_plans(name: &str, plans: &[Plan], longest: u32) -> Result<Self, PlanError> {
        let mut beside = 0;
        let mut layers = Vec::new();
        for plan in plans {
            let program = plan.program(longest)?;
            let weights = file_len(plan.constants().iter().map(|slot| &slot.ty));
            // Twice, as a session may have room for twice its tokens.
            let cache = bytes_per_token(plan)?.saturating_mul(longest.into()).saturating_mul(2);
            let whole = Footprint::serving(plan, longest)?.alone();
            beside = whole.saturating_sub(weights).saturating_sub(cache).max(beside);
            let tokens = f64::from(longest.max(1));
            let prefill = Cost {
                macs: (multiply_adds(&program) as f64).max(1.0),
                reads: weights as f64,
                state: cache as f64,
                activations: number(given(&program)),
            };
            let decode = Cost {
                macs: (prefill.macs / tokens).max(1.0),
                activations: (prefill.activations / tokens).max(1.0),
                ..prefill
            };
            layers.push(Layer { weights: number(weights), decode, prefill, training: prefill });
        }
        let setting = plans.first().map_or(Setting::default(), Plan::setting);
        Ok(Self {
            model: ModelProfile {
                name: name.to_owned(),
                precision: Precision::Int16,
                micro_batch: f64::from(longest.max(1)),
                layers,
            },
            kind: Kind::Decode,
            setting,
            beside,
            together: 1,
        })
    }

    /// The same for workers of any memory, for what others have chosen by programs instead of estimates.
    pub fn weightless(&self) -> Self {
        let mut light = self.clone();
        light.beside = 0;
        for layer in &mut light.model.layers {
            layer.weights = 1.0;
            for cost in [&mut layer.decode, &mut layer.prefill, &mut layer.training] {
                cost.state = 0.0;
            }
        }
        light
    }

    /// Seconds of a round of units: of a step, or a token.
    pub fn seconds(&self, latency: f64, bottleneck: f64) -> f64 {
        bottleneck.mul_add(f64::from(self.together.saturating_sub(1)), latency)
    }
}

/// A layer that is trained: its multiply-adds in a micro-batch, a worker's bytes, and those that it hands on.
fn trained(macs: f64, bytes: u64, handed: u64) -> Layer {
    // What is multiplied is there anew in every micro-batch; nothing waits for weights to be read. What a worker's
    // weights are of its bytes is not told apart.
    let cost = Cost { macs, reads: 0.0, state: bytes as f64, activations: number(handed) };
    Layer { weights: 1.0, decode: cost, prefill: cost, training: cost }
}

/// Bytes that a stage hands on.
fn given(program: &Program) -> u64 {
    let given = program.to_next.iter().filter_map(|index| program.operators.get(*index as usize));
    file_len(given.map(|operator| &operator.output))
}

/// A planner takes no layer that costs nothing.
fn number(of: u64) -> f64 {
    of.max(1) as f64
}
