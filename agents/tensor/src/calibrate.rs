//! How large activations become: what static exponents are chosen by.

use tensorlink_graph::transformer::Magnitudes;

use crate::float::{FloatError, FloatModel};

/// Largest magnitudes at every site of a model over some texts, in token numbers: what
/// [`Quantized::new`](tensorlink_graph::transformer::Quantized::new) takes. A few dozen texts like those to come are enough;
/// exponents leave a margin of a factor of two, and what exceeds it saturates.
///
/// # Errors
/// Those of [`FloatModel::forward`].
pub fn calibrate<'a>(model: &FloatModel, texts: impl IntoIterator<Item = &'a [u32]>) -> Result<Magnitudes, FloatError> {
    let mut magnitudes = Magnitudes::default();
    for text in texts {
        model.forward(text, Some(&mut |site, channels| magnitudes.see(site, channels)))?;
    }
    Ok(magnitudes)
}
