//! The training step of a language model, its gradients, and AdamW: a decoder learns what follows each token, an
//! encoder each text's label.
//!
//! A micro-batch is one sequence; where a model can be cut, there is one more for the norm of all gradients. Whatever
//! meets a weight is quantised row by row, by the row's own largest magnitude, in both directions: nothing that a
//! matrix product reads depends on calibrated exponents. Everything else is kept in [`WIDE_BITS`] bits under static
//! ones. Gradients are written block by block, in the operators of the forward pass.
//!
//! | module | what lives there |
//! |---|---|
//! | `operators` | what all of them are written in |
//! | `weights` | what products read of parameters, trained or frozen |
//! | `linear`, `adapter` | products with weights and their two gradients; those of adapters beside them |
//! | `dropout` | what of it is dropped |
//! | `layer`, `tape` | a layer, forward and backward; what is kept between |
//! | `embedding`, `norm`, `attention`, `mlp`, `pooler`, `head` | what it and the rest are made of |
//! | `padding` | what follows a text shorter than its sequence |
//! | `clipping` | the norm of all gradients |
//! | `optimizer` | AdamW |
//! | `shared` | sequences in shares, each with a model of its own |

mod adapter;
mod attention;
mod clipping;
mod dropout;
mod embedding;
mod head;
mod layer;
mod linear;
mod mlp;
mod norm;
mod operators;
mod optimizer;
mod padding;
mod pooler;
mod recipe;
mod shared;
mod tape;
mod weights;

use std::collections::BTreeMap;

use tensorlink_model::Architecture;

use super::build::MASTER_BITS;
use super::place::Place;
use super::{Class, Node, NodeId, Observed, Op, Phase, Precision, StepGraph};
use crate::exponents::Margins;

use self::recipe::{check, is_of_text, is_tied, place_of};
use self::shared::Share;

pub use self::optimizer::{AdamW, EPSILON};
pub use self::recipe::{Adapters, Recipe, Untrainable};

/// Bits of what no matrix product reads: residual stream, scores, logits, gradients.
pub const WIDE_BITS: u8 = 24;
/// Bits of queries, keys, values, probabilities and what norms take.
const NARROW_BITS: u8 = 16;
/// Names of a parameter's moments, after its own.
pub const MOMENTS: [&str; 2] = ["first", "second"];
/// How much everything may outgrow what calibration saw.
pub const MARGINS: Margins = Margins { weight: 1, activation: 3, gradient: 5, velocity: 4 };

/// How much larger than in a step of fewer sequences what is seen at a site can get, if there are so many times
/// as many.
pub fn growth(site: &str, times: f64) -> f64 {
    let sums = [".grad.sum", ".grad.coarse", ".grad.clipped", ".first"];
    if sums.iter().any(|end| site.ends_with(end)) {
        return times;
    }
    if site.ends_with(".grad.norm") { times * times } else { 1.0 }
}

impl StepGraph {
    /// Builds the training step of a language model on `rows` sequences: features are their tokens, labels those that
    /// follow; of a model with classes, one for each sequence.
    ///
    /// # Errors
    /// [`Untrainable`].
    pub fn language(architecture: &Architecture, recipe: &Recipe, rows: u32) -> Result<Self, Untrainable> {
        let layers = recipe.layer_count(architecture);
        // Stages tell each other the norm of their gradients after all sequences.
        let graph = Self::empty(layers, recipe.sequences.saturating_add(u32::from(layers > 1)));
        let mut builder = Builder::new(architecture, recipe, rows, graph)?;
        builder.prepare();
        for sequence in 0..recipe.sequences {
            builder.sequence(sequence);
        }
        builder.update();
        Ok(builder.graph)
    }
}

/// A parameter, and what of it products read.
#[derive(Clone, Copy, Debug)]
struct Weight {
    layer: usize,
    value: NodeId,
    /// First and second moment of one that is trained.
    moments: Option<[NodeId; 2]>,
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
    /// The share of a step's sequences that is built now, if there are any.
    share: Option<Share<'a>>,
    /// The sequence that is computed now.
    sequence: u32,
    /// Gradients of it that were rounded by draws.
    dithered: u32,
    /// Tokens and labels.
    data: [NodeId; 2],
    /// Tokens drawn, by the layer of the graph where they are read, and their sequence.
    drawn: BTreeMap<(usize, u32), NodeId>,
    weights: BTreeMap<String, Weight>,
    /// What adapters made of the sequence on its way forth, by their projection.
    lowered: BTreeMap<String, Quantised>,
    /// Gradients by parameter, summed over the sequences that are back.
    gradients: BTreeMap<String, NodeId>,
    constants: BTreeMap<String, NodeId>,
    /// Transposes, by what is transposed.
    transposed: BTreeMap<NodeId, NodeId>,
    /// Columns of weights from a place on, by what they are cut from.
    sliced: BTreeMap<(NodeId, u32), NodeId>,
}

impl<'a> Builder<'a> {
    /// A builder of a graph that has the data, and nothing else yet.
    fn new(
        architecture: &'a Architecture,
        recipe: &'a Recipe,
        rows: u32,
        mut graph: StepGraph,
    ) -> Result<Self, Untrainable> {
        check(architecture, recipe)?;
        let mut data = |op, site: &str, dims, layer| {
            let (phase, site) = (Phase::Prepare, site.to_owned());
            graph.push(Node { op, inputs: Vec::new(), dims, phase, layer, site, precision: Precision::Data })
        };
        let last = recipe.layer_count(architecture).saturating_sub(1);
        let tokens = vec![rows, recipe.tokens];
        let labels = if is_of_text(architecture) { vec![rows] } else { tokens.clone() };
        let data = [data(Op::Features, "tokens", tokens, 0), data(Op::Labels, "labels", labels, last)];
        Ok(Self {
            graph,
            architecture,
            recipe,
            place: Place { phase: Phase::Prepare, layer: 0 },
            share: None,
            sequence: 0,
            dithered: 0,
            data,
            drawn: BTreeMap::new(),
            weights: BTreeMap::new(),
            lowered: BTreeMap::new(),
            gradients: BTreeMap::new(),
            constants: BTreeMap::new(),
            transposed: BTreeMap::new(),
            sliced: BTreeMap::new(),
        })
    }

    /// One sequence forward, and backward.
    fn sequence(&mut self, number: u32) {
        (self.sequence, self.dithered) = (number, 0);
        let micro_batch = number.saturating_sub(self.share.as_ref().map_or(0, |share| share.first_sequence));
        let (forward, backward) = (Phase::Forward(micro_batch), Phase::Backward(micro_batch));
        let (layers, head) = (self.architecture.layers as usize, self.head_layer());
        self.at(forward, 0);
        let ids = self.ids();
        let (norm, mut x) = self.embedding(ids);
        let mut tapes = Vec::new();
        for layer in 0..layers {
            self.at(forward, layer.saturating_add(1));
            let (tape, y) = self.layer(layer, x);
            tapes.push(tape);
            x = y;
        }
        self.at(forward, head);
        let [_, labels] = self.data;
        let dims = if is_of_text(self.architecture) { vec![1] } else { vec![1, self.recipe.tokens] };
        let labels =
            self.op("labels.sample", Op::Sample { first_row: number }, &[labels], dims, Precision::Like(labels));
        let (head_pass, seen) = self.head(x);
        self.graph.observed.push(Observed { labels, logits: seen.0, probabilities: seen.1 });

        self.at(backward, head);
        let (mut dx, tied) = self.head_gradient(&head_pass, seen.1, labels);
        for tape in tapes.iter().rev() {
            self.at(backward, tape.layer.saturating_add(1));
            dx = self.layer_gradient(tape, dx);
        }
        self.at(backward, 0);
        self.embedding_gradient((ids, norm.as_ref()), dx, tied);
    }

    /// Puts what follows into the layer of the embedding (0), a block (from 1 on) or the head.
    fn at(&mut self, phase: Phase, layer: usize) {
        let layer = self.recipe.layer(self.architecture, layer);
        self.place = match &self.share {
            Some(share) => share.place(phase, layer),
            None => Place { phase, layer },
        };
    }

    const fn head_layer(&self) -> usize {
        self.architecture.layers as usize + 1
    }

    /// Adds a sequence's gradient to those before it as soon as it is there: none is kept for itself.
    fn gradient(&mut self, parameter: &str, gradient: NodeId) {
        let total = match self.gradients.get(parameter) {
            Some(total) => self.sum(&sum_site(parameter), *total, gradient, part_of_sum(parameter)),
            None => gradient,
        };
        self.gradients.insert(parameter.to_owned(), total);
    }
}

/// A sequence's gradient by a parameter: in the bits of the sum over all of them, so that sums are exact in any order.
fn part_of_sum(parameter: &str) -> Precision {
    Precision::At { site: sum_site(parameter), bits: MASTER_BITS, class: Class::Gradient }
}

fn sum_site(parameter: &str) -> String {
    format!("{parameter}.grad.sum")
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
