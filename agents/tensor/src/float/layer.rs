//! Attention and MLP.

use tch::{Kind, TchError, Tensor};
use tensorlink_model::{Activation, Placement};

use super::cache::Places;
use super::norm::RowNorm;
use super::product::{Linear, Projection};
use super::rotary::Rotations;
use super::watch::Watch;

/// One block of attention and MLP.
#[derive(Debug)]
pub(super) struct Layer {
    /// What its sites begin with: `layers.3.`.
    pub(super) name: String,
    pub(super) placement: Placement,
    pub(super) heads: Heads,
    pub(super) attention_norm: RowNorm,
    /// Of what attention adds, and of what the MLP does.
    pub(super) output_norms: Option<[RowNorm; 2]>,
    /// Query, key, value.
    pub(super) attention: Projection,
    pub(super) output: Projection,
    pub(super) mlp_norm: RowNorm,
    /// Gate, if gated, and up.
    pub(super) up: Projection,
    pub(super) down: Projection,
    pub(super) activation: Activation,
    pub(super) gated: bool,
}

/// Shape of attention.
#[derive(Debug)]
pub(super) struct Heads {
    pub(super) heads: i64,
    pub(super) kv_heads: i64,
    pub(super) width: i64,
    pub(super) causal: bool,
    /// Tokens that each sees, itself included, if not all before it.
    pub(super) window: Option<i64>,
    /// What scores are divided by.
    pub(super) divisor: f64,
    /// That of the query and key norms.
    pub(super) epsilon: f64,
    /// Gains of the query and key norms, `[heads + kv_heads, width]`.
    pub(super) gain: Option<Tensor>,
}

impl Layer {
    /// All products with weights.
    pub(super) fn linear(&mut self) -> [&mut Linear; 4] {
        [&mut self.attention, &mut self.output, &mut self.up, &mut self.down].map(|projection| &mut projection.linear)
    }

    /// The residual stream after this layer, `[tokens, width]`.
    pub(super) fn forward(
        &self,
        x: Tensor,
        rotations: &Rotations,
        places: Option<Places<'_>>,
        watch: &mut Watch<'_>,
    ) -> Result<Tensor, TchError> {
        let (attended, mapped) = self.output_norms.as_ref().map(|[first, second]| (first, second)).unzip();
        let x = self.around(x, ("attention", &self.attention_norm, attended), watch, |x, watch| {
            let mixed = self.attend(x, rotations, places, watch)?;
            self.project(&self.output, "attention.output", &mixed, watch)
        })?;
        self.around(x, ("mlp", &self.mlp_norm, mapped), watch, |x, watch| {
            let inner = self.inner(x, watch)?;
            self.project(&self.down, "mlp.down", &inner, watch)
        })
    }

    /// Adds what `block` makes of the stream to it, with the norm before or after, and one of what is added if
    /// there is.
    fn around(
        &self,
        x: Tensor,
        (name, norm, output_norm): (&str, &RowNorm, Option<&RowNorm>),
        watch: &mut Watch<'_>,
        block: impl FnOnce(&Tensor, &mut Watch<'_>) -> Result<Tensor, TchError>,
    ) -> Result<Tensor, TchError> {
        let before = self.placement.before();
        let mut y = if before { block(&norm.forward(&x, watch)?, watch)? } else { block(&x, watch)? };
        if let Some(norm) = output_norm {
            y = norm.forward(&y, watch)?;
        }
        let sum = y.f_add_(&x)?;
        self.see(watch, &format_args!("{name}.sum"), &sum)?;
        if before { Ok(sum) } else { norm.forward(&sum, watch) }
    }

    fn see(&self, watch: &mut Watch<'_>, site: &dyn std::fmt::Display, x: &Tensor) -> Result<(), TchError> {
        if watch.on() { watch.see(&format!("{}{site}", self.name), x) } else { Ok(()) }
    }

    fn see_input(&self, watch: &mut Watch<'_>, site: &str, x: &Tensor) -> Result<(), TchError> {
        if watch.on() { watch.see_input(&format!("{}{site}", self.name), x) } else { Ok(()) }
    }

    fn project(
        &self,
        projection: &Projection,
        site: &str,
        x: &Tensor,
        watch: &mut Watch<'_>,
    ) -> Result<Tensor, TchError> {
        let y = projection.forward(x, watch)?;
        self.see(watch, &site, &y)?;
        Ok(y)
    }

    /// What each token gathers, `[tokens, heads · width]`.
    fn attend(
        &self,
        x: &Tensor,
        rotations: &Rotations,
        places: Option<Places<'_>>,
        watch: &mut Watch<'_>,
    ) -> Result<Tensor, TchError> {
        let Heads { heads, kv_heads, width, .. } = self.heads;
        let outputs = self.attention.forward(x, watch)?;
        // Queries and keys are normalised and rotated together: [tokens, heads + kv_heads, width].
        let by_head = outputs.f_view([-1, heads + 2 * kv_heads, width])?;
        let (mut turned, value) =
            (by_head.f_narrow(1, 0, heads + kv_heads)?, by_head.f_narrow(1, heads + kv_heads, kv_heads)?);
        self.see(watch, &"attention.value", &value)?;
        if let Some(gain) = &self.heads.gain {
            self.see_heads(watch, ("", ".projected"), &turned)?;
            turned = turned.f_rms_norm(width, None::<&Tensor>, self.heads.epsilon)?.f_mul_(gain)?;
        }
        self.see_heads(watch, ("", ""), &turned)?;
        if let Some(rotation) = rotations.of(self.heads.window.is_some()) {
            turned = rotation.apply(&turned)?;
            self.see_heads(watch, ("rotated_", ""), &turned)?;
        }
        let by_place = |x: Tensor| x.f_transpose(0, 1);
        let query = by_place(turned.f_narrow(1, 0, heads)?)?;
        let (mut key, mut value) = (by_place(turned.f_narrow(1, heads, kv_heads)?)?, by_place(value)?);
        if let Some(places) = places {
            [key, value] = places.extend(&key, &value)?;
        }
        if watch.on() {
            self.see(watch, &"attention.scores", &self.heads.scores(&query, &key)?)?;
        }
        let mixed = self.heads.mix(&query, &key, &value)?;
        self.see_input(watch, "attention.mixed", &mixed)?;
        Ok(mixed)
    }

    fn see_heads(&self, watch: &mut Watch<'_>, (before, after): (&str, &str), x: &Tensor) -> Result<(), TchError> {
        if watch.on() {
            let Heads { heads, kv_heads, .. } = self.heads;
            self.see(watch, &format_args!("attention.{before}query{after}"), &x.f_narrow(1, 0, heads)?)?;
            self.see(watch, &format_args!("attention.{before}key{after}"), &x.f_narrow(1, heads, kv_heads)?)?;
        }
        Ok(())
    }

    /// The MLP's inner vectors, `[tokens, hidden]`.
    fn inner(&self, x: &Tensor, watch: &mut Watch<'_>) -> Result<Tensor, TchError> {
        let outputs = self.up.forward(x, watch)?;
        let mut first = self.up.part(&outputs, 0)?;
        if !self.gated {
            self.see(watch, &"mlp.up", &first)?;
            let activated = activate(self.activation, &mut first)?;
            self.see_input(watch, "mlp.activated", &activated)?;
            return Ok(activated);
        }
        let up = self.up.part(&outputs, 1)?;
        self.see(watch, &"mlp.gate", &first)?;
        self.see(watch, &"mlp.up", &up)?;
        let mut activated = activate(self.activation, &mut first)?;
        self.see(watch, &"mlp.activated", &activated)?;
        let product = activated.f_mul_(&up)?;
        self.see_input(watch, "mlp.product", &product)?;
        Ok(product)
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

impl Heads {
    /// Mean of the values that each query attends to; `query` is `[heads, tokens, width]`, `key` and `value` are
    /// `[kv_heads, places, width]`; gives `[tokens, heads · width]`.
    fn mix(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor, TchError> {
        let Self { heads, kv_heads, width, divisor, .. } = *self;
        let (tokens, places) = (length(query), length(key));
        // A single token sees the last places.
        let first = self.window.filter(|_| tokens == 1).map_or(0, |window| (places - window).max(0));
        let seen = |x: &Tensor| x.f_narrow(1, first, places - first)?.f_unsqueeze(0);
        let [key, value] = [seen(key)?, seen(value)?];
        let attend = |query: &Tensor, mask: Option<&Tensor>, causal, grouped| {
            let scale = Some(1.0 / divisor);
            Tensor::f_scaled_dot_product_attention(query, &key, &value, mask, 0.0, causal, scale, grouped)
        };
        if tokens == 1 {
            // Heads that share keys and values are queries of one head: keys and values are read once, and not copied.
            let query = query.f_reshape([1, kv_heads, heads / kv_heads, width])?;
            return attend(&query, None, false, false)?.f_reshape([1, heads * width]);
        }
        let past = places - tokens;
        let slides = self.window.is_some_and(|window| window < places);
        let mask = if self.causal && (past > 0 || slides) {
            let all = Tensor::f_ones([tokens, places], (Kind::Bool, query.device()))?;
            Some(self.visible(&all, past)?)
        } else {
            None
        };
        let causal = self.causal && mask.is_none();
        let mixed = attend(&query.f_unsqueeze(0)?, mask.as_ref(), causal, heads != kv_heads)?;
        mixed.f_squeeze_dim(0)?.f_transpose(0, 1)?.f_reshape([tokens, heads * width])
    }

    /// Products of queries with the keys that they see, zero elsewhere, `[heads, tokens, places]`.
    fn scores(&self, query: &Tensor, key: &Tensor) -> Result<Tensor, TchError> {
        let Self { heads, kv_heads, width, .. } = *self;
        let (tokens, places) = (length(query), length(key));
        let grouped = query.f_reshape([kv_heads, heads / kv_heads * tokens, width])?;
        let scores = grouped.f_matmul(&key.f_transpose(1, 2)?)?.f_view([heads, tokens, places])?;
        if self.causal { self.visible(&scores, places - tokens) } else { Ok(scores) }
    }

    /// What tokens after `past` others see of `[…, tokens, places]`, zero elsewhere.
    fn visible(&self, x: &Tensor, past: i64) -> Result<Tensor, TchError> {
        let before = x.f_tril(past)?;
        match self.window {
            Some(window) => before.f_triu(past - window + 1),
            None => Ok(before),
        }
    }
}

/// Second dimension of `[heads, length, width]`.
fn length(x: &Tensor) -> i64 {
    x.size().get(1).copied().unwrap_or(0)
}
