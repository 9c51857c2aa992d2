//! Telling an observer how large activations are, and how those that meet weights vary together.

use tch::{Kind, TchError, Tensor};
use tensorlink_graph::transformer::sites::BLOCK;

/// What is told of an activation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Seen<'a> {
    /// The largest magnitude of every channel (element of the last dimension), at each site.
    Largest(&'a [f32]),
    /// Sums over tokens of products of every two channels of a block of [`BLOCK`], `[blocks, BLOCK, BLOCK]`, zeros
    /// beyond the last channel; at sites that projections take.
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

    /// Tells the largest magnitudes of a tensor's channels.
    pub(super) fn see(&mut self, site: &str, x: &Tensor) -> Result<(), TchError> {
        if let Some(observer) = &mut self.0 {
            let channels = x.size().last().copied().unwrap_or(1);
            let largest = x.f_abs()?.f_reshape([-1, channels])?.f_amax([0i64], false)?;
            observer(site, Seen::Largest(&floats(&largest)?));
        }
        Ok(())
    }

    /// The same of what projections take, and how its channels vary together.
    pub(super) fn see_input(&mut self, site: &str, x: &Tensor) -> Result<(), TchError> {
        self.see(site, x)?;
        if let Some(observer) = &mut self.0 {
            let (channels, block) = (x.size().last().copied().unwrap_or(1), i64::from(BLOCK));
            let x = x.f_to_kind(Kind::Float)?.f_reshape([-1, channels])?;
            let rest = (-channels).rem_euclid(block);
            // [blocks, tokens, BLOCK]
            let x = x.f_constant_pad_nd([0, rest])?.f_reshape([x.size()[0], -1, block])?.f_transpose(0, 1)?;
            observer(site, Seen::Products(&floats(&x.f_transpose(1, 2)?.f_bmm(&x)?)?));
        }
        Ok(())
    }
}

fn floats(x: &Tensor) -> Result<Vec<f32>, TchError> {
    Vec::try_from(x.f_to_kind(Kind::Float)?.f_contiguous()?.f_view(-1)?)
}
