//! From the safetensors files of a Hugging Face folder to [`Weights`].
//!
//! | module | what lives there |
//! |---|---|
//! | here | files, their index, the tensor of each parameter, reading |
//! | `names` | what the files call parameters, how they lay them out |
//! | `decode` | floats out of bytes |
//! | `error` | why weights are refused |
//!
//! Files are given as bytes, best mapped into memory: besides them there is never more than the one copy that
//! [`Checkpoint::weights`] returns.

mod decode;
mod error;
mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde::Deserialize;

use self::decode::Window;
use self::names::{HEAD, Layout, Source};
use super::architecture::Architecture;
use super::parameters::{Matrix, Parameter, Weights, parameters};

pub use error::ImportError;

/// Name of the file that says which file holds which tensor.
pub const INDEX: &str = "model.safetensors.index.json";
/// Largest index in bytes.
const MAX_INDEX: usize = 1 << 24;
/// Most files of a model.
const MAX_FILES: usize = 1024;

/// A safetensors file.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name, for the index and for messages.
    pub name: &'a str,
    /// All its bytes.
    pub bytes: &'a [u8],
}

/// Reads all weights of an architecture; `index` is the content of [`INDEX`], if the folder has one.
///
/// # Errors
/// An [`ImportError`] that names the file and the tensor.
pub fn import(architecture: &Architecture, files: &[File<'_>], index: Option<&[u8]>) -> Result<Weights, ImportError> {
    Checkpoint::open(architecture, files, index)?.weights()
}

/// The files that an index names, in alphabetical order: plain names of safetensors files, never paths.
///
/// # Errors
/// [`ImportError::Index`].
pub fn indexed_files(index: &[u8]) -> Result<BTreeSet<String>, ImportError> {
    Ok(read_index(index)?.into_values().collect())
}

#[derive(Deserialize)]
struct RawIndex {
    weight_map: BTreeMap<String, String>,
}

/// File of each tensor.
fn read_index(index: &[u8]) -> Result<BTreeMap<String, String>, ImportError> {
    let refuse = |message: String| Err(ImportError::Index(message));
    if index.len() > MAX_INDEX {
        return refuse(format!("{} bytes, more than {MAX_INDEX}", index.len()));
    }
    let map = match serde_json::from_slice::<RawIndex>(index) {
        Ok(index) => index.weight_map,
        Err(error) => return refuse(error.to_string()),
    };
    let files: BTreeSet<&String> = map.values().collect();
    // INVARIANT: a name opens nothing outside the model's folder.
    if let Some(file) = files.iter().find(|file| file.contains(['/', '\\', '\0']) || !file.ends_with(".safetensors")) {
        return refuse(format!("`{file}` is not the name of a safetensors file in the folder"));
    }
    if files.is_empty() || files.len() > MAX_FILES {
        return refuse(format!("it names {} files, not 1 to {MAX_FILES}", files.len()));
    }
    Ok(map)
}

/// Files whose headers were read and in which every parameter of an architecture was found, of the right shape.
#[derive(Debug)]
pub struct Checkpoint<'a> {
    architecture: Architecture,
    located: Vec<Located<'a>>,
    /// Output weights beside a tied embedding, which must equal it.
    repeated: Option<Tensor<'a>>,
    idle: Vec<String>,
}

/// A parameter and the part of a tensor that holds it.
#[derive(Debug)]
struct Located<'a> {
    parameter: Parameter,
    tensor: Tensor<'a>,
    window: Window,
}

#[derive(Clone, Debug)]
struct Tensor<'a> {
    file: &'a str,
    name: String,
    view: TensorView<'a>,
}

impl<'a> Checkpoint<'a> {
    /// Reads the headers of all files and finds every parameter; touches no values.
    ///
    /// # Errors
    /// An [`ImportError`] that names the file and the tensor.
    pub fn open(architecture: &Architecture, files: &[File<'a>], index: Option<&[u8]>) -> Result<Self, ImportError> {
        let mut tensors = read_headers(files)?;
        if let Some(index) = index {
            check_index(index, files, &tensors)?;
        }
        let list = parameters(architecture);
        let sources: Vec<Option<Source>> =
            list.iter().map(|parameter| names::source(architecture.family, parameter)).collect();
        let prefix = prefix(architecture, sources.first().and_then(Option::as_ref), &tensors);
        let mut located = Vec::with_capacity(list.len());
        let mut used = BTreeSet::new();
        for (parameter, source) in list.into_iter().zip(sources) {
            let missing = |tensor: String| {
                let files: Vec<&str> = files.iter().map(|file| file.name).collect();
                let files = if files.is_empty() { "no file".into() } else { files.join(", ") };
                ImportError::Missing { tensor, files }
            };
            let Some(Source { names, layout }) = source else { return Err(missing(parameter.name)) };
            let full = |name: &String| if name == HEAD { name.clone() } else { format!("{prefix}{name}") };
            let Some(tensor) = names.iter().find_map(|name| tensors.get(&full(name))) else {
                return Err(missing(names.first().map(full).unwrap_or_default()));
            };
            let window = window(tensor, &parameter, layout)?;
            used.insert(tensor.name.clone());
            located.push(Located { parameter, tensor: tensor.clone(), window });
        }
        tensors.retain(|name, _| !used.contains(name));
        if let Some(tensor) = tensors.values().find(|tensor| !names::idle(architecture, prefix, &tensor.name)) {
            return Err(ImportError::Unknown { file: tensor.file.into(), tensor: tensor.name.clone() });
        }
        let repeated = tensors.get(HEAD).filter(|_| architecture.causal).cloned();
        let idle = tensors.into_keys().collect();
        Ok(Self { architecture: architecture.clone(), located, repeated, idle })
    }

    /// Tensors that the model does not compute with: buffers, poolers, heads of its training.
    pub fn idle(&self) -> &[String] {
        &self.idle
    }

    /// Types of the numbers that are read, e.g. `BF16`.
    pub fn dtypes(&self) -> BTreeSet<String> {
        self.located.iter().map(|located| format!("{:?}", located.tensor.view.dtype())).collect()
    }

    /// Reads all values.
    ///
    /// # Errors
    /// [`ImportError::NotFinite`], [`ImportError::Untied`].
    pub fn weights(&self) -> Result<Weights, ImportError> {
        if let (Some(head), Some(embedding)) = (&self.repeated, self.located.first()) {
            let other = &embedding.tensor.view;
            if head.view.dtype() != other.dtype() || head.view.data() != other.data() {
                return Err(ImportError::Untied { file: head.file.into(), tensor: head.name.clone() });
            }
        }
        let matrices = self.located.iter().map(Located::read).collect::<Result<BTreeMap<_, _>, _>>()?;
        Ok(Weights::new(&self.architecture, matrices)?)
    }
}

impl Located<'_> {
    fn read(&self) -> Result<(String, Matrix), ImportError> {
        let Tensor { file, name, view } = &self.tensor;
        let values = decode::floats(view.dtype(), view.data(), &self.window);
        if let Some((index, &value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            let element = self.window.flat(index) as u64;
            return Err(ImportError::NotFinite { file: (*file).into(), tensor: name.clone(), element, value });
        }
        let Parameter { name: ours, rows, columns } = &self.parameter;
        // INVARIANT: the window lies in the tensor, whose length its header fixes, so no value is missing.
        let matrix = Matrix::new(*rows, *columns, values).ok_or_else(|| ImportError::Syntax {
            file: (*file).into(),
            message: format!("`{name}` is shorter than its shape"),
        })?;
        Ok((ours.clone(), matrix))
    }
}

fn read_headers<'a>(files: &[File<'a>]) -> Result<BTreeMap<String, Tensor<'a>>, ImportError> {
    let mut tensors: BTreeMap<String, Tensor<'a>> = BTreeMap::new();
    for File { name: file, bytes } in files {
        let parsed = SafeTensors::deserialize(bytes)
            .map_err(|error| ImportError::Syntax { file: (*file).into(), message: error.to_string() })?;
        for (name, view) in parsed.tensors() {
            let tensor = Tensor { file, name: name.clone(), view };
            if let Some(other) = tensors.insert(name.clone(), tensor) {
                let (first, second) = (other.file.into(), (*file).into());
                return Err(ImportError::Twice { tensor: name, first, second });
            }
        }
    }
    Ok(tensors)
}

/// Checks that every tensor of the index is where it says.
fn check_index(index: &[u8], files: &[File<'_>], tensors: &BTreeMap<String, Tensor<'_>>) -> Result<(), ImportError> {
    for (tensor, file) in read_index(index)? {
        if !files.iter().any(|given| given.name == file) {
            return Err(ImportError::IndexFile { file, tensor });
        }
        if tensors.get(&tensor).is_none_or(|found| found.file != file) {
            return Err(ImportError::IndexTensor { file, tensor });
        }
    }
    Ok(())
}

/// The prefix under which the token embedding is found; that of the family if it is not.
fn prefix(
    architecture: &Architecture,
    embedding: Option<&Source>,
    tensors: &BTreeMap<String, Tensor<'_>>,
) -> &'static str {
    let [with, without] = names::prefixes(architecture.family);
    let bare = embedding.is_some_and(|source| source.names.iter().any(|name| tensors.contains_key(name)));
    if bare { without } else { with }
}

/// Where in its tensor a parameter lies, once type and shape are what they should be.
fn window(tensor: &Tensor<'_>, parameter: &Parameter, layout: Layout) -> Result<Window, ImportError> {
    let Tensor { file, name, view } = tensor;
    if !decode::known(view.dtype()) {
        let dtype = format!("{:?}", view.dtype());
        return Err(ImportError::Dtype { file: (*file).into(), tensor: name.clone(), dtype });
    }
    let (rows, columns) = (parameter.rows as usize, parameter.columns as usize);
    let parts = |count: u32, of: usize| of.saturating_mul(count as usize);
    let plain = Window { start: 0, row: columns, column: 1, rows, columns };
    let (fits, expected, window) = match layout {
        Layout::Vector => (view.shape() == [columns], format!("[{columns}]"), plain),
        Layout::Matrix => (view.shape() == [rows, columns], format!("[{rows}, {columns}]"), plain),
        Layout::FirstRows => {
            let fits = matches!(view.shape(), [has, width] if *has >= rows && *width == columns);
            (fits, format!("[{rows} or more, {columns}]"), plain)
        }
        Layout::Transposed { part, parts: count } => {
            let across = parts(count, rows);
            let window = Window { start: parts(part, rows), row: 1, column: across, rows, columns };
            (view.shape() == [columns, across], format!("[{columns}, {across}]"), window)
        }
        Layout::Segment { part, parts: count } => {
            let length = parts(count, columns);
            (view.shape() == [length], format!("[{length}]"), Window { start: parts(part, columns), ..plain })
        }
    };
    if fits {
        return Ok(window);
    }
    Err(ImportError::Shape { file: (*file).into(), tensor: name.clone(), actual: view.shape().to_vec(), expected })
}
