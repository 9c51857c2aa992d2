//! A layer, as [`tensorlink_model::block`] has it, in libtorch's floats.

use tch::{TchError, Tensor};
use tensorlink_model::block::{self, Half, Input, LayerBuilder};
use tensorlink_model::{Activation, Architecture};

use super::cache::Places;
use super::heads::Heads;
use super::norm::RowNorm;
use super::product::{Linear, Projection};
use super::rotary::Rotations;
use super::watch::Watch;

/// One block of attention and MLP.
#[derive(Debug)]
pub(super) struct Layer {
    /// What its sites begin with: `layers.3.`.
    pub(super) name: String,
    pub(super) heads: Heads,
    /// Of attention and of the MLP.
    pub(super) norms: [RowNorm; 2],
    /// Of what attention adds, and of what the MLP does.
    pub(super) output_norms: Option<[RowNorm; 2]>,
    /// Query, key, value.
    pub(super) attention: Projection,
    pub(super) output: Projection,
    /// Gate, if gated, and up.
    pub(super) up: Projection,
    pub(super) down: Projection,
    pub(super) activation: Activation,
}

impl Layer {
    /// All products with weights.
    pub(super) fn linear(&mut self) -> [&mut Linear; 4] {
        [&mut self.attention, &mut self.output, &mut self.up, &mut self.down].map(|projection| &mut projection.linear)
    }

    /// The residual stream after this layer, the model's `number`-th, `[tokens, width]`.
    pub(super) fn forward(
        &self,
        (architecture, number): (&Architecture, u32),
        x: Tensor,
        (rotations, places): (&Rotations, Option<Places<'_>>),
        watch: &mut Watch<'_>,
    ) -> Result<Tensor, TchError> {
        block::layer(&mut Pass { layer: self, rotations, places, watch }, architecture, number, x)
    }
}

/// One text, or the next part of one, on its way through a layer.
struct Pass<'a, 'w> {
    layer: &'a Layer,
    rotations: &'a Rotations,
    places: Option<Places<'a>>,
    watch: &'a mut Watch<'w>,
}

impl Pass<'_, '_> {
    fn see(&mut self, site: &dyn std::fmt::Display, x: &Tensor) -> Result<(), TchError> {
        if self.watch.on() { self.watch.see(&format!("{}{site}", self.layer.name), x) } else { Ok(()) }
    }

    fn see_input(&mut self, site: &str, x: &Tensor) -> Result<(), TchError> {
        if self.watch.on() { self.watch.see_input(&format!("{}{site}", self.layer.name), x) } else { Ok(()) }
    }

    /// Whether the MLP's first projection is to a gate as well.
    fn is_gated(&self) -> bool {
        self.layer.up.parts.len() > 1
    }

    /// Queries and keys, `[tokens, heads + kv_heads, width]`, each under its name.
    fn see_heads(&mut self, (before, after): (&str, &str), x: &Tensor) -> Result<(), TchError> {
        if self.watch.on() {
            let [query, key] = self.layer.heads.parted(x)?;
            self.see(&format_args!("attention.{before}query{after}"), &query)?;
            self.see(&format_args!("attention.{before}key{after}"), &key)?;
        }
        Ok(())
    }
}

impl LayerBuilder for Pass<'_, '_> {
    type Value = Tensor;
    type Operand = Tensor;
    /// Side by side, `[tokens, heads + kv_heads, width]`.
    type QueryKey = Tensor;
    type Error = TchError;

    fn norm(&mut self, half: Half, x: &Tensor) -> Result<Tensor, TchError> {
        of(half, &self.layer.norms).forward(x, self.watch)
    }

    fn output_norm(&mut self, half: Half, x: Tensor) -> Result<Tensor, TchError> {
        match &self.layer.output_norms {
            Some(norms) => of(half, norms).forward(&x, self.watch),
            None => Ok(x),
        }
    }

    fn operand(&mut self, input: Input, x: &Tensor) -> Result<Tensor, TchError> {
        match input {
            // Seen as what the norms gave.
            Input::Attention | Input::Mlp => {}
            Input::Mixed => self.see_input(input.name(), x)?,
            Input::Inner => self.see_input(if self.is_gated() { "mlp.product" } else { "mlp.activated" }, x)?,
        }
        Ok(x.shallow_clone())
    }

    fn looked_up(&mut self, x: &Tensor) -> Result<(Tensor, Tensor), TchError> {
        let layer = self.layer;
        let Heads { heads, kv_heads, width, .. } = layer.heads;
        let outputs = layer.attention.forward(x, self.watch)?;
        let by_head = outputs.f_view([-1, heads + 2 * kv_heads, width])?;
        let (mut query_key, value) =
            (by_head.f_narrow(1, 0, heads + kv_heads)?, by_head.f_narrow(1, heads + kv_heads, kv_heads)?);
        self.see(&"attention.value", &value)?;
        if let Some(gain) = &layer.heads.gain {
            self.see_heads(("", ".projected"), &query_key)?;
            query_key = query_key.f_rms_norm(width, None::<&Tensor>, layer.heads.epsilon)?.f_mul_(gain)?;
        }
        self.see_heads(("", ""), &query_key)?;
        Ok((query_key, value))
    }

    fn rotated(&mut self, x: Tensor) -> Result<Tensor, TchError> {
        let Some(rotation) = self.rotations.of(self.layer.heads.window.is_some()) else { return Ok(x) };
        let turned = rotation.apply(&x)?;
        self.see_heads(("rotated_", ""), &turned)?;
        Ok(turned)
    }

    fn mixed(&mut self, query_key: Tensor, value: Tensor) -> Result<Tensor, TchError> {
        let heads = &self.layer.heads;
        let by_place = |x: Tensor| x.f_transpose(0, 1);
        let [query, key] = heads.parted(&query_key)?;
        let (query, mut key, mut value) = (by_place(query)?, by_place(key)?, by_place(value)?);
        if let Some(places) = &self.places {
            [key, value] = places.extend(&key, &value)?;
        }
        if self.watch.on() {
            self.see(&"attention.scores", &heads.scores(&query, &key)?)?;
        }
        heads.mix(&query, &key, &value)
    }

    fn gated(&mut self, x: &Tensor) -> Result<[Tensor; 2], TchError> {
        let up = &self.layer.up;
        let outputs = up.forward(x, self.watch)?;
        let (gate, inner) = (up.part(&outputs, 0)?, up.part(&outputs, 1)?);
        self.see(&"mlp.gate", &gate)?;
        self.see(&"mlp.up", &inner)?;
        Ok([gate, inner])
    }

    fn activated(&mut self, mut x: Tensor) -> Result<Tensor, TchError> {
        let activated = activate(self.layer.activation, &mut x)?;
        if self.is_gated() {
            self.see(&"mlp.activated", &activated)?;
        }
        Ok(activated)
    }

    fn multiplied(&mut self, mut gate: Tensor, inner: Tensor) -> Result<Tensor, TchError> {
        gate.f_mul_(&inner)
    }

    fn projected(&mut self, projection: block::Projection, x: &Tensor) -> Result<Tensor, TchError> {
        let weights = match projection {
            block::Projection::Output => &self.layer.output,
            block::Projection::Up => &self.layer.up,
            block::Projection::Down => &self.layer.down,
        };
        let y = weights.forward(x, self.watch)?;
        self.see(&projection.name(), &y)?;
        Ok(y)
    }

    fn added(&mut self, half: Half, x: Tensor, mut change: Tensor) -> Result<Tensor, TchError> {
        let sum = change.f_add_(&x)?;
        self.see(&format_args!("{}.sum", half.name()), &sum)?;
        Ok(sum)
    }
}

/// A half's, of what both halves have.
const fn of<T>(half: Half, [attention, mlp]: &[T; 2]) -> &T {
    match half {
        Half::Attention => attention,
        Half::Mlp => mlp,
    }
}

/// Applies an activation in place.
pub(super) fn activate(activation: Activation, x: &mut Tensor) -> Result<Tensor, TchError> {
    match activation {
        Activation::Gelu => x.f_gelu_("none"),
        Activation::GeluTanh => x.f_gelu_("tanh"),
        Activation::Silu => x.f_silu_(),
        Activation::Relu => x.f_relu_(),
    }
}
