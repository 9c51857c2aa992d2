//! Products with weights: `y = x·Wᵀ`, `dx = dy·W`, `dW = dyᵀ·x`, every operand quantised once.
//!
//! With W = diag(c)·V in mantissas V, `dy·W = (dy·diag(c))·V`: the gradient takes the weights' scales up before it is
//! quantised itself, so that the transposed mantissas serve as they are. Likewise for the scales of x, and dW.
//! Gradients of few bits are rounded by draws.

use tensorlink_model::{Output, Positions};

use super::{Builder, Quantised, part_of_sum, wide};
use crate::model::{MAX_MICRO_BATCHES, MAX_WIDTH};
use crate::step::build::MASTER_BITS;
use crate::step::{Class, NodeId, Op, Precision};

/// Bits of the gradient by the logits of a vocabulary longer than one operator reduces.
const LOGIT_BITS: u8 = 16;

/// Bits up to which gradients are rounded by draws. Rounded to the nearest, what is small beside its row is lost in
/// every step alike, and weights drift: a decoder of 0.8 M parameters had learned well for 1,500 steps of 5,000, and
/// had forgotten everything 400 later.
const DITHERED_BITS: u8 = 8;

/// The margin-free part of a quantised row: its mantissas lie in `[−1, 1]`.
pub(super) const fn fraction(bits: u8) -> Precision {
    // SAFETY of the cast: at most 16.
    Precision::Fixed { bits, exponent: bits.saturating_sub(1) as i16 }
}

impl Builder<'_> {
    /// Rows as fractions of their own largest magnitude.
    pub(super) fn quantise(&mut self, name: &str, x: NodeId) -> Quantised {
        self.quantise_by(Op::Normalize, self.recipe.operand_bits, name, x)
    }

    /// A gradient by a projection's outputs, times the scales of what it is multiplied with.
    fn quantise_gradient(&mut self, projection: &str, name: &str, x: NodeId) -> Quantised {
        let bits = self.gradient_bits(projection);
        let op = if bits > DITHERED_BITS { Op::Normalize } else { self.dither() };
        self.quantise_by(op, bits, name, x)
    }

    /// Rounds by draws that nothing else of the step rounds by.
    fn dither(&mut self) -> Op {
        let stream = self.dithered.saturating_mul(MAX_MICRO_BATCHES).saturating_add(self.sequence);
        self.dithered = self.dithered.saturating_add(1);
        Op::Dither { stream }
    }

    fn quantise_by(&mut self, op: Op, bits: u8, name: &str, x: NodeId) -> Quantised {
        let one = self.ones(1);
        let largest = self.by_row(&format!("{name}.largest"), Op::RowAbsMax, x, Precision::Like(x));
        let coarser = Precision::Coarser { than: x, by: bits.saturating_sub(1) };
        let scale = self.like(&format!("{name}.scale"), Op::Ceiling, &[largest, one], coarser);
        let mantissas = self.like(&format!("{name}.quantised"), op, &[x, scale], fraction(bits));
        Quantised { mantissas, scale }
    }

    /// `x·Wᵀ`, plus the bias where there is one.
    pub(super) fn linear(&mut self, name: &str, x: Quantised, precision: Precision) -> NodeId {
        match self.vector_of(&format!("{name}.bias")) {
            Some(bias) => {
                let y = self.adapted((name, &format!("{name}.unbiased")), x, wide(Class::Activation));
                self.sum(name, y, bias, precision)
            }
            None => self.adapted((name, name), x, precision),
        }
    }

    /// `x·Wᵀ` of a projection, to a site.
    pub(super) fn product(&mut self, (name, site): (&str, &str), x: Quantised, precision: Precision) -> NodeId {
        let Some(weight) = self.operand(name) else { return x.mantissas };
        self.scaled_product(site, [x.mantissas, weight.mantissas, x.scale, weight.scale], precision)
    }

    /// Takes in the gradients by what is trained of W, the bias and an adapter; gives the one by x.
    pub(super) fn linear_gradient(&mut self, name: &str, x: Quantised, dy: NodeId) -> NodeId {
        let weight = self.weight_of(name);
        if self.is_trained(&weight) {
            let weights = self.weight_gradient(name, x, dy);
            self.gradient(&weight, weights);
        }
        let bias = format!("{name}.bias");
        if self.is_trained(&bias) {
            if self.moves_nothing(name) {
                self.no_gradient(&bias);
            } else {
                self.vector_gradient(&bias, dy);
            }
        }
        let by_adapter = self.adapter_gradient(name, x, dy);
        let dx = self.input_gradient(name, dy);
        match by_adapter {
            Some(by_adapter) => self.sum(&format!("{name}.input.grad.both"), dx, by_adapter, wide(Class::Gradient)),
            None => dx,
        }
    }

    /// `dyᵀ·x`.
    pub(super) fn weight_gradient(&mut self, name: &str, x: Quantised, dy: NodeId) -> NodeId {
        let Some(weight) = self.operand(name) else { return dy };
        let ones = self.ones(self.row(weight.mantissas));
        let by_token = format!("{name}.grad.by_token");
        let scaled = self.like(&by_token, Op::RowMul, &[dy, x.scale], wide(Class::Gradient));
        let scaled = self.transpose(scaled);
        let scaled = self.quantise_gradient(name, &by_token, scaled);
        let columns = self.transpose(x.mantissas);
        let operands = [scaled.mantissas, columns, scaled.scale, ones];
        let precision = part_of_sum(&self.weight_of(name));
        self.scaled_product(&format!("{name}.weight.grad"), operands, precision)
    }

    /// `dy·W`.
    pub(super) fn input_gradient(&mut self, name: &str, dy: NodeId) -> NodeId {
        let Some(weight) = self.operand(name) else { return dy };
        let ones = self.ones(self.row(weight.mantissas));
        let by_output = format!("{name}.grad.by_output");
        let scaled = self.like(&by_output, Op::Mul, &[dy, weight.scale], wide(Class::Gradient));
        let scaled = self.quantise_gradient(name, &by_output, scaled);
        let columns = self.prepared(|builder| builder.transpose(weight.mantissas));
        let operands = [scaled.mantissas, columns, scaled.scale, ones];
        self.scaled_product(&format!("{name}.input.grad"), operands, wide(Class::Gradient))
    }

    /// Bits in which the gradient of a projection's outputs is multiplied. One by many logits is large at the label
    /// alone: beside it 8 bits would lose all the others.
    fn gradient_bits(&self, projection: &str) -> u8 {
        let is_vocabulary = matches!(self.architecture.output, Output::Logits { .. });
        let many = projection == "head" && is_vocabulary && self.architecture.vocabulary > MAX_WIDTH;
        if many { LOGIT_BITS } else { self.recipe.operand_bits }
    }

    /// `r·c·a·bᵀ` of operands `a, b, r, c`; of rows longer than one operator reduces, the sum over their equal parts.
    fn scaled_product(&mut self, site: &str, operands: [NodeId; 4], precision: Precision) -> NodeId {
        let [a, b, r, c] = operands;
        let dims: Vec<u32> = [a, b].iter().filter_map(|id| self.dims(*id).first().copied()).collect();
        let (row, part) = (self.row(b), self.part(b));
        if row == part {
            return self.op(site, Op::ScaledMatMul { offset: 0 }, &operands, dims, precision);
        }
        // The parts are rounded finer than their sum.
        let finer = match &precision {
            Precision::Calibrated { class, .. } => {
                Precision::At { site: site.to_owned(), bits: MASTER_BITS, class: *class }
            }
            other => other.clone(),
        };
        let mut sum: Option<NodeId> = None;
        for offset in (0..row).step_by(part as usize) {
            let columns = self.prepared(|builder| builder.slice(b, offset, part));
            let operands = [a, columns, r, c];
            let product = self.op(site, Op::ScaledMatMul { offset }, &operands, dims.clone(), finer.clone());
            let is_last = offset.saturating_add(part) == row;
            let to = || if is_last { precision.clone() } else { finer.clone() };
            sum = Some(sum.map_or(product, |sum| self.sum(site, sum, product, to())));
        }
        sum.unwrap_or(a)
    }

    /// Whether a projection's bias changes nothing: one of keys adds the same to all scores of a query, unless they are
    /// turned or normalised in between. Of its gradient, which is zero, integers would compute their own rounding.
    fn moves_nothing(&self, projection: &str) -> bool {
        let between = self.architecture.query_key_norm || matches!(self.architecture.positions, Positions::Rotary(_));
        projection.ends_with(".key") && !between
    }

    fn no_gradient(&mut self, parameter: &str) {
        let Some(length) = self.vector_of(parameter).map(|vector| self.row(vector)) else { return };
        let name = format!("{parameter}.grad");
        let zeros = self.constant(&name, &[length], part_of_sum(parameter), || vec![0.0; length as usize]);
        self.gradient(parameter, zeros);
    }

    /// Takes in the gradient by a vector that every token's row takes part in, or every head of it: the sum over all.
    pub(super) fn vector_gradient(&mut self, parameter: &str, by_token: NodeId) {
        let columns = self.transpose(by_token);
        let mut sum = self.by_row(&format!("{parameter}.grad"), Op::RowSum, columns, part_of_sum(parameter));
        let length = self.vector_of(parameter).map_or(1, |vector| self.row(vector));
        let heads = self.row(sum).checked_div(length).unwrap_or(1);
        if heads > 1 {
            let op = Op::GroupSum { heads };
            sum = self.op(&format!("{parameter}.grad"), op, &[sum], vec![length], part_of_sum(parameter));
        }
        self.gradient(parameter, sum);
    }
}
