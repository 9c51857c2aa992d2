//! Attention between queries, keys and values.

use tch::{Kind, TchError, Tensor};

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

impl Heads {
    /// Queries and keys out of both side by side, `[tokens, heads + kv_heads, width]`, without a copy.
    pub(super) fn parted(&self, both: &Tensor) -> Result<[Tensor; 2], TchError> {
        Ok([both.f_narrow(1, 0, self.heads)?, both.f_narrow(1, self.heads, self.kv_heads)?])
    }

    /// Mean of the values that each query attends to; `query` is `[heads, tokens, width]`, `key` and `value` are
    /// `[kv_heads, places, width]`; gives `[tokens, heads · width]`.
    pub(super) fn mix(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<Tensor, TchError> {
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
    pub(super) fn scores(&self, query: &Tensor, key: &Tensor) -> Result<Tensor, TchError> {
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
