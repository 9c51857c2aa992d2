//! Reverse-mode differentiation: the backward pass of a micro-batch, in the same operators as the forward pass.
//!
//! Each rule is the vector–Jacobian product of one operator. Linear algebra follows Giles, *Collected matrix
//! derivative results for forward and reverse mode algorithmic differentiation* (2008); a cast passes its gradient
//! straight through.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::place::Place;
use super::{Class, Function, NodeId, Op, Phase, Precision, StepGraph};
use crate::model::Network;

/// Bits of gradients by activations and logits, whatever those of the operands that they are multiplied with. In 8,
/// what rows that are known well still have to say is below the last one.
pub(super) const GRADIENT_BITS: u8 = 16;

/// Gradients of one micro-batch by the state tensor they belong to.
pub type Gradients = BTreeMap<NodeId, NodeId>;

/// Appends the backward pass of the `forward` nodes to the graph, starting from the gradient `seed` of node `output`.
/// Returns the gradients of the state tensors, exact sums over the micro-batch's rows.
pub fn reverse(
    graph: &mut StepGraph,
    network: &Network,
    forward: Range<usize>,
    (output, seed): (NodeId, NodeId),
    phase: Phase,
) -> Gradients {
    let mut pass = Reverse {
        graph,
        network,
        phase,
        adjoints: BTreeMap::from([(output, seed)]),
        transposed: BTreeMap::new(),
        needed: BTreeSet::new(),
    };
    pass.mark();
    // SAFETY of the cast: node ids are 32-bit.
    for id in forward.rev().map(|index| NodeId(index as u32)) {
        if let Some(dy) = pass.adjoints.get(&id).copied() {
            pass.pull(id, dy);
        }
    }
    // What arrived at a cast belongs to the master weight behind it.
    let casts: Vec<_> = pass.adjoints.keys().copied().filter(|id| pass.graph.node(*id).op == Op::Cast).collect();
    for cast in casts {
        if let Some(dy) = pass.adjoints.get(&cast).copied() {
            pass.pull(cast, dy);
        }
    }
    let Reverse { graph, adjoints, .. } = pass;
    adjoints.into_iter().filter(|(id, _)| graph.node(*id).op == Op::State).collect()
}

struct Reverse<'a> {
    graph: &'a mut StepGraph,
    network: &'a Network,
    phase: Phase,
    adjoints: BTreeMap<NodeId, NodeId>,
    /// Transposes made in this pass, by node and the layer that uses it.
    transposed: BTreeMap<(NodeId, usize), NodeId>,
    /// Nodes whose gradient somebody asks for: those that depend on state.
    needed: BTreeSet<NodeId>,
}

impl Reverse<'_> {
    fn mark(&mut self) {
        for (id, node) in self.graph.nodes() {
            if node.op == Op::State || node.inputs.iter().any(|input| self.needed.contains(input)) {
                self.needed.insert(id);
            }
        }
    }

    /// Hands the gradient `dy` of a node on to its inputs.
    fn pull(&mut self, id: NodeId, dy: NodeId) {
        let node = self.graph.node(id).clone();
        let place = Place { phase: self.phase, layer: node.layer };
        let gradient = Precision::Calibrated { bits: GRADIENT_BITS, class: Class::Gradient };
        match (node.op, node.inputs.as_slice()) {
            // y = a·bᵀ: da = dy·b, db = dyᵀ·a; both written for a matmul that reads along rows.
            (Op::MatMul, &[a, b]) => {
                if self.needed.contains(&a) {
                    let bt = self.transpose(b, node.layer, "weight.transpose");
                    let dims = self.graph.node(a).dims.clone();
                    let da = self.product(place, [dy, bt], dims, "input.grad", gradient);
                    self.accumulate(place, a, da);
                }
                if self.needed.contains(&b) {
                    let dyt = self.transpose(dy, node.layer, "output.grad.transpose");
                    let at = self.transpose(a, node.layer, "input.transpose");
                    let dims = self.graph.node(b).dims.clone();
                    let db = self.product(place, [dyt, at], dims, "weight.grad", self.exact());
                    self.accumulate(place, b, db);
                }
            }
            // y = a + b, b repeated for every row.
            (Op::Combine { .. }, &[a, b]) => {
                self.accumulate(place, a, dy);
                if self.needed.contains(&b) {
                    let dyt = self.transpose(dy, node.layer, "output.grad.transpose");
                    let dims = self.graph.node(b).dims.clone();
                    let db = self.graph.add(place, Op::RowSum, &[dyt], dims, "bias.grad", self.exact());
                    self.accumulate(place, b, db);
                }
            }
            (Op::Cast, &[a]) => self.accumulate(place, a, dy),
            (Op::Relu, &[a]) => {
                // y > 0 exactly where x > 0, and y is what later segments keep anyway.
                let dx = self.graph.same_shape(place, Op::ReluGrad, &[dy, id], "relu.grad", Precision::Like(dy));
                self.accumulate(place, a, dx);
            }
            (Op::Lookup(Function::Gelu), &[a]) => {
                let slope = Precision::Fixed { bits: 16, exponent: 14 };
                let derivative = Op::Lookup(Function::GeluDerivative);
                let slope = self.graph.same_shape(place, derivative, &[a], "gelu.slope", slope);
                let dx = self.graph.same_shape(place, Op::Mul, &[dy, slope], "gelu.grad", gradient);
                self.accumulate(place, a, dx);
            }
            // Samples carry no gradient; the softmax is differentiated as a whole with its loss, which is the seed.
            _ => {}
        }
    }

    /// `a·bᵀ` of a gradient and an operand, which may have fewer bits.
    fn product(
        &mut self,
        place: Place,
        [a, b]: [NodeId; 2],
        dims: Vec<u32>,
        label: &'static str,
        precision: Precision,
    ) -> NodeId {
        if self.network.operand_bits == GRADIENT_BITS {
            return self.graph.add(place, Op::MatMul, &[a, b], dims, label, precision);
        }
        // The product of operands of two widths is one with scales, which are 1 here.
        let [rows, columns] = [a, b].map(|id| {
            let length = self.graph.node(id).dims.first().copied().unwrap_or(1);
            self.graph.ones(place.layer, length)
        });
        self.graph.add(place, Op::ScaledMatMul { offset: 0 }, &[a, b, rows, columns], dims, label, precision)
    }

    /// Gradients of state: sums over all rows of the batch at most.
    const fn exact(&self) -> Precision {
        Precision::Exact { terms: self.network.batch_size }
    }

    /// A transpose is made once for each layer that uses it; that of a prepared weight once for all micro-batches.
    fn transpose(&mut self, input: NodeId, layer: usize, label: &'static str) -> NodeId {
        if let Some(&done) = self.transposed.get(&(input, layer)) {
            return done;
        }
        let prepared = self.graph.node(input).phase == Phase::Prepare;
        let earlier = self.graph.nodes().find(|(_, n)| prepared && n.op == Op::Transpose && n.inputs == [input]);
        let phase = if prepared { Phase::Prepare } else { self.phase };
        let done = match earlier.map(|(id, _)| id) {
            Some(id) => id,
            None => self.graph.transpose(Place { phase, layer }, input, label),
        };
        self.transposed.insert((input, layer), done);
        done
    }

    /// Adds a contribution to a node's gradient.
    fn accumulate(&mut self, place: Place, id: NodeId, part: NodeId) {
        let total = match self.adjoints.get(&id).copied() {
            None => part,
            Some(total) => {
                let add = Op::Combine { fa: 1.0, fb: 1.0 };
                self.graph.same_shape(place, add, &[total, part], "grad.sum", Precision::Like(total))
            }
        };
        self.adjoints.insert(id, total);
    }
}
