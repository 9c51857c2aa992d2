//! Telling an observer how large activations are, and how those that meet weights vary together.

use tch::{Kind, TchError, Tensor};
use tensorlink_model::sites::Blocks;

/// What is told of an activation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Seen<'a> {
    /// The largest magnitude, at each site.
    Largest(f32),
    /// Sums over tokens of products of every two channels of a block, `[count, length, length]` of [`Blocks::of`] the
    /// channels, zeros beyond the last channel; at sites that projections take.
    Products(&'a [f32]),
}

/// Whom [`FloatModel::forward`](super::FloatModel::forward) tells of activations, by site; none costs nothing.
pub type Observer<'a> = Option<&'a mut dyn FnMut(&str, Seen<'_>)>;

/// An observer during one pass.
pub(super) struct Watch<'a>(Observer<'a>);

impl<'a> Watch<'a> {
    pub(super) const fn new(observer: Observer<'a>) -> Self {
        Self(observer)
    }

    /// Whether anyone observes, and intermediate results that a fast pass skips are wanted.
    pub(super) const fn on(&self) -> bool {
        self.0.is_some()
    }

    /// Tells the largest magnitude of a tensor.
    pub(super) fn see(&mut self, site: &str, x: &Tensor) -> Result<(), TchError> {
        if let Some(observer) = &mut self.0 {
            let largest = f64::try_from(x.f_abs()?.f_max()?)?;
            observer(site, Seen::Largest(largest as f32));
        }
        Ok(())
    }

    /// The same of what projections take, and how its channels vary together.
    pub(super) fn see_input(&mut self, site: &str, x: &Tensor) -> Result<(), TchError> {
        self.see(site, x)?;
        if let Some(observer) = &mut self.0 {
            let channels = x.size().last().copied().unwrap_or(1);
            let x = x.f_to_kind(Kind::Float)?.f_reshape([-1, channels])?;
            let Blocks { count, length } = Blocks::of(u32::try_from(channels).unwrap_or(u32::MAX));
            let (count, length) = (i64::from(count), i64::from(length));
            // [count, tokens, length]
            let x = x.f_constant_pad_nd([0, count * length - channels])?;
            let x = x.f_reshape([x.size()[0], count, length])?.f_transpose(0, 1)?;
            observer(site, Seen::Products(&floats(&x.f_transpose(1, 2)?.f_bmm(&x)?)?));
        }
        Ok(())
    }
}

fn floats(x: &Tensor) -> Result<Vec<f32>, TchError> {
    Vec::try_from(x.f_to_kind(Kind::Float)?.f_contiguous()?.f_view(-1)?)
}
