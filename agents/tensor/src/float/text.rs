//! What is given of a whole text: one vector of its tokens', what dense layers make of it.

use tch::{Kind, TchError, Tensor};
use tensorlink_model::{Curve, Pooling};

use super::layer::activate;
use super::product::Projection;
use super::watch::Watch;

/// One vector of the tokens', `[1, width]`, as 32-bit floats.
pub(super) fn pool(x: &Tensor, pooling: Pooling) -> Result<Tensor, TchError> {
    let tokens = x.size().first().copied().unwrap_or(0);
    let vector = match pooling {
        Pooling::Mean => x.f_mean_dim(0, true, Kind::Float)?,
        Pooling::First => x.f_narrow(0, 0, 1)?,
        Pooling::Last => x.f_narrow(0, -1, 1)?,
        Pooling::Max => x.f_amax([0], true)?,
        Pooling::WeightedMean => {
            let weights = Tensor::f_arange_start(1, tokens.saturating_add(1), (Kind::Float, x.device()))?;
            let weighted = x.f_to_kind(Kind::Float)?.f_mul(&weights.f_unsqueeze(1)?)?;
            weighted.f_sum_dim_intlist(0, true, Kind::Float)?.f_div(&weights.f_sum(Kind::Float)?)?
        }
        Pooling::RootMean => x.f_sum_dim_intlist(0, true, Kind::Float)?.f_div_scalar((tokens as f64).sqrt())?,
    };
    vector.f_to_kind(Kind::Float)
}

/// A vector at the length of 1.
pub(super) fn unit(vector: &Tensor) -> Result<Tensor, TchError> {
    vector.f_div(&vector.f_norm()?.f_clamp_min(1e-12)?)
}

/// A layer that a text's vector goes through.
#[derive(Debug)]
pub(super) struct TextLayer {
    pub(super) site: String,
    pub(super) projection: Projection,
    pub(super) curve: Curve,
}

impl TextLayer {
    /// `[1, inputs]` to `[1, outputs]`.
    pub(super) fn forward(&self, x: &Tensor, watch: &mut Watch<'_>) -> Result<Tensor, TchError> {
        let site = |part: &str| format!("{}.{part}", self.site);
        let x = self.projection.linear.in_kind(x)?;
        watch.see_input(&site("input"), &x)?;
        let mut y = self.projection.forward(&x, watch)?;
        watch.see(&self.site, &y)?;
        match self.curve {
            Curve::Identity => Ok(y),
            Curve::Tanh => y.f_tanh(),
            Curve::Sigmoid => y.f_sigmoid(),
            Curve::Gate(activation) => {
                let y = activate(activation, &mut y)?;
                watch.see(&site("activated"), &y)?;
                Ok(y)
            }
        }
    }
}
