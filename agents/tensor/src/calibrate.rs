//! How large activations become: what static exponents are chosen by.

use std::collections::BTreeMap;

use crate::float::{FloatError, FloatModel};

/// Largest magnitude at every site of a model over some texts, in token numbers: what
/// [`Quantized::new`](tensorlink_graph::transformer::Quantized::new) takes. A few dozen texts like those to come are enough;
/// exponents leave a margin of a factor of two, and what exceeds it saturates.
///
/// # Errors
/// Those of [`FloatModel::forward`].
pub fn calibrate<'a>(
    model: &FloatModel,
    texts: impl IntoIterator<Item = &'a [u32]>,
) -> Result<BTreeMap<String, f64>, FloatError> {
    let mut largest: BTreeMap<String, f64> = BTreeMap::new();
    for text in texts {
        let mut see = |site: &str, magnitude: f64| match largest.get_mut(site) {
            Some(most) => *most = most.max(magnitude),
            None => drop(largest.insert(site.to_owned(), magnitude)),
        };
        model.forward(text, Some(&mut see))?;
    }
    Ok(largest)
}
