//! Names and shapes of an architecture's weights, and the weights themselves as floats.

use std::collections::BTreeMap;

use thiserror::Error;

use super::architecture::{Architecture, Dense, Norm, Output, Placement, Positions};

/// A parameter an architecture has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name, e.g. `layers.0.attention.query.weight`.
    pub name: String,
    /// Rows: outputs of a projection, words, places; 1 for a vector.
    pub rows: u32,
    /// Columns: inputs of a projection, length of a vector.
    pub columns: u32,
}

impl Parameter {
    /// As a tensor: of rank 1 for a vector.
    pub fn dims(&self) -> Vec<u32> {
        if self.rows == 1 { vec![self.columns] } else { vec![self.rows, self.columns] }
    }
}

/// A matrix of floats, row-major; a vector has one row.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    rows: u32,
    columns: u32,
    values: Vec<f32>,
}

impl Matrix {
    /// Takes `rows × columns` values; none if there are more or fewer.
    pub fn new(rows: u32, columns: u32, values: Vec<f32>) -> Option<Self> {
        let count = u64::from(rows).checked_mul(columns.into())?;
        (count > 0 && values.len() as u64 == count).then_some(Self { rows, columns, values })
    }

    /// Number of rows.
    pub const fn rows(&self) -> u32 {
        self.rows
    }

    /// Length of a row.
    pub const fn columns(&self) -> u32 {
        self.columns
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }
}

/// Why weights are not those of an architecture.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WeightsError {
    /// A parameter is absent; the folder holds another model, or not all of it.
    #[error(
        "{0} is missing: the folder's config.json and weights do not belong together, or a file was not downloaded"
    )]
    Missing(String),
    /// A parameter has another shape than the configuration says.
    #[error("{name} is {actual:?}, the configuration needs {expected:?}")]
    Shape {
        /// The parameter.
        name: String,
        /// Rows and columns that it has.
        actual: [u32; 2],
        /// Rows and columns that it should have.
        expected: [u32; 2],
    },
    /// A value is not finite; the file is damaged or the training diverged.
    #[error("{name}: element {element} is not a finite number")]
    NotFinite {
        /// The parameter.
        name: String,
        /// Row-major index of the first such element.
        element: usize,
    },
}

/// All parameters of an architecture, of the right shapes, all finite.
#[derive(Clone, PartialEq, Debug)]
pub struct Weights(BTreeMap<String, Matrix>);

impl Weights {
    /// Takes what the architecture needs out of `matrices`; what it does not need is dropped.
    ///
    /// # Errors
    /// [`WeightsError`] for the first parameter that is absent, of another shape or not finite.
    pub fn new(architecture: &Architecture, mut matrices: BTreeMap<String, Matrix>) -> Result<Self, WeightsError> {
        let mut taken = BTreeMap::new();
        for Parameter { name, rows, columns } in parameters(architecture) {
            let Some(matrix) = matrices.remove(&name) else { return Err(WeightsError::Missing(name)) };
            let (actual, expected) = ([matrix.rows, matrix.columns], [rows, columns]);
            if actual != expected {
                return Err(WeightsError::Shape { name, actual, expected });
            }
            if let Some(element) = matrix.values.iter().position(|x| !x.is_finite()) {
                return Err(WeightsError::NotFinite { name, element });
            }
            taken.insert(name, matrix);
        }
        Ok(Self(taken))
    }

    /// A parameter by its name.
    ///
    /// # Errors
    /// [`WeightsError::Missing`] for a name that is not one of [`parameters`].
    pub fn get(&self, name: &str) -> Result<&Matrix, WeightsError> {
        self.0.get(name).ok_or_else(|| WeightsError::Missing(name.to_owned()))
    }

    /// All parameters by name.
    pub fn into_matrices(self) -> BTreeMap<String, Matrix> {
        self.0
    }

    /// Every parameter with its name, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Matrix)> {
        self.0.iter().map(|(name, matrix)| (name.as_str(), matrix))
    }

    /// Number of weights.
    pub fn count(&self) -> u64 {
        self.0.values().map(|matrix| matrix.values.len() as u64).sum()
    }
}

/// Every parameter of an architecture, in the order of use.
///
/// | name | shape | where |
/// |---|---|---|
/// | `embedding.tokens` | vocabulary × width | always |
/// | `embedding.positions` | (first + context) × width | learned positions |
/// | `embedding.type` | width; 2 × width | token types; of pairs |
/// | `embedding.norm.{gain,bias}` | width | norms after |
/// | `layers.i.attention.norm.{gain,bias}`, `layers.i.mlp.norm.{gain,bias}` | width | always; bias with LayerNorm only |
/// | `layers.i.attention.output_norm.{gain,bias}`, `layers.i.mlp.output_norm.{gain,bias}` | width | norms around |
/// | `layers.i.attention.{query,key,value,output}.{weight,bias}` | outputs × inputs; outputs | bias where the architecture has it |
/// | `layers.i.attention.{query_norm,key_norm}.gain` | head width | query and key norms |
/// | `layers.i.mlp.{up,gate,down}.{weight,bias}` | outputs × inputs; outputs | gate where gated |
/// | `final.norm.{gain,bias}` | width | norms before, and around |
/// | `head.weight` | vocabulary × width | untied logits |
/// | `pooler.{weight,bias}`, `head.{weight,bias}` | width × width, classes × width; width, classes | classes |
/// | `dense.i.{weight,bias}` | outputs × inputs; outputs | dense layers; bias where the layer has it |
pub fn parameters(architecture: &Architecture) -> Vec<Parameter> {
    let a = architecture;
    let mut list = List { norm: a.norm, parameters: Vec::new() };
    list.matrix("embedding.tokens", a.vocabulary, a.width);
    if let Positions::Learned { first } = a.positions {
        list.matrix("embedding.positions", first.saturating_add(a.context), a.width);
    }
    if a.token_types {
        list.matrix("embedding.type", if a.pairs { 2 } else { 1 }, a.width);
    }
    if a.placement == Placement::After {
        list.norm("embedding.norm", a.width);
    }
    for layer in 0..a.layers {
        let attention = |part: &str| format!("layers.{layer}.attention.{part}");
        let mlp = |part: &str| format!("layers.{layer}.mlp.{part}");
        list.norm(&attention("norm"), a.width);
        list.projection(&attention("query"), a.query_width(), a.width, a.attention_bias);
        list.projection(&attention("key"), a.key_width(), a.width, a.attention_bias);
        list.projection(&attention("value"), a.key_width(), a.width, a.attention_bias);
        if a.query_key_norm {
            list.vector(&attention("query_norm.gain"), a.head_width);
            list.vector(&attention("key_norm.gain"), a.head_width);
        }
        list.projection(&attention("output"), a.width, a.query_width(), a.output_bias);
        if a.placement == Placement::Around {
            list.norm(&attention("output_norm"), a.width);
        }
        list.norm(&mlp("norm"), a.width);
        list.projection(&mlp("up"), a.hidden, a.width, a.mlp_bias);
        if a.gated {
            list.projection(&mlp("gate"), a.hidden, a.width, a.mlp_bias);
        }
        list.projection(&mlp("down"), a.width, a.hidden, a.mlp_bias);
        if a.placement == Placement::Around {
            list.norm(&mlp("output_norm"), a.width);
        }
    }
    if a.placement.before() {
        list.norm("final.norm", a.width);
    }
    if a.output == (Output::Logits { tied: false }) {
        list.matrix("head.weight", a.vocabulary, a.width);
    }
    let mut inputs = a.width;
    for (name, Dense { outputs, bias, .. }) in a.text_layers() {
        list.projection(&name, outputs, inputs, bias);
        inputs = outputs;
    }
    list.parameters
}

struct List {
    norm: Norm,
    parameters: Vec<Parameter>,
}

impl List {
    fn matrix(&mut self, name: &str, rows: u32, columns: u32) {
        self.parameters.push(Parameter { name: name.to_owned(), rows, columns });
    }

    fn vector(&mut self, name: &str, length: u32) {
        self.matrix(name, 1, length);
    }

    fn projection(&mut self, name: &str, outputs: u32, inputs: u32, bias: bool) {
        self.matrix(&format!("{name}.weight"), outputs, inputs);
        if bias {
            self.vector(&format!("{name}.bias"), outputs);
        }
    }

    fn norm(&mut self, name: &str, width: u32) {
        self.vector(&format!("{name}.gain"), width);
        if self.norm == Norm::Layer {
            self.vector(&format!("{name}.bias"), width);
        }
    }
}
