//! A layer, as [`block`] has it, in operators.

use tensorlink_types::Opcode;

use super::projection::Quantised;
use super::{Emitter, STREAM_BITS, Value, WORD_BITS, exponents};
use crate::architecture::Norm;
use crate::block::{self, Half, LayerBuilder, Projection};
use crate::inputs::Input;
use crate::plan::error::PlanError;

/// Emits one layer.
struct LayerEmitter<'e, 'a> {
    emitter: &'e mut Emitter<'a>,
    layer: u32,
}

impl Emitter<'_> {
    /// The residual stream after a layer.
    pub(crate) fn layer(&mut self, layer: u32, x: &Value) -> Result<Value, PlanError> {
        let architecture = self.architecture;
        block::layer(&mut LayerEmitter { emitter: self, layer }, architecture, layer, x.clone())
    }
}

impl LayerEmitter<'_, '_> {
    fn name(&self, part: &str) -> String {
        format!("layers.{}.{part}", self.layer)
    }

    /// Queries or keys, not rotated; normalised head by head where the architecture does.
    fn query_or_key(&mut self, part: &str, x: &Quantised) -> Result<Value, PlanError> {
        let (name, e) = (self.name(part), &mut *self.emitter);
        let a = e.architecture;
        if !a.query_key_norm {
            return e.projection(&name, x, a.attention_bias, WORD_BITS);
        }
        let y = e.projection_to((&name, &format!("{name}.projected")), x, a.attention_bias, STREAM_BITS)?;
        let to = e.activation(&name, WORD_BITS, y.ty.dims())?;
        e.normalised(&format!("{name}_norm"), &y, (Norm::Rms, a.head_width), to)
    }

    fn rotated_part(&mut self, part: &str, x: &Value, heads: u32) -> Result<Value, PlanError> {
        let (site, e) = (self.name(&format!("attention.rotated_{part}")), &mut *self.emitter);
        let is_local = e.architecture.local(self.layer).is_some();
        let table = e.positions(if is_local { "embedding.rotary.local" } else { "embedding.rotary" })?;
        let to = e.activation(&site, WORD_BITS, x.ty.dims())?;
        let shift = exponents(&[x, &table]) - i64::from(to.exponent());
        Ok(e.push(&site, Opcode::Rope, &[x, &table], vec![heads.into(), shift], to))
    }

    const fn input(&self, input: block::Input) -> Input {
        match input {
            block::Input::Attention => Input::attention(self.emitter.architecture),
            block::Input::Mixed => Input::Mixed,
            block::Input::Mlp => Input::Mlp,
            block::Input::Inner => Input::Inner,
        }
    }
}

impl LayerBuilder for LayerEmitter<'_, '_> {
    type Value = Value;
    type Operand = Quantised;
    type QueryKey = [Value; 2];
    type Error = PlanError;

    fn norm(&mut self, half: Half, x: &Value) -> Result<Value, PlanError> {
        self.emitter.norm(&self.name(&format!("{}.norm", half.name())), x)
    }

    fn output_norm(&mut self, half: Half, x: Value) -> Result<Value, PlanError> {
        self.emitter.norm(&self.name(&format!("{}.output_norm", half.name())), &x)
    }

    fn operand(&mut self, input: block::Input, x: &Value) -> Result<Quantised, PlanError> {
        self.emitter.quantise(&self.name(input.name()), self.input(input), x)
    }

    fn looked_up(&mut self, x: &Quantised) -> Result<([Value; 2], Value), PlanError> {
        let query = self.query_or_key("attention.query", x)?;
        let key = self.query_or_key("attention.key", x)?;
        let bias = self.emitter.architecture.attention_bias;
        let value = self.emitter.projection(&self.name("attention.value"), x, bias, WORD_BITS)?;
        Ok(([query, key], value))
    }

    fn rotated(&mut self, [query, key]: [Value; 2]) -> Result<[Value; 2], PlanError> {
        let a = self.emitter.architecture;
        Ok([self.rotated_part("query", &query, a.heads)?, self.rotated_part("key", &key, a.kv_heads)?])
    }

    fn mixed(&mut self, [query, key]: [Value; 2], value: Value) -> Result<Value, PlanError> {
        let (name, layer, e) = (self.name("attention.value"), self.layer, &mut *self.emitter);
        if e.cuts() {
            return e.leave(layer, query, key, value);
        }
        let probabilities = e.weighed(layer, &query, &key, e.architecture.causal.into())?;
        let transposed = [e.architecture.key_width(), e.tokens];
        let transposed = e.ty(&name, value.ty.bits(), value.ty.exponent(), &transposed)?;
        let value = e.push(&format!("{name}.transposed"), Opcode::Transpose, &[&value], vec![], transposed);
        e.mix(layer, &probabilities, &value)
    }

    fn gated(&mut self, x: &Quantised) -> Result<[Value; 2], PlanError> {
        let bias = self.emitter.architecture.mlp_bias;
        let inner = self.emitter.projection(&self.name("mlp.up"), x, bias, STREAM_BITS)?;
        let gate = self.emitter.projection(&self.name("mlp.gate"), x, bias, STREAM_BITS)?;
        Ok([gate, inner])
    }

    fn activated(&mut self, x: Value) -> Result<Value, PlanError> {
        let curve = (self.emitter.architecture.activation, "activation");
        self.emitter.activated(&self.name("mlp"), curve, &x)
    }

    fn multiplied(&mut self, gate: Value, inner: Value) -> Result<Value, PlanError> {
        self.emitter.multiplied(&self.name("mlp.product"), &gate, &inner)
    }

    fn projected(&mut self, projection: Projection, x: &Quantised) -> Result<Value, PlanError> {
        let a = self.emitter.architecture;
        let bias = match projection {
            Projection::Output => a.output_bias,
            Projection::Up | Projection::Down => a.mlp_bias,
        };
        self.emitter.projection(&self.name(projection.name()), x, bias, STREAM_BITS)
    }

    fn added(&mut self, half: Half, x: Value, change: Value) -> Result<Value, PlanError> {
        let name = self.name(&format!("{}.sum", half.name()));
        let to = self.emitter.activation(&name, STREAM_BITS, x.ty.dims())?;
        Ok(self.emitter.add(&name, &x, &change, to))
    }
}
