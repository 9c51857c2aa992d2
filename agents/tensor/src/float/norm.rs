//! Norms over rows.

use tch::{TchError, Tensor};
use tensorlink_model::Norm;

use super::watch::Watch;

/// A norm over rows.
#[derive(Debug)]
pub(super) struct RowNorm {
    pub(super) site: String,
    pub(super) norm: Norm,
    pub(super) gain: Tensor,
    pub(super) bias: Option<Tensor>,
    pub(super) epsilon: f64,
}

impl RowNorm {
    pub(super) fn forward(&self, x: &Tensor, watch: &mut Watch<'_>) -> Result<Tensor, TchError> {
        let (size, gain) = (self.gain.size(), Some(&self.gain));
        let y = match self.norm {
            Norm::Layer => x.f_layer_norm(&size, gain, self.bias.as_ref(), self.epsilon, true)?,
            Norm::Rms => x.f_rms_norm(&size, gain, self.epsilon)?,
        };
        watch.see_input(&self.site, &y)?;
        Ok(y)
    }
}
