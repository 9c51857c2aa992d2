//! A network's training step as a graph.

use super::autodiff::{self, GRADIENT_BITS, Gradients};
use super::place::Place;
use super::{
    Class, ConstantValues, Function, Node, NodeId, Observed, Op, Phase, Precision, Slot, StateNode, StepGraph,
};
use crate::model::{Activation, Linear, Network};

/// Bits of master weights, velocities or moments, and the sums before a bias is added.
pub const MASTER_BITS: u8 = 32;
/// Bits of tensors that are no matmul operand: softmax and GELU inputs.
pub const WIDE_BITS: u8 = 16;
/// Bits of factors that differ from step to step.
const FACTOR_BITS: u8 = 24;
/// Bits of a constant of ones.
pub(super) const ONE: Precision = Precision::Fixed { bits: 2, exponent: 0 };
/// Bits and exponent of probabilities (rule N-20).
pub(super) const PROBABILITY: Precision = Precision::Fixed { bits: 26, exponent: 24 };

/// The leaves and casts of one layer.
struct Parameters {
    leaves: [NodeId; 4],
    operand: NodeId,
}

impl StepGraph {
    /// Builds the training step of a network on a data set of `rows` rows.
    pub fn training(network: &Network, rows: u32) -> Self {
        let layers = network.layers.len();
        let micro_batches = network.micro_batches;
        let mut graph = Self::empty(layers, micro_batches);
        let last = layers.saturating_sub(1);
        let features = graph.leaf(0, Op::Features, vec![rows, network.features()], "features", Precision::Data);
        let labels = graph.leaf(last, Op::Labels, vec![rows], "labels", Precision::Data);
        let parameters: Vec<_> =
            network.layers.iter().enumerate().map(|(l, linear)| graph.parameters(l, linear, network)).collect();

        let mut passes = Vec::new();
        for mb in 0..micro_batches {
            let first = graph.len();
            let observed = graph.forward(network, &parameters, (features, labels), mb);
            graph.observed.push(observed);
            passes.push((first..graph.len(), observed));
        }
        let mut gradients = Vec::new();
        for (mb, (forward, observed)) in (0..).zip(passes) {
            let place = Place { phase: Phase::Backward(mb), layer: last };
            // Cross entropy of a softmax: the gradient by the logits is `p − onehot`, in [−1, 1]. Its sum over the
            // batch is divided by the batch size where the velocity takes it up, so micro-batches need not know
            // the batch.
            let bits = GRADIENT_BITS;
            let precision = Precision::Fixed { bits, exponent: i16::from(bits).saturating_sub(1) };
            let inputs = [observed.probabilities, observed.labels];
            let seed = graph.same_shape(place, Op::OneHotSub, &inputs, "logits.grad", precision);
            gradients.push(autodiff::reverse(&mut graph, network, forward, (observed.logits, seed), place.phase));
        }
        for (l, parameters) in parameters.iter().enumerate() {
            graph.update(network, l, parameters, &gradients);
        }
        graph
    }

    /// A graph without nodes.
    pub(super) const fn empty(layers: usize, micro_batches: u32) -> Self {
        Self {
            nodes: Vec::new(),
            constants: Vec::new(),
            state: Vec::new(),
            observed: Vec::new(),
            layers,
            micro_batches,
            ticks: Vec::new(),
        }
    }

    fn leaf(&mut self, layer: usize, op: Op, dims: Vec<u32>, label: &str, precision: Precision) -> NodeId {
        let site = Linear::site(layer, label);
        self.push(Node { op, inputs: Vec::new(), dims, phase: Phase::Prepare, layer, site, precision })
    }

    /// Appends an operator of the given shape.
    pub(super) fn add(
        &mut self,
        place: Place,
        op: Op,
        inputs: &[NodeId],
        dims: Vec<u32>,
        label: &str,
        precision: Precision,
    ) -> NodeId {
        let Place { phase, layer } = place;
        let site = Linear::site(layer, label);
        self.push(Node { op, inputs: inputs.to_vec(), dims, phase, layer, site, precision })
    }

    /// Appends an operator whose result has the shape of its first input.
    pub(super) fn same_shape(
        &mut self,
        place: Place,
        op: Op,
        inputs: &[NodeId],
        label: &str,
        precision: Precision,
    ) -> NodeId {
        let dims = inputs.first().map(|id| self.node(*id).dims.clone()).unwrap_or_default();
        self.add(place, op, inputs, dims, label, precision)
    }

    /// Appends a transpose.
    pub(super) fn transpose(&mut self, place: Place, input: NodeId, label: &str) -> NodeId {
        let dims = self.node(input).dims.iter().rev().copied().collect();
        self.add(place, Op::Transpose, &[input], dims, label, Precision::Like(input))
    }

    /// So many ones.
    pub(super) fn ones(&mut self, layer: usize, length: u32) -> NodeId {
        self.constant(layer, format!("ones.{length}"), (length, ONE), || vec![1.0; length as usize])
    }

    /// A constant, once for each name.
    fn constant(
        &mut self,
        layer: usize,
        name: String,
        (length, precision): (u32, Precision),
        values: impl FnOnce() -> Vec<f64>,
    ) -> NodeId {
        let known = self.nodes().find(|(_, node)| matches!(node.op, Op::Constant(_)) && node.site == name);
        if let Some((id, _)) = known {
            return id;
        }
        let op = Op::Constant(self.constants.len());
        let (inputs, dims, phase) = (Vec::new(), vec![length], Phase::Prepare);
        self.constants.push(ConstantValues { name: name.clone(), values: values() });
        self.push(Node { op, inputs, dims, phase, layer, site: name, precision })
    }

    fn parameters(&mut self, layer: usize, linear: &Linear, network: &Network) -> Parameters {
        let leaves = Slot::ALL.map(|slot| {
            let (dims, class) = match slot {
                Slot::Weight => (vec![linear.output, linear.input], Class::Weight),
                Slot::Bias => (vec![linear.output], Class::Weight),
                Slot::WeightVelocity => (vec![linear.output, linear.input], Class::Velocity),
                Slot::BiasVelocity => (vec![linear.output], Class::Velocity),
            };
            self.leaf(layer, Op::State, dims, slot.name(), Precision::Calibrated { bits: MASTER_BITS, class })
        });
        let [weight, ..] = leaves;
        let precision = Precision::Calibrated { bits: network.operand_bits, class: Class::Operand };
        let place = Place { phase: Phase::Prepare, layer };
        Parameters { leaves, operand: self.same_shape(place, Op::Cast, &[weight], "weight.cast", precision) }
    }

    fn forward(
        &mut self,
        network: &Network,
        parameters: &[Parameters],
        (features, labels): (NodeId, NodeId),
        mb: u32,
    ) -> Observed {
        let rows = network.micro_rows();
        let sample = Op::Sample { first_row: mb.saturating_mul(rows) };
        let at = |layer| Place { phase: Phase::Forward(mb), layer };
        let features =
            self.add(at(0), sample, &[features], vec![rows, network.features()], "sample", Precision::Like(features));
        let activation = |bits| Precision::Calibrated { bits, class: Class::Activation };
        let (mut x, mut layer) = (features, 0);
        for (l, (linear, parameters)) in network.layers.iter().zip(parameters).enumerate() {
            let place = at(l);
            let [_, bias, ..] = parameters.leaves;
            let dims = vec![rows, linear.output];
            let inputs = [x, parameters.operand];
            let sum = self.add(place, Op::MatMul, &inputs, dims, "matmul", activation(MASTER_BITS));
            let is_last = l.saturating_add(1) == network.layers.len();
            // What feeds a matmul has operand width; what feeds a softmax or a table is wider.
            let bits =
                if is_last || linear.activation == Some(Activation::Gelu) { WIDE_BITS } else { network.operand_bits };
            x = self.same_shape(place, Op::Combine { fa: 1.0, fb: 1.0 }, &[sum, bias], "linear", activation(bits));
            x = match linear.activation {
                None => x,
                Some(Activation::Relu) => self.same_shape(place, Op::Relu, &[x], "relu", Precision::Like(x)),
                Some(Activation::Gelu) => {
                    let gelu = Op::Lookup(Function::Gelu);
                    self.same_shape(place, gelu, &[x], "gelu", activation(network.operand_bits))
                }
            };
            layer = l;
        }
        let place = at(layer);
        let sample = self.add(place, sample, &[labels], vec![rows], "labels.sample", Precision::Like(labels));
        let max = self.add(place, Op::RowMax { causal: false }, &[x], vec![rows], "max", Precision::Like(x));
        let exp = self.same_shape(place, Op::ExpNeg { divisor: 1.0, causal: false }, &[x, max], "exp", PROBABILITY);
        let sum = self.add(place, Op::RowSum, &[exp], vec![rows], "sum", sum_of_powers(network.classes()));
        let probabilities = self.same_shape(place, Op::Normalize, &[exp, sum], "softmax", PROBABILITY);
        Observed { labels: sample, logits: x, probabilities }
    }

    /// Sums the micro-batches' gradients and takes a step of the optimiser.
    fn update(&mut self, network: &Network, layer: usize, parameters: &Parameters, gradients: &[Gradients]) {
        let [weight, bias, weight_velocity, bias_velocity] = parameters.leaves;
        let place = Place { phase: Phase::Update, layer };
        let share = 1.0 / f64::from(network.batch_size);
        let rate = network.rates.as_ref().map(|rates| {
            let precision = precision_of_factors(rates);
            // SAFETY of the cast: a schedule is of at most a million steps.
            let shape = (rates.len() as u32, precision.clone());
            let table = self.constant(layer, "schedule.rate".to_owned(), shape, || rates.clone());
            self.add(place, Op::AtStep, &[table], vec![1], "rate", precision)
        });
        let names = [
            ("weight.grad.sum", "weight.velocity.next", "weight.change", "weight.next"),
            ("bias.grad.sum", "bias.velocity.next", "bias.change", "bias.next"),
        ];
        let mut next = Vec::new();
        for ((value, velocity), (sum, velocity_next, change, value_next)) in
            [(weight, weight_velocity), (bias, bias_velocity)].into_iter().zip(names)
        {
            let mut parts = gradients.iter().filter_map(|gradients| gradients.get(&value).copied());
            let Some(first) = parts.next() else { continue };
            let gradient = parts.fold(first, |total, part| {
                let add = Op::Combine { fa: 1.0, fb: 1.0 };
                self.same_shape(place, add, &[total, part], sum, Precision::Like(total))
            });
            let take = Op::Combine { fa: network.optimizer.momentum, fb: share };
            let like = Precision::Like(velocity);
            let velocity = self.same_shape(place, take, &[velocity, gradient], velocity_next, like);
            let like = Precision::Like(value);
            let (change, share) = match rate {
                None => (velocity, network.optimizer.learning_rate),
                Some(rate) => (self.same_shape(place, Op::Mul, &[velocity, rate], change, like.clone()), 1.0),
            };
            let descend = Op::Combine { fa: 1.0, fb: -share };
            next.push((self.same_shape(place, descend, &[value, change], value_next, like), velocity));
        }
        let [(weight_next, weight_velocity_next), (bias_next, bias_velocity_next)] = *next else { return };
        let next = [weight_next, bias_next, weight_velocity_next, bias_velocity_next];
        for (current, next) in parameters.leaves.into_iter().zip(next) {
            self.state.push(StateNode { layer, current, next });
        }
    }
}

/// Of the factors of a schedule.
pub(super) fn precision_of_factors(values: &[f64]) -> Precision {
    let largest = values.iter().fold(0.0, |max: f64, x| max.max(x.abs()));
    let places = if largest > 0.0 { libm::ceil(libm::log2(largest)) as i16 } else { 0 };
    let exponent = i16::from(FACTOR_BITS).saturating_sub(2).saturating_sub(places);
    Precision::Fixed { bits: FACTOR_BITS, exponent }
}

/// Of a softmax's sum: a row of so many terms of at most 2^24 needs 26 + ⌈log2 terms⌉ bits; beyond 32 bits, fraction
/// bits go.
fn sum_of_powers(terms: u32) -> Precision {
    let bits = ceil_log2(terms).saturating_add(26);
    let exponent = 24i16.saturating_sub(i16::from(bits.saturating_sub(MASTER_BITS)));
    Precision::Fixed { bits: bits.min(MASTER_BITS), exponent }
}

/// Least `n` with `2^n ≥ x`.
pub(crate) fn ceil_log2(x: u32) -> u8 {
    // SAFETY of the cast: at most 32.
    x.max(1).next_power_of_two().trailing_zeros() as u8
}
