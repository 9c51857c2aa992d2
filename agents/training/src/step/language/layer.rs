//! A layer, as [`tensorlink_model::block`] has it, in nodes, and its way back.

use std::convert::Infallible;

use tensorlink_model::Norm;
use tensorlink_model::block::{self, Half, Input, LayerBuilder, Projection};

use super::attention::{Turn, number};
use super::dropout::Dropped;
use super::tape::Tape;
use super::{Builder, Quantised, narrow, wide};
use crate::step::{Class, NodeId, Op};

/// Builds one layer.
struct Forward<'b, 'a> {
    builder: &'b mut Builder<'a>,
    tape: Tape,
}

impl Builder<'_> {
    /// The residual stream after a layer, and what its way back needs.
    pub(super) fn layer(&mut self, layer: usize, x: NodeId) -> (Tape, NodeId) {
        let architecture = self.architecture;
        let mut forward = Forward { builder: self, tape: Tape::new(layer, x) };
        let Ok(y) = block::layer(&mut forward, architecture, number(layer), x);
        (forward.tape, y)
    }

    /// The gradient by a layer's input.
    pub(super) fn layer_gradient(&mut self, tape: &Tape, dy: NodeId) -> NodeId {
        let dy = self.half_gradient((tape, Half::Mlp), dy, Self::mlp_gradient);
        self.half_gradient((tape, Half::Attention), dy, Self::attention_gradient)
    }

    /// The gradient by what a half took of the stream, and by the stream itself.
    fn half_gradient(
        &mut self,
        (tape, half): (&Tape, Half),
        dy: NodeId,
        change: fn(&mut Self, &Tape, NodeId) -> NodeId,
    ) -> NodeId {
        let name = |part: &str| tape.name(&format!("{}.{part}", half.name()));
        let [norm, output_norm] = ["norm", "output_norm"].map(name);
        let is_before = self.architecture.placement.before();
        let dy = if is_before { dy } else { self.norm_gradient_of(tape, &norm, dy) };
        let (what, projection) = added(half, tape.layer);
        let change_dy = self.dropped(what, &tape.name(&format!("{projection}.grad")), dy, wide(Class::Gradient));
        let change_dy = self.norm_gradient_of(tape, &output_norm, change_dy);
        let dx = change(self, tape, change_dy);
        let dx = if is_before { self.norm_gradient_of(tape, &norm, dx) } else { dx };
        self.sum(&name("residual.grad"), dx, dy, wide(Class::Gradient))
    }

    /// The gradient by what a norm took, if the layer has it.
    fn norm_gradient_of(&mut self, tape: &Tape, name: &str, dy: NodeId) -> NodeId {
        self.norm_gradient_if(name, tape.norms.get(name), dy)
    }

    /// The gradient by queries or keys before they were normalised, where they were.
    pub(super) fn head_norm_gradient(&mut self, tape: &Tape, part: &str, dy: NodeId) -> NodeId {
        self.norm_gradient_of(tape, &tape.name(&format!("attention.{part}_norm")), dy)
    }
}

/// What is dropped of what a half adds, and the projection that makes it.
const fn added(half: Half, layer: usize) -> (Dropped, &'static str) {
    match half {
        Half::Attention => (Dropped::Attention(layer), Projection::Output.name()),
        Half::Mlp => (Dropped::Mlp(layer), Projection::Down.name()),
    }
}

impl Forward<'_, '_> {
    fn normalised(&mut self, name: String, kind: Norm, x: NodeId) -> NodeId {
        let (pass, y) = self.builder.norm(&name, kind, x);
        self.tape.norms.insert(name, pass);
        y
    }

    /// Queries or keys, not rotated; normalised head by head where the architecture does.
    fn query_or_key(&mut self, part: &str, x: Quantised) -> NodeId {
        let name = self.tape.name(part);
        if !self.builder.architecture.query_key_norm {
            return self.builder.linear(&name, x, narrow(Class::Activation));
        }
        let y = self.builder.linear(&name, x, wide(Class::Activation));
        let y = self.normalised(format!("{name}_norm"), Norm::Rms, y);
        self.builder.like(&format!("{name}.normed"), Op::Cast, &[y], narrow(Class::Activation))
    }
}

impl LayerBuilder for Forward<'_, '_> {
    type Value = NodeId;
    type Operand = Quantised;
    type QueryKey = [NodeId; 2];
    type Error = Infallible;

    fn norm(&mut self, half: Half, x: &NodeId) -> Result<NodeId, Infallible> {
        let name = self.tape.name(&format!("{}.norm", half.name()));
        Ok(self.normalised(name, self.builder.architecture.norm, *x))
    }

    fn output_norm(&mut self, half: Half, x: NodeId) -> Result<NodeId, Infallible> {
        let name = self.tape.name(&format!("{}.output_norm", half.name()));
        Ok(self.normalised(name, self.builder.architecture.norm, x))
    }

    fn operand(&mut self, input: Input, x: &NodeId) -> Result<Quantised, Infallible> {
        let quantised = self.builder.quantise(&self.tape.name(input.name()), *x);
        self.tape.operands.insert(input, quantised);
        Ok(quantised)
    }

    fn looked_up(&mut self, x: &Quantised) -> Result<([NodeId; 2], NodeId), Infallible> {
        let query_key = ["attention.query", "attention.key"].map(|part| self.query_or_key(part, *x));
        let value = self.builder.linear(&self.tape.name("attention.value"), *x, narrow(Class::Activation));
        self.tape.value = value;
        Ok((query_key, value))
    }

    fn rotated(&mut self, query_key: [NodeId; 2]) -> Result<[NodeId; 2], Infallible> {
        let ([query, key], a) = (query_key, self.builder.architecture);
        Ok([("query", query, a.heads), ("key", key, a.kv_heads)].map(|(part, x, heads)| {
            let site = self.tape.name(&format!("attention.{part}.rotated"));
            self.builder.rotate((self.tape.layer, Turn::Forth), &site, x, heads, narrow(Class::Activation))
        }))
    }

    fn mixed(&mut self, query_key: [NodeId; 2], value: NodeId) -> Result<NodeId, Infallible> {
        self.tape.query_key = query_key;
        Ok(self.builder.mixed(&mut self.tape, value))
    }

    fn gated(&mut self, x: &Quantised) -> Result<[NodeId; 2], Infallible> {
        let [gate, inner] =
            ["mlp.gate", "mlp.up"].map(|part| self.builder.linear(&self.tape.name(part), *x, wide(Class::Activation)));
        self.tape.inner = inner;
        Ok([gate, inner])
    }

    fn activated(&mut self, x: NodeId) -> Result<NodeId, Infallible> {
        let activated = self.builder.activated(&self.tape.name("mlp.activated"), x);
        (self.tape.first, self.tape.activated) = (x, activated);
        Ok(activated)
    }

    fn multiplied(&mut self, gate: NodeId, inner: NodeId) -> Result<NodeId, Infallible> {
        Ok(self.builder.like(&self.tape.name("mlp.inner"), Op::Mul, &[gate, inner], wide(Class::Activation)))
    }

    fn projected(&mut self, projection: Projection, x: &Quantised) -> Result<NodeId, Infallible> {
        Ok(self.builder.linear(&self.tape.name(projection.name()), *x, wide(Class::Activation)))
    }

    fn added(&mut self, half: Half, x: NodeId, change: NodeId) -> Result<NodeId, Infallible> {
        let precision = || wide(Class::Activation);
        let (what, projection) = added(half, self.tape.layer);
        let change = self.builder.dropped(what, &self.tape.name(projection), change, precision());
        Ok(self.builder.sum(&self.tape.name(&format!("{}.residual", half.name())), x, change, precision()))
    }
}
