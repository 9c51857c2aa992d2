//! Keys and values of the tokens so far.

use tch::{Device, Kind, TchError, Tensor};
use tensorlink_model::Architecture;

use super::FloatError;
use super::rotary::Rotations;

/// Keys and values of one text, for [`FloatModel::decode`](super::FloatModel::decode); memory for all its tokens is
/// taken at once.
#[derive(Debug)]
pub struct FloatCache {
    /// Keys and values of each layer, `[kv_heads, capacity, head width]`.
    layers: Vec<[Tensor; 2]>,
    rotations: Rotations,
    capacity: usize,
    len: usize,
}

/// Where a layer keeps the keys and values of the tokens being computed, and finds those before them.
pub(super) struct Places<'a> {
    layer: &'a [Tensor; 2],
    past: i64,
    tokens: i64,
}

impl FloatCache {
    pub(super) fn new(
        architecture: &Architecture,
        capacity: usize,
        rotations: Rotations,
        options: (Kind, Device),
    ) -> Result<Self, FloatError> {
        let size = Self::size(architecture, capacity);
        let layer = |_| Ok([Tensor::f_zeros(size, options)?, Tensor::f_zeros(size, options)?]);
        let layers = (0..architecture.layers).map(layer).collect::<Result<_, TchError>>()?;
        Ok(Self { layers, rotations, capacity, len: 0 })
    }

    fn size(architecture: &Architecture, capacity: usize) -> [i64; 3] {
        [architecture.kv_heads.into(), capacity as i64, architecture.head_width.into()]
    }

    /// Whether a model of this architecture, element type and device made it, as far as can be told.
    pub(super) fn fits(&self, architecture: &Architecture, (kind, device): (Kind, Device)) -> bool {
        let size = Self::size(architecture, self.capacity);
        self.layers.len() == architecture.layers as usize
            && self.layers.iter().flatten().all(|x| x.size() == size && x.kind() == kind && x.device() == device)
    }

    /// Tokens computed.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was computed yet.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Most tokens it holds.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Forgets all tokens but the first `tokens`: benchmarks repeat a step, users edit a text.
    pub const fn truncate(&mut self, tokens: usize) {
        if tokens < self.len {
            self.len = tokens;
        }
    }

    pub(super) const fn advance(&mut self, tokens: usize) {
        self.len += tokens;
    }

    /// Rotations of the next tokens.
    pub(super) fn rotations(&self, tokens: usize) -> Result<Rotations, TchError> {
        self.rotations.narrow(self.len, tokens)
    }

    pub(super) fn layer(&self, number: u32, tokens: i64) -> Option<Places<'_>> {
        let past = self.len as i64;
        self.layers.get(number as usize).map(|layer| Places { layer, past, tokens })
    }
}

impl Places<'_> {
    /// Keeps keys and values `[kv_heads, tokens, head width]`; gives those of all tokens so far.
    pub(super) fn extend(&self, keys: &Tensor, values: &Tensor) -> Result<[Tensor; 2], TchError> {
        let (past, tokens) = (self.past, self.tokens);
        let [cached_keys, cached_values] = self.layer;
        cached_keys.f_narrow(1, past, tokens)?.f_copy_(keys)?;
        cached_values.f_narrow(1, past, tokens)?.f_copy_(values)?;
        Ok([cached_keys.f_narrow(1, 0, past + tokens)?, cached_values.f_narrow(1, 0, past + tokens)?])
    }
}
