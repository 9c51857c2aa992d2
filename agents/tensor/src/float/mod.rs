//! Transformers in floating point, as a user of libtorch would write them: what exact mode is calibrated by and
//! measured against.
//!
//! Weights lie contiguous in the model's precision, projections of one input are one product, attention is libtorch's
//! own, keys and values are written into preallocated memory, and no gradients are recorded but in training. Nothing
//! here is exact.
//!
//! | module | what lives there |
//! |---|---|
//! | `mod` | [`FloatModel`]: loading, the way from tokens to output |
//! | `layer`, `heads` | a layer; attention between queries, keys and values |
//! | `weights` | an architecture's weights as libtorch tensors |
//! | `norm` | norms over rows |
//! | `product` | products with weights, and [`Products`]: which of libtorch's |
//! | `rotary` | rotary positions |
//! | `text` | what is given of a whole text |
//! | `cache` | [`FloatCache`]: keys and values of the tokens so far |
//! | `training` | [`FloatTraining`]: a language model's training step |
//! | `step` | [`FloatRun`]: the graph of a training step, run for calibration and in native mode |
//! | [`hardware`] | instruction set, threads and GPU that floats depend on |
//! | `watch` | telling an observer how large activations are |

mod cache;
pub mod hardware;
mod heads;
mod layer;
mod norm;
mod product;
mod rotary;
mod step;
mod text;
mod training;
mod watch;
mod weights;

use tch::{Kind, TchError, Tensor, no_grad_guard};
use tensorlink_model::{Architecture, Output, Weights, WeightsError};
use tensorlink_program::EngineError;
use tensorlink_training::calibrate::CalibrateError;
use thiserror::Error;

pub use cache::FloatCache;
pub use product::Products;
pub use step::FloatRun;
pub use training::FloatTraining;
pub use watch::{Observer, Seen};

use crate::{Device, cuda};
use rotary::Rotations;
use text::{pool, unit};
use watch::Watch;
use weights::Tensors;

/// Element type of weights and activations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Precision {
    /// 32 bits.
    F32,
    /// bfloat16; norms, softmax and sums of products are wider inside libtorch.
    Bf16,
}

impl Precision {
    const fn kind(self) -> Kind {
        match self {
            Self::F32 => Kind::Float,
            Self::Bf16 => Kind::BFloat16,
        }
    }
}

/// Why a float model cannot be made or run.
#[derive(Debug, Error)]
pub enum FloatError {
    /// The weights are those of another architecture.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A text has no tokens, or more than fit; cut it.
    #[error("a text of {tokens} tokens where 1 to {most} fit: cut it")]
    Length {
        /// Tokens of the text, with those cached before.
        tokens: usize,
        /// Most that fit the model, or the cache.
        most: usize,
    },
    /// A token is not in the vocabulary; the tokenizer belongs to another model.
    #[error("token {token} is not one of {vocabulary}: the tokenizer belongs to another model")]
    Token {
        /// The token.
        token: u32,
        /// Size of the vocabulary.
        vocabulary: u32,
    },
    /// The model has nothing to cache, as it gives one vector for a text; call [`FloatModel::forward`].
    #[error("this model gives one vector for a whole text: nothing to cache, run it forward")]
    NotADecoder,
    /// The cache belongs to a model of another shape, precision or device; make one with [`FloatModel::cache`].
    #[error("this cache belongs to another model: make one with this model")]
    ForeignCache,
    /// libtorch or the device failed; try another device.
    #[error("device failure: {0}")]
    Device(String),
}

impl From<TchError> for FloatError {
    fn from(error: TchError) -> Self {
        crate::tensor::device(error).into()
    }
}

impl From<FloatError> for CalibrateError {
    fn from(error: FloatError) -> Self {
        match error {
            FloatError::Device(why) => Self::Device(why),
            other => Self::Device(other.to_string()),
        }
    }
}

impl From<EngineError> for FloatError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Device(why) => Self::Device(why),
            other => Self::Device(other.to_string()),
        }
    }
}

/// What a model gives for a text: a unit vector `[width]`, logits `[tokens, vocabulary]`, or those of the text's
/// classes `[1, classes]`; 32-bit floats.
#[derive(Debug)]
pub struct FloatOutput(Tensor);

impl FloatOutput {
    /// The tensor, on the model's device.
    pub const fn tensor(&self) -> &Tensor {
        &self.0
    }

    /// All values, row by row, on the host; waits for the device.
    ///
    /// # Errors
    /// [`FloatError::Device`].
    pub fn values(&self) -> Result<Vec<f32>, FloatError> {
        Ok(Vec::try_from(self.0.f_contiguous()?.f_view(-1)?)?)
    }
}

/// A transformer in floating point.
#[derive(Debug)]
pub struct FloatModel {
    architecture: Architecture,
    device: Device,
    precision: Precision,
    tensors: Tensors,
}

impl FloatModel {
    /// Copies the weights to a device.
    ///
    /// # Errors
    /// [`FloatError::Weights`] for the weights of another architecture, [`FloatError::Device`] without the device or
    /// enough memory on it.
    pub fn new(
        architecture: &Architecture,
        weights: &Weights,
        device: Device,
        precision: Precision,
    ) -> Result<Self, FloatError> {
        if let Device::Cuda(index) = device {
            cuda::reach(index)?;
        }
        let _guard = no_grad_guard();
        let tensors = Tensors::load(architecture, weights, device.into(), precision.kind())?;
        Ok(Self { architecture: architecture.clone(), device, precision, tensors })
    }

    /// The same model, multiplying by other products; those of `linear` unless told. A fair comparison takes whichever
    /// is faster on the machine.
    #[must_use]
    pub fn with_products(mut self, products: Products) -> Self {
        self.tensors.set_products(products);
        self
    }

    /// The architecture.
    pub const fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// One text without a cache. Where there is an observer, it is told the largest magnitudes at every site, and the
    /// products of channels at those that projections take, in the order of computation:
    ///
    /// | site | what |
    /// |---|---|
    /// | `embedding` | sum of the embeddings, scaled where the architecture does |
    /// | `embedding.norm`, `final.norm` | norms of placement after; of before and around |
    /// | `layers.i.attention.norm`, `layers.i.mlp.norm` | norms, after the residual addition in placement after |
    /// | `layers.i.attention.output_norm`, `layers.i.mlp.output_norm` | norms of what is added, in placement around |
    /// | `layers.i.attention.{query,key,value}` | projections, normalised where the architecture does, not rotated |
    /// | `layers.i.attention.{query,key}.projected` | before that normalisation, where there is one |
    /// | `layers.i.attention.rotated_{query,key}` | rotated |
    /// | `layers.i.attention.scores` | products of queries with keys that they see, not divided |
    /// | `layers.i.attention.mixed`, `layers.i.attention.output` | the heads' means of values; their projection |
    /// | `layers.i.mlp.{up,gate,activated,product,down}` | gate and product where gated; activated is the gate, else up |
    /// | `layers.i.{attention,mlp}.sum` | after the residual addition |
    /// | `logits` | logits |
    /// | `<layer>.input`, `<layer>` | of `dense.i`, or `pooler` and `head`: layers on a text's vector |
    /// | `<layer>.activated` | the same where it is a gate, activated |
    /// | `<projection>.unbiased` | products before the bias is added, where there is one |
    ///
    /// # Errors
    /// [`FloatError::Length`], [`FloatError::Token`] or [`FloatError::Device`].
    pub fn forward(&self, ids: &[u32], observer: Observer<'_>) -> Result<FloatOutput, FloatError> {
        let most = self.architecture.context as usize;
        let tokens = self.tokens(ids, 0, most)?;
        let _guard = no_grad_guard();
        let mut watch = Watch::new(observer);
        let rotations = self.rotations(ids.len())?;
        let x = self.layers(&tokens, &rotations, None, &mut watch)?;
        Ok(FloatOutput(match self.architecture.output {
            Output::Embedding(pooling) => unit(&self.text_layers(pool(&x, pooling)?, &mut watch)?)?.f_view(-1)?,
            Output::Logits { .. } => self.logits(&x, &mut watch)?,
            Output::Classes(_) => self.text_layers(x.f_narrow(0, 0, 1)?, &mut watch)?,
        }))
    }

    /// What the layers on a text's vector make of it, as 32-bit floats.
    fn text_layers(&self, mut x: Tensor, watch: &mut Watch<'_>) -> Result<Tensor, TchError> {
        for layer in &self.tensors.text_layers {
            x = layer.forward(&x, watch)?;
        }
        x.f_to_kind(Kind::Float)
    }

    /// An empty cache for up to `capacity` tokens.
    ///
    /// # Errors
    /// [`FloatError::NotADecoder`], [`FloatError::Length`] beyond the model's context, [`FloatError::Device`] without
    /// enough memory.
    pub fn cache(&self, capacity: usize) -> Result<FloatCache, FloatError> {
        let a = &self.architecture;
        if !a.causal || !matches!(a.output, Output::Logits { .. }) {
            return Err(FloatError::NotADecoder);
        }
        let most = a.context as usize;
        if !(1..=most).contains(&capacity) {
            return Err(FloatError::Length { tokens: capacity, most });
        }
        let _guard = no_grad_guard();
        let rotations = self.rotations(capacity)?;
        FloatCache::new(a, capacity, rotations, (self.precision.kind(), self.device.into()))
    }

    /// Computes a text, or the next part of one, into the cache; gives the logits of its last token, `[1, vocabulary]`.
    ///
    /// # Errors
    /// [`FloatError::Length`] if the cache has no room, [`FloatError::ForeignCache`], [`FloatError::Token`] or
    /// [`FloatError::Device`]. The cache keeps what it had.
    pub fn prefill(&self, ids: &[u32], cache: &mut FloatCache) -> Result<FloatOutput, FloatError> {
        if !cache.fits(&self.architecture, (self.precision.kind(), self.device.into())) {
            return Err(FloatError::ForeignCache);
        }
        let tokens = self.tokens(ids, cache.len(), cache.capacity())?;
        let _guard = no_grad_guard();
        let rotations = cache.rotations(ids.len())?;
        let mut watch = Watch::new(None);
        let x = self.layers(&tokens, &rotations, Some(cache), &mut watch)?;
        let logits = self.logits(&x.f_narrow(0, -1, 1)?, &mut watch)?;
        cache.advance(ids.len());
        Ok(FloatOutput(logits))
    }

    /// Computes one more token into the cache; gives its logits, `[1, vocabulary]`.
    ///
    /// # Errors
    /// Those of [`Self::prefill`].
    pub fn decode(&self, id: u32, cache: &mut FloatCache) -> Result<FloatOutput, FloatError> {
        self.prefill(&[id], cache)
    }

    fn tokens(&self, ids: &[u32], past: usize, most: usize) -> Result<Tensor, FloatError> {
        let tokens = past.saturating_add(ids.len());
        if ids.is_empty() || tokens > most {
            return Err(FloatError::Length { tokens, most });
        }
        let vocabulary = self.architecture.token_numbers();
        if let Some(token) = ids.iter().copied().find(|id| *id >= vocabulary) {
            return Err(FloatError::Token { token, vocabulary });
        }
        let ids: Vec<i64> = ids.iter().map(|id| i64::from(*id)).collect();
        Ok(Tensor::f_from_slice(&ids)?.f_to_device(self.device.into())?)
    }

    fn rotations(&self, tokens: usize) -> Result<Rotations, FloatError> {
        Ok(Rotations::new(&self.architecture, tokens, (self.precision.kind(), self.device.into()))?)
    }

    /// The residual stream after the last layer and its norm, `[tokens, width]`.
    fn layers(
        &self,
        tokens: &Tensor,
        rotations: &Rotations,
        cache: Option<&FloatCache>,
        watch: &mut Watch<'_>,
    ) -> Result<Tensor, TchError> {
        let past = cache.map_or(0, FloatCache::len);
        let count = tokens.size1()?;
        let mut x = self.tensors.embed(tokens, past, watch)?;
        for (number, layer) in (0..).zip(&self.tensors.layers) {
            let places = cache.and_then(|cache| cache.layer(number, count));
            x = layer.forward((&self.architecture, number), x, (rotations, places), watch)?;
        }
        match &self.tensors.final_norm {
            Some(norm) => norm.forward(&x, watch),
            None => Ok(x),
        }
    }

    fn logits(&self, x: &Tensor, watch: &mut Watch<'_>) -> Result<Tensor, FloatError> {
        let head = self.tensors.head.as_ref().ok_or(FloatError::NotADecoder)?;
        let logits = head.forward(x)?;
        watch.see("logits", &logits)?;
        Ok(logits.f_to_kind(Kind::Float)?)
    }
}
