//! The training step of a causal language model: a decoder with norms before its blocks, its gradients, and AdamW.
//!
//! A micro-batch is one sequence. Whatever meets a weight is quantised row by row, by the row's own largest magnitude, in both
//! directions: nothing that a matrix product reads depends on calibrated exponents. Everything else is kept in
//! [`WIDE_BITS`] bits under static ones. Gradients are written block by block, in the operators of the forward pass.
//!
//! | module | what lives there |
//! |---|---|
//! | `linear` | products with weights and their two gradients |
//! | `norm`, `attention`, `mlp`, `head` | the blocks, forward and backward |
//! | `optimizer` | clipping and AdamW |

mod attention;
mod head;
mod linear;
mod mlp;
mod norm;
mod optimizer;

use std::collections::BTreeMap;

use thiserror::Error;

use super::build::{MASTER_BITS, Place};
use super::{Class, ConstantValues, Node, NodeId, Observed, Op, Phase, Precision, Spread, StepGraph};
use crate::exponents::Margins;
use crate::transformer::{Activation, Architecture, Norm, Output, Placement, Positions};

pub use self::optimizer::AdamW;

/// Bits of what no matrix product reads: residual stream, scores, logits, gradients.
pub const WIDE_BITS: u8 = 24;
/// Bits of queries, keys, values, probabilities and what norms take.
const NARROW_BITS: u8 = 16;
/// Bits of a constant of ones.
const ONE: Precision = Precision::Fixed { bits: 2, exponent: 0 };

/// Names of a parameter's moments, after its own.
pub const MOMENTS: [&str; 2] = ["first", "second"];
/// How much everything may outgrow what calibration saw.
pub const MARGINS: Margins = Margins { weight: 1, activation: 3, gradient: 5, velocity: 4 };

/// How much larger than in a step of fewer sequences what is seen at a site can get, if there are so many times as many.
pub fn growth(site: &str, times: f64) -> f64 {
    let sums = [".grad.sum", ".grad.coarse", ".grad.clipped", ".first"];
    if sums.iter().any(|end| site.ends_with(end)) {
        return times;
    }
    if site.ends_with(".grad.norm") { times * times } else { 1.0 }
}

/// Where a parameter lives: the embedding, its block, or the head.
pub fn layer_of(architecture: &Architecture, parameter: &str) -> usize {
    let block = parameter.strip_prefix("layers.").and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
    match block {
        Some(block) => block.saturating_add(1),
        None if parameter.starts_with("embedding.") => 0,
        None => architecture.layers as usize + 1,
    }
}

/// How a language model is trained.
#[derive(Clone, PartialEq, Debug)]
pub struct Recipe {
    /// Tokens of a sequence.
    pub tokens: u32,
    /// Sequences of a step, each a micro-batch.
    pub sequences: u32,
    /// Bits of the operands of products with weights, 8 or 16.
    pub operand_bits: u8,
    /// The optimiser.
    pub optimizer: AdamW,
}

/// An architecture that is not trained.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0} is not trained yet; choose a decoder with norms before its blocks and an output of its own")]
pub struct Untrainable(pub &'static str);

impl StepGraph {
    /// Builds the training step of a language model on `rows` sequences: features are their tokens, labels those that follow.
    ///
    /// # Errors
    /// [`Untrainable`].
    pub fn language(architecture: &Architecture, recipe: &Recipe, rows: u32) -> Result<Self, Untrainable> {
        check(architecture)?;
        let layers = architecture.layers as usize + 2;
        let graph = Self::empty(layers, recipe.sequences);
        let last = layers.saturating_sub(1);
        let mut builder = Builder {
            graph,
            architecture,
            recipe,
            place: Place { phase: Phase::Prepare, layer: 0 },
            weights: BTreeMap::new(),
            gradients: BTreeMap::new(),
            constants: BTreeMap::new(),
            transposed: BTreeMap::new(),
        };
        let ids = builder.leaf("tokens", Op::Features, vec![rows, recipe.tokens], Precision::Data);
        builder.place.layer = last;
        let labels = builder.leaf("labels", Op::Labels, vec![rows, recipe.tokens], Precision::Data);
        builder.prepare();
        for sequence in 0..recipe.sequences {
            builder.sequence(sequence, ids, labels);
        }
        builder.update();
        Ok(builder.graph)
    }
}

fn check(a: &Architecture) -> Result<(), Untrainable> {
    let biased = a.attention_bias || a.output_bias || a.mlp_bias;
    let refused = [
        (!a.causal, "an encoder"),
        (a.placement != Placement::Before, "a model with norms after its blocks"),
        (a.output != Output::Logits { tied: false }, "a model whose output is not weights of its own"),
        (a.query_key_norm, "a model that normalises queries and keys"),
        (biased, "a model with biases in its projections"),
        (a.token_types, "a model with token types"),
        (a.norm != Norm::Rms, "a model with LayerNorm"),
        (!matches!(a.positions, Positions::Rotary(_)), "a model with learned positions"),
        (a.activation != Activation::Silu || !a.gated, "a model without a gated SiLU"),
    ];
    refused.into_iter().find(|(holds, _)| *holds).map_or(Ok(()), |(_, what)| Err(Untrainable(what)))
}

/// A parameter's state, and what of it products read.
#[derive(Clone, Copy, Debug)]
struct Weight {
    layer: usize,
    /// Value, first and second moment.
    leaves: [NodeId; 3],
    /// Quantised by rows; the cast of a vector, which has no scale of its own.
    quantised: Option<Quantised>,
}

/// Mantissas with a scale for each row.
#[derive(Clone, Copy, Debug)]
struct Quantised {
    mantissas: NodeId,
    scale: NodeId,
}

struct Builder<'a> {
    graph: StepGraph,
    architecture: &'a Architecture,
    recipe: &'a Recipe,
    place: Place,
    weights: BTreeMap<String, Weight>,
    /// Gradients by parameter, one of each sequence.
    gradients: BTreeMap<String, Vec<NodeId>>,
    constants: BTreeMap<String, NodeId>,
    /// Transposes, by what is transposed.
    transposed: BTreeMap<NodeId, NodeId>,
}

impl Builder<'_> {
    fn leaf(&mut self, site: &str, op: Op, dims: Vec<u32>, precision: Precision) -> NodeId {
        let Place { layer, .. } = self.place;
        self.graph.push(Node {
            op,
            inputs: Vec::new(),
            dims,
            phase: Phase::Prepare,
            layer,
            site: site.to_owned(),
            precision,
        })
    }

    /// Appends an operator.
    fn op(&mut self, site: &str, op: Op, inputs: &[NodeId], dims: Vec<u32>, precision: Precision) -> NodeId {
        let Place { phase, layer } = self.place;
        self.graph.push(Node { op, inputs: inputs.to_vec(), dims, phase, layer, site: site.to_owned(), precision })
    }

    /// Appends an operator whose result has the shape of its first input.
    fn like(&mut self, site: &str, op: Op, inputs: &[NodeId], precision: Precision) -> NodeId {
        let dims = inputs.first().map(|id| self.dims(*id)).unwrap_or_default();
        self.op(site, op, inputs, dims, precision)
    }

    /// Appends an operator that gives one element for each row of its first input.
    fn by_row(&mut self, site: &str, op: Op, inputs: &[NodeId], precision: Precision) -> NodeId {
        let mut dims = inputs.first().map(|id| self.dims(*id)).unwrap_or_default();
        dims.pop();
        if dims.is_empty() {
            dims.push(1);
        }
        self.op(site, op, inputs, dims, precision)
    }

    fn dims(&self, id: NodeId) -> Vec<u32> {
        self.graph.node(id).dims.clone()
    }

    fn row(&self, id: NodeId) -> u32 {
        self.graph.node(id).dims.last().copied().unwrap_or(1)
    }

    /// The last two dimensions exchanged, once for each tensor.
    fn transpose(&mut self, id: NodeId) -> NodeId {
        if let Some(done) = self.transposed.get(&id) {
            return *done;
        }
        let mut dims = self.dims(id);
        let last = dims.len().saturating_sub(2);
        if let Some(pair) = dims.get_mut(last..) {
            pair.reverse();
        }
        let site = format!("{}.transposed", self.graph.node(id).site);
        let done = self.op(&site, Op::Transpose, &[id], dims, Precision::Like(id));
        self.transposed.insert(id, done);
        done
    }

    fn sum(&mut self, site: &str, a: NodeId, b: NodeId, precision: Precision) -> NodeId {
        self.like(site, Op::Combine { fa: 1.0, fb: 1.0 }, &[a, b], precision)
    }

    /// A constant, once for each name.
    fn constant(
        &mut self,
        name: &str,
        dims: &[u32],
        precision: Precision,
        values: impl FnOnce() -> Vec<f64>,
    ) -> NodeId {
        if let Some(done) = self.constants.get(name) {
            return *done;
        }
        let index = self.graph.constants.len();
        self.graph.constants.push(ConstantValues { name: name.to_owned(), values: values() });
        let done = self.leaf(name, Op::Constant(index), dims.to_vec(), precision);
        self.constants.insert(name.to_owned(), done);
        done
    }

    /// So many ones.
    fn ones(&mut self, length: u32) -> NodeId {
        self.constant(&format!("ones.{length}"), &[length], ONE, || vec![1.0; length as usize])
    }

    /// One sequence forward, and backward.
    fn sequence(&mut self, number: u32, ids: NodeId, labels: NodeId) {
        let layers = self.architecture.layers as usize;
        let head = layers.saturating_add(1);
        self.at(Phase::Forward(number), 0);
        let sample = Op::Sample { first_row: number };
        let ids = self.op("tokens.sample", sample, &[ids], vec![1, self.recipe.tokens], Precision::Like(ids));
        let mut x = self.embedding(ids);
        let mut blocks = Vec::new();
        for layer in 0..layers {
            self.at(Phase::Forward(number), layer.saturating_add(1));
            let (attention, between) = self.attention(layer, x);
            let (mlp, out) = self.mlp(layer, between);
            blocks.push((attention, mlp));
            x = out;
        }
        self.at(Phase::Forward(number), head);
        let labels = self.op("labels.sample", sample, &[labels], vec![1, self.recipe.tokens], Precision::Like(labels));
        let (head_pass, seen) = self.head(x);
        self.graph.observed.push(Observed { features: ids, labels, logits: seen.0, probabilities: seen.1 });

        self.at(Phase::Backward(number), head);
        let mut dx = self.head_gradient(&head_pass, seen.1, labels);
        for (layer, (attention, mlp)) in blocks.iter().enumerate().rev() {
            self.at(Phase::Backward(number), layer.saturating_add(1));
            dx = self.mlp_gradient(layer, mlp, dx);
            dx = self.attention_gradient(layer, attention, dx);
        }
        self.at(Phase::Backward(number), 0);
        self.embedding_gradient(ids, dx);
    }

    const fn at(&mut self, phase: Phase, layer: usize) {
        self.place = Place { phase, layer };
    }

    fn gradient(&mut self, parameter: &str, gradient: NodeId) {
        self.gradients.entry(parameter.to_owned()).or_default().push(gradient);
    }

    fn embedding(&mut self, ids: NodeId) -> NodeId {
        let Some(table) = self.weights.get("embedding.tokens").copied() else { return ids };
        let [table, ..] = table.leaves;
        let ones = self.ones(self.architecture.vocabulary);
        let dims = vec![self.recipe.tokens, self.architecture.width];
        self.op("embedding", Op::Gather, &[table, ones, ids], dims, wide(Class::Activation))
    }

    fn embedding_gradient(&mut self, ids: NodeId, dx: NodeId) {
        let columns = self.transpose(dx);
        let dims = vec![self.architecture.vocabulary, self.architecture.width];
        let sums =
            self.op("embedding.tokens.grad", Op::GatherGrad, &[columns, ids], dims, part_of_sum("embedding.tokens"));
        self.gradient("embedding.tokens", sums);
    }

    const fn spread(&self) -> Spread {
        Spread { center: matches!(self.architecture.norm, Norm::Layer), epsilon: self.architecture.epsilon }
    }
}

/// A sequence's gradient by a parameter: in the bits of the sum over all of them, so that sums are exact in any order.
fn part_of_sum(parameter: &str) -> Precision {
    Precision::At { site: format!("{parameter}.grad.sum"), bits: MASTER_BITS, class: Class::Gradient }
}

/// A parameter's gradient after clipping.
fn clipped(parameter: &str) -> Precision {
    Precision::At { site: clipped_site(parameter), bits: WIDE_BITS, class: Class::Gradient }
}

/// Its squares, and their mean.
fn clipped_squared(parameter: &str) -> Precision {
    Precision::SquareAt { site: clipped_site(parameter), bits: WIDE_BITS, class: Class::Gradient }
}

fn clipped_site(parameter: &str) -> String {
    format!("{parameter}.grad.clipped")
}

const fn wide(class: Class) -> Precision {
    Precision::Calibrated { bits: WIDE_BITS, class }
}

const fn narrow(class: Class) -> Precision {
    Precision::Calibrated { bits: NARROW_BITS, class }
}

const fn master(class: Class) -> Precision {
    Precision::Calibrated { bits: MASTER_BITS, class }
}
