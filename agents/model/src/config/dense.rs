//! Dense layers after pooling, as sentence-transformers has them.

use serde::Deserialize;

use super::super::architecture::{Activation, Curve, Dense, Output};
use super::{ConfigError, Description, MAX_WIDTH};

/// Most dense layers.
const MOST: usize = 8;
/// What a layer takes and gives: a text's vector.
const VECTOR: &str = "sentence_embedding";

/// What of a layer's `config.json` matters here.
#[derive(Deserialize)]
struct Stated {
    in_features: u32,
    out_features: u32,
    bias: Option<bool>,
    /// The full name of a class.
    activation_function: Option<String>,
    module_input_name: Option<String>,
    module_output_name: Option<String>,
}

impl Description {
    /// The same with dense layers after pooling, of the names and contents of their `config.json`, in order.
    ///
    /// # Errors
    /// [`ConfigError::Dense`].
    pub fn with_dense(mut self, layers: &[(String, Vec<u8>)]) -> Result<Self, ConfigError> {
        for (number, (file, json)) in layers.iter().enumerate() {
            let refused = |reason: String| ConfigError::Dense { file: file.clone(), reason };
            if number >= MOST {
                return Err(refused(format!("more than {MOST} dense layers are not computed")));
            }
            if !matches!(self.architecture.output, Output::Embedding(_)) {
                return Err(refused("config.json describes a model that makes no vectors of texts".into()));
            }
            let layer = read(json, self.architecture.vector_width()).map_err(refused)?;
            self.architecture.dense.push(layer);
        }
        Ok(self)
    }
}

/// A layer that takes vectors of so many elements.
fn read(json: &[u8], width: u32) -> Result<Dense, String> {
    let stated: Stated =
        serde_json::from_slice(json).map_err(|error| format!("it cannot be read ({error}); download it again"))?;
    let (inputs, outputs) = (stated.in_features, stated.out_features);
    if inputs != width {
        return Err(format!("in_features is {inputs}, but what comes before gives {width}"));
    }
    if !(1..=MAX_WIDTH).contains(&outputs) {
        return Err(format!("out_features is {outputs}, supported is 1 to {MAX_WIDTH}"));
    }
    for (field, name) in
        [("module_input_name", stated.module_input_name), ("module_output_name", stated.module_output_name)]
    {
        if let Some(name) = name.filter(|name| name != VECTOR) {
            return Err(format!("{field} is {name}, supported is {VECTOR}"));
        }
    }
    // The class, whatever module it is in; without one it is a hyperbolic tangent.
    let class = stated.activation_function.as_deref().map_or("Tanh", |name| name.rsplit('.').next().unwrap_or(name));
    let curve = match class {
        "Identity" => Curve::Identity,
        "Tanh" => Curve::Tanh,
        "Sigmoid" => Curve::Sigmoid,
        "ReLU" => Curve::Gate(Activation::Relu),
        "GELU" => Curve::Gate(Activation::Gelu),
        "SiLU" => Curve::Gate(Activation::Silu),
        other => {
            let supported = "Identity, Tanh, Sigmoid, ReLU, GELU and SiLU";
            return Err(format!("activation_function is {other}, supported are {supported}"));
        }
    };
    Ok(Dense { outputs, bias: stated.bias.unwrap_or(true), curve })
}
