//! How large activations become, and how they vary together: what exponents are chosen and weights are rounded by.

use tensorlink_model::Magnitudes;

use crate::float::{FloatError, FloatModel, Seen};

/// What [`Quantized::new`](tensorlink_model::Quantized::new) takes, seen at every site of a model over
/// some texts, in token numbers. A few dozen texts like those to come are enough; exponents leave a margin of a factor
/// of two, and what exceeds it saturates.
///
/// # Errors
/// Those of [`FloatModel::forward`].
pub fn calibrate<'a>(model: &FloatModel, texts: impl IntoIterator<Item = &'a [u32]>) -> Result<Magnitudes, FloatError> {
    let mut magnitudes = Magnitudes::default();
    for text in texts {
        let mut observe = |site: &str, seen: Seen<'_>| match seen {
            Seen::Largest(largest) => magnitudes.see(site, largest),
            Seen::Products(products) => magnitudes.see_products(site, products),
        };
        model.forward(text, Some(&mut observe))?;
    }
    Ok(magnitudes)
}
