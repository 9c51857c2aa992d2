//! A decoder, or an encoder with classes, as Hugging Face's folders have it: the reverse of [`config`](super::config)
//! and [`import`](mod@super::import).
//!
//! | module | what lives there |
//! |---|---|
//! | here | weights as one safetensors file |
//! | [`config`](fn@config), [`classifier_config`] | the architecture as `config.json` |
//! | `words` | how values are written there |

mod config;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::collections::{BTreeMap, HashMap};

use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde::Serialize;
use thiserror::Error;

use super::architecture::Architecture;
use super::names;
use super::parameters::{Weights, WeightsError, parameters};

pub use config::{classes_of, classifier_config, config, text_alone};

/// Why a model cannot be written as Hugging Face has it.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ExportError {
    /// The family's configuration has no words for it.
    #[error(
        "no config.json of a {0} model describes this one: export a decoder of one of the families that are imported"
    )]
    Unsaid(String),
    /// The weights are those of another architecture.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The file's format cannot hold it.
    #[error("the weights cannot be written as safetensors: {0}")]
    Format(String),
}

/// A JSON file that people can read.
///
/// # Errors
/// [`ExportError::Format`].
pub fn json(value: &impl Serialize) -> Result<Vec<u8>, ExportError> {
    serde_json::to_vec_pretty(value).map_err(|error| ExportError::Format(error.to_string()))
}

/// A tensor that is being put together of one or more parameters.
pub(super) struct Gathered {
    pub(super) shape: Vec<usize>,
    /// Little-endian 32-bit floats, row-major.
    pub(super) bytes: Vec<u8>,
}

/// The weights of an architecture as the bytes of one safetensors file: 32-bit floats, tensors named and laid out as
/// the family's publisher has them.
///
/// # Errors
/// [`ExportError::Weights`] for those of another architecture, [`ExportError::Format`].
pub fn safetensors(architecture: &Architecture, weights: &Weights) -> Result<Vec<u8>, ExportError> {
    let prefix = names::prefix(architecture.family);
    let mut tensors: BTreeMap<String, Gathered> = BTreeMap::new();
    for parameter in parameters(architecture) {
        let matrix = weights.get(&parameter.name)?;
        let source = names::source(architecture.family, &parameter);
        let off = names::taken_off(architecture.family, &parameter.name);
        let (name, layout) = source
            .and_then(|source| Some((source.names.into_iter().next()?, source.layout)))
            .ok_or(WeightsError::Missing(parameter.name))?;
        let name = names::full(prefix, &name);
        let (shape, window) = layout.place(parameter.rows, parameter.columns);
        let tensor = tensors.entry(name).or_insert_with(|| {
            let bytes = vec![0; shape.iter().product::<usize>().saturating_mul(size_of::<f32>())];
            Gathered { shape, bytes }
        });
        let (places, _) = tensor.bytes.as_chunks_mut();
        for (index, value) in matrix.values().iter().enumerate() {
            // INVARIANT: a layout's window lies in its tensor.
            if let Some(place) = places.get_mut(window.flat(index)) {
                *place = (value - off).to_le_bytes();
            }
        }
    }
    file(&tensors)
}

/// The bytes of a safetensors file of these tensors.
pub(super) fn file(tensors: &BTreeMap<String, Gathered>) -> Result<Vec<u8>, ExportError> {
    let format = |error: safetensors::SafeTensorError| ExportError::Format(error.to_string());
    let views = tensors.iter().map(|(name, tensor)| {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), &tensor.bytes);
        view.map(|view| (name.as_str(), view)).map_err(format)
    });
    // Hugging Face's loaders ask which of their frameworks' layouts this is.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    safetensors::serialize(views.collect::<Result<Vec<_>, _>>()?, Some(metadata)).map_err(format)
}
