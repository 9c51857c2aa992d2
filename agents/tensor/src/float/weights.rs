//! An architecture's weights as libtorch tensors.

use tch::{Device, Kind, TchError, Tensor};
use tensorlink_model::{
    Architecture, Dense, Matrix, Norm, Output, Placement, Positions, Weights, WeightsError, parameters,
};

use super::heads::Heads;
use super::layer::Layer;
use super::norm::RowNorm;
use super::product::{Linear, Projection};
use super::text::TextLayer;
use super::watch::Watch;
use super::{FloatError, Products};

/// Everything a model multiplies with.
#[derive(Debug)]
pub(super) struct Tensors {
    tokens: Tensor,
    /// What their rows are multiplied by.
    scale: Option<f64>,
    /// With the row of the first token.
    positions: Option<(Tensor, i64)>,
    /// Of each text of a pair, `[texts, width]`.
    token_type: Option<Tensor>,
    /// Whether tokens' numbers say of which text they are.
    pairs: bool,
    embedding_norm: Option<RowNorm>,
    pub(super) layers: Vec<Layer>,
    pub(super) final_norm: Option<RowNorm>,
    /// What a text's vector goes through.
    pub(super) text_layers: Vec<TextLayer>,
    /// Output weights, if the model gives logits of tokens.
    pub(super) head: Option<Linear>,
}

impl Tensors {
    pub(super) fn load(a: &Architecture, weights: &Weights, device: Device, kind: Kind) -> Result<Self, FloatError> {
        check(a, weights)?;
        let loader = Loader { architecture: a, weights, device, kind };
        let tokens = loader.matrix("embedding.tokens")?;
        let head = match a.output {
            Output::Embedding(_) | Output::Classes(_) => None,
            Output::Logits { tied: true } => Some(Linear::new(tokens.shallow_clone(), None)),
            Output::Logits { tied: false } => Some(Linear::new(loader.matrix("head.weight")?, None)),
        };
        let text_layer = |(site, layer): (String, Dense)| {
            let projection = loader.projection([site.clone()], layer.bias)?;
            Ok::<_, FloatError>(TextLayer { site, projection, curve: layer.curve })
        };
        let positions = match a.positions {
            Positions::Learned { first } => Some((loader.matrix("embedding.positions")?, first.into())),
            Positions::Rotary(_) => None,
        };
        let norm = |name, has: bool| has.then(|| loader.norm(name)).transpose();
        Ok(Self {
            tokens,
            scale: a.embedding_scale,
            positions,
            token_type: a.token_types.then(|| loader.matrix("embedding.type")).transpose()?,
            pairs: a.pairs,
            embedding_norm: norm("embedding.norm", a.placement == Placement::After)?,
            layers: (0..a.layers).map(|number| loader.layer(number)).collect::<Result<_, _>>()?,
            final_norm: norm("final.norm", a.placement.before())?,
            text_layers: a.text_layers().into_iter().map(text_layer).collect::<Result<_, _>>()?,
            head,
        })
    }

    pub(super) fn set_products(&mut self, products: Products) {
        let layers = self.layers.iter_mut().flat_map(Layer::linear);
        let of_texts = self.text_layers.iter_mut().map(|layer| &mut layer.projection.linear);
        layers.chain(of_texts).chain(&mut self.head).for_each(|linear| linear.set_products(products));
    }

    /// What the first layer takes, `[tokens, width]`, for token numbers `[tokens]` that follow `past` others.
    pub(super) fn embed(&self, ids: &Tensor, past: usize, watch: &mut Watch<'_>) -> Result<Tensor, TchError> {
        let vocabulary = self.tokens.size().first().copied().unwrap_or(0);
        let mut x = match self.pairs {
            true => self.tokens.f_index_select(0, &ids.f_remainder(vocabulary)?)?,
            false => self.tokens.f_index_select(0, ids)?,
        };
        if let Some(scale) = self.scale {
            x = x.f_mul_scalar_(scale)?;
        }
        if let Some((positions, first)) = &self.positions {
            x = x.f_add_(&positions.f_narrow(0, first + past as i64, ids.size1()?)?)?;
        }
        if let Some(token_type) = &self.token_type {
            x = match self.pairs {
                true => x.f_add_(&token_type.f_index_select(0, &ids.f_floor_divide_scalar(vocabulary)?)?)?,
                false => x.f_add_(token_type)?,
            };
        }
        watch.see("embedding", &x)?;
        match &self.embedding_norm {
            Some(norm) => norm.forward(&x, watch),
            None => Ok(x),
        }
    }
}

/// Checks that the weights are those of the architecture.
fn check(architecture: &Architecture, weights: &Weights) -> Result<(), WeightsError> {
    for parameter in parameters(architecture) {
        let matrix = weights.get(&parameter.name)?;
        let (actual, expected) = ([matrix.rows(), matrix.columns()], [parameter.rows, parameter.columns]);
        if actual != expected {
            return Err(WeightsError::Shape { name: parameter.name, actual, expected });
        }
    }
    Ok(())
}

struct Loader<'a> {
    architecture: &'a Architecture,
    weights: &'a Weights,
    device: Device,
    kind: Kind,
}

impl Loader<'_> {
    fn tensor(&self, matrix: &Matrix, size: &[i64]) -> Result<Tensor, FloatError> {
        let tensor = Tensor::f_from_slice(matrix.values())?.f_view(size)?;
        Ok(tensor.f_to_device(self.device)?.f_to_kind(self.kind)?)
    }

    fn matrix(&self, name: &str) -> Result<Tensor, FloatError> {
        let matrix = self.weights.get(name)?;
        self.tensor(matrix, &[matrix.rows().into(), matrix.columns().into()])
    }

    fn vector(&self, name: &str) -> Result<Tensor, FloatError> {
        self.tensor(self.weights.get(name)?, &[-1])
    }

    fn norm(&self, name: &str) -> Result<RowNorm, FloatError> {
        let Architecture { norm, epsilon, .. } = *self.architecture;
        let bias = (norm == Norm::Layer).then(|| self.vector(&format!("{name}.bias"))).transpose()?;
        Ok(RowNorm { site: name.to_owned(), norm, gain: self.vector(&format!("{name}.gain"))?, bias, epsilon })
    }

    fn projection<const N: usize>(&self, sites: [String; N], bias: bool) -> Result<Projection, FloatError> {
        let each = |part: &str, load: &dyn Fn(&str) -> Result<Tensor, FloatError>| {
            sites.iter().map(|site| load(&format!("{site}.{part}"))).collect::<Result<Vec<_>, _>>()
        };
        let weights = each("weight", &|name| self.matrix(name))?;
        let bias = if bias { Some(Tensor::f_cat(&each("bias", &|name| self.vector(name))?, 0)?) } else { None };
        let weight = Tensor::f_cat(&weights, 0)?;
        let widths = weights.iter().map(|weight| weight.size().first().copied().unwrap_or(0));
        Ok(Projection { parts: sites.into_iter().zip(widths).collect(), linear: Linear::new(weight, bias) })
    }

    fn layer(&self, number: u32) -> Result<Layer, FloatError> {
        let a = self.architecture;
        let site = |part: &str| format!("layers.{number}.{part}");
        let attention = ["query", "key", "value"].map(|part| site(&format!("attention.{part}")));
        let up = site("mlp.up");
        let output_norms = match a.placement {
            Placement::Around => {
                Some([self.norm(&site("attention.output_norm"))?, self.norm(&site("mlp.output_norm"))?])
            }
            Placement::Before | Placement::After => None,
        };
        Ok(Layer {
            name: site(""),
            heads: Heads {
                heads: a.heads.into(),
                kv_heads: a.kv_heads.into(),
                width: a.head_width.into(),
                causal: a.causal,
                window: a.local(number).map(|local| local.window.into()),
                divisor: a.score_divisor(),
                epsilon: a.epsilon,
                gain: if a.query_key_norm { Some(self.head_gains(number)?) } else { None },
            },
            norms: [self.norm(&site("attention.norm"))?, self.norm(&site("mlp.norm"))?],
            output_norms,
            attention: self.projection(attention, a.attention_bias)?,
            output: self.projection([site("attention.output")], a.output_bias)?,
            up: if a.gated {
                self.projection([site("mlp.gate"), up], a.mlp_bias)?
            } else {
                self.projection([up], a.mlp_bias)?
            },
            down: self.projection([site("mlp.down")], a.mlp_bias)?,
            activation: a.activation,
        })
    }

    /// Gains of the norms of every query and key head, `[heads + kv_heads, head width]`.
    fn head_gains(&self, number: u32) -> Result<Tensor, FloatError> {
        let Architecture { heads, kv_heads, head_width, .. } = *self.architecture;
        let gains = [("query", heads), ("key", kv_heads)].map(|(part, count)| {
            let gain = self.vector(&format!("layers.{number}.attention.{part}_norm.gain"))?;
            Ok::<_, FloatError>(gain.f_expand([i64::from(count), i64::from(head_width)], false)?)
        });
        let [query, key] = gains;
        Ok(Tensor::f_cat(&[query?, key?], 0)?)
    }
}
