//! Telling an observer how large activations are.

use tch::{TchError, Tensor};

/// Whom [`FloatModel::forward`](super::FloatModel::forward) tells the largest magnitude at each site; none costs nothing.
pub type Observer<'a> = Option<&'a mut dyn FnMut(&str, f64)>;

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
            observer(site, x.f_abs()?.f_max()?.f_double_value(&[])?);
        }
        Ok(())
    }
}
