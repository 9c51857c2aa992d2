//! Initial weights from a safetensors file: tensors `layers.N.weight` (`[out, in]`) and `layers.N.bias` (`[out]`) for
//! every linear layer `N` from 0, the class layer included, in f32 or f64.

use safetensors::{Dtype, SafeTensors};
use thiserror::Error;

use super::{Linear, Network};

/// Largest magnitude of an imported weight; beyond it a 32-bit master weight would lose too many fraction bits.
pub const MAX_WEIGHT: f64 = 1024.0;

/// Floats of one linear layer.
#[derive(Clone, PartialEq, Debug)]
pub struct LayerWeights {
    /// `[out, in]`, row-major.
    pub weight: Vec<f64>,
    /// `[out]`.
    pub bias: Vec<f64>,
}

/// Why a weights file was refused.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum WeightsError {
    /// The bytes are not a safetensors file.
    #[error("{file} is not a safetensors file ({message}); export the weights again")]
    Syntax {
        /// The weights file.
        file: String,
        /// What the parser says.
        message: String,
    },
    /// A tensor that the model needs is not in the file.
    #[error("{file} lacks tensor `{tensor}`; the model file describes a layer that was not exported")]
    Missing {
        /// The weights file.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// The file holds a tensor that the model has no layer for.
    #[error("{file} holds tensor `{tensor}`, which no layer of the model uses; add the layer or remove the tensor")]
    Unknown {
        /// The weights file.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// A tensor of another shape than its layer.
    #[error("{file}: `{tensor}` is {actual:?}, the layer needs {expected:?}; change the layer or export again")]
    Shape {
        /// The weights file.
        file: String,
        /// The tensor.
        tensor: String,
        /// What the layer needs.
        expected: Vec<usize>,
        /// What the file holds.
        actual: Vec<usize>,
    },
    /// A tensor of another type than f32 or f64.
    #[error("{file}: `{tensor}` holds {dtype}; convert it to F32 or F64")]
    Dtype {
        /// The weights file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Its type.
        dtype: String,
    },
    /// NaN, an infinity or a magnitude beyond [`MAX_WEIGHT`].
    #[error("{file}: `{tensor}`[{index}] is {value}; every weight must be finite and within ±{MAX_WEIGHT}")]
    Value {
        /// The weights file.
        file: String,
        /// The tensor.
        tensor: String,
        /// Row-major index.
        index: usize,
        /// The value.
        value: f64,
    },
}

/// Reads the weights of a network; `file` is the file's name, for messages.
///
/// # Errors
/// A [`WeightsError`] that names the file and the tensor.
pub fn import(file: &str, bytes: &[u8], network: &Network) -> Result<Vec<LayerWeights>, WeightsError> {
    let tensors = SafeTensors::deserialize(bytes)
        .map_err(|error| WeightsError::Syntax { file: file.into(), message: error.to_string() })?;
    let count = network.layers.len();
    let expected =
        |name: &str| (0..count).any(|n| name == format!("layers.{n}.weight") || name == format!("layers.{n}.bias"));
    if let Some(tensor) = tensors.names().into_iter().find(|name| !expected(name)) {
        return Err(WeightsError::Unknown { file: file.into(), tensor: tensor.to_owned() });
    }
    let layer = |(n, layer): (usize, &Linear)| {
        let (input, output) = (layer.input as usize, layer.output as usize);
        Ok(LayerWeights {
            weight: floats(file, &tensors, format!("layers.{n}.weight"), &[output, input])?,
            bias: floats(file, &tensors, format!("layers.{n}.bias"), &[output])?,
        })
    };
    network.layers.iter().enumerate().map(layer).collect()
}

/// One tensor as floats, checked.
fn floats(file: &str, tensors: &SafeTensors<'_>, tensor: String, shape: &[usize]) -> Result<Vec<f64>, WeightsError> {
    let file = || file.to_owned();
    let Ok(view) = tensors.tensor(&tensor) else {
        return Err(WeightsError::Missing { file: file(), tensor });
    };
    if view.shape() != shape {
        let actual = view.shape().to_vec();
        return Err(WeightsError::Shape { file: file(), tensor, expected: shape.to_vec(), actual });
    }
    let values: Vec<f64> = match view.dtype() {
        Dtype::F32 => {
            let chunks = view.data().chunks_exact(4);
            chunks.filter_map(|c| c.try_into().ok().map(f32::from_le_bytes)).map(f64::from).collect()
        }
        Dtype::F64 => view.data().chunks_exact(8).filter_map(|c| c.try_into().ok().map(f64::from_le_bytes)).collect(),
        other => return Err(WeightsError::Dtype { file: file(), tensor, dtype: format!("{other:?}") }),
    };
    let bad = values.iter().enumerate().find(|(_, v)| !v.is_finite() || v.abs() > MAX_WEIGHT);
    match bad {
        Some((index, &value)) => Err(WeightsError::Value { file: file(), tensor, index, value }),
        None => Ok(values),
    }
}
