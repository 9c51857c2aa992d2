//! Products with weights.

use tch::{Device, Kind, TchError, Tensor};

use super::watch::Watch;

/// Which of libtorch's matrix products a model multiplies by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Products {
    /// The one of `linear`: what programs on libtorch get. On x86 hosts, 32-bit products are MKL's, which are slow on
    /// some processors that are not Intel's.
    #[default]
    Linear,
    /// oneDNN's for 32-bit floats on the host and texts of at least 32 tokens; elsewhere as [`Self::Linear`].
    OneDnn,
}

/// Rows from which oneDNN's product was faster where it was measured; it spreads the weights anew in each call.
const ONEDNN_ROWS: i64 = 32;

/// A weight matrix with its bias.
#[derive(Debug)]
pub(super) struct Linear {
    /// `[outputs, inputs]`.
    weight: Tensor,
    bias: Option<Tensor>,
    onednn: bool,
}

impl Linear {
    pub(super) const fn new(weight: Tensor, bias: Option<Tensor>) -> Self {
        Self { weight, bias, onednn: false }
    }

    pub(super) fn set_products(&mut self, products: Products) {
        let suits = self.weight.device() == Device::Cpu && self.weight.kind() == Kind::Float;
        self.onednn = products == Products::OneDnn && suits;
    }

    /// Rows as it multiplies them.
    pub(super) fn in_kind(&self, x: &Tensor) -> Result<Tensor, TchError> {
        x.f_to_kind(self.weight.kind())
    }

    /// `x · weightᵀ + bias`.
    pub(super) fn forward(&self, x: &Tensor) -> Result<Tensor, TchError> {
        self.product(x, self.bias.as_ref())
    }

    /// `x · weightᵀ`.
    pub(super) fn unbiased(&self, x: &Tensor) -> Result<Tensor, TchError> {
        self.product(x, None)
    }

    /// A product and the bias, if there is one.
    pub(super) fn biased(&self, product: &Tensor) -> Result<Option<Tensor>, TchError> {
        self.bias.as_ref().map(|bias| product.f_add(bias)).transpose()
    }

    fn product(&self, x: &Tensor, bias: Option<&Tensor>) -> Result<Tensor, TchError> {
        if self.onednn && x.size2()?.0 >= ONEDNN_ROWS {
            let x = x.f_contiguous()?.f_to_mkldnn(None::<Kind>)?;
            x.f_mkldnn_linear(&self.weight, bias)?.f_to_dense(None::<Kind>, false)
        } else {
            x.f_linear(&self.weight, bias)
        }
    }
}

/// Projections of the same input, computed as one.
#[derive(Debug)]
pub(super) struct Projection {
    /// Site and outputs of each.
    pub(super) parts: Vec<(String, i64)>,
    pub(super) linear: Linear,
}

impl Projection {
    /// All outputs side by side.
    pub(super) fn forward(&self, x: &Tensor, watch: &mut Watch<'_>) -> Result<Tensor, TchError> {
        if !watch.on() {
            return self.linear.forward(x);
        }
        let product = self.linear.unbiased(x)?;
        let Some(sum) = self.linear.biased(&product)? else { return Ok(product) };
        for (number, (site, _)) in self.parts.iter().enumerate() {
            watch.see(&format!("{site}.unbiased"), &self.part(&product, number)?)?;
        }
        Ok(sum)
    }

    /// One projection's outputs, without a copy.
    pub(super) fn part(&self, outputs: &Tensor, number: usize) -> Result<Tensor, TchError> {
        let before = self.parts.iter().take(number).map(|(_, width)| width).sum();
        let width = self.parts.get(number).map_or(0, |(_, width)| *width);
        outputs.f_narrow(-1, before, width)
    }
}
