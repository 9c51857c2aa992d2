//! Telling an observer how large activations are.

use tch::{Kind, TchError, Tensor};

/// Whom [`FloatModel::forward`](super::FloatModel::forward) tells the largest magnitude of every channel (element of the last
/// dimension) at each site; none costs nothing.
pub type Observer<'a> = Option<&'a mut dyn FnMut(&str, &[f32])>;

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
            let largest = x.f_abs()?.f_reshape([-1, channels])?.f_amax([0i64], false)?.f_to_kind(Kind::Float)?;
            observer(site, &Vec::<f32>::try_from(largest.f_contiguous()?)?);
        }
        Ok(())
    }
}
