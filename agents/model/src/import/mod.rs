//! From the safetensors files of a Hugging Face folder, or a GGUF file, to [`Weights`].
//!
//! | module | what lives there |
//! |---|---|
//! | here | files, their index, reading |
//! | `locate` | the tensor of each parameter |
//! | `decode` | floats out of bytes |
//! | `error` | why weights are refused |
//!
//! Files are given as bytes, best mapped into memory: besides them there is never more than the one copy that
//! [`Checkpoint::weights`] returns.

pub(super) mod decode;
mod error;
mod locate;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use safetensors::SafeTensors;
use serde::Deserialize;

use self::locate::{Convention, Found, Located, Tensor, locate};
use super::architecture::{Architecture, Output};
use super::gguf::{self, Gguf};
use super::names::DENSE;
use super::parameters::Weights;

pub use error::ImportError;

/// Name of the file that says which file holds which tensor.
pub const INDEX: &str = "model.safetensors.index.json";
/// Largest index in bytes.
const MAX_INDEX: usize = 1 << 24;
/// Most files of a model.
const MAX_FILES: usize = 1024;

/// A safetensors file, or a GGUF file, which is known by its beginning.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name, for the index and for messages.
    pub name: &'a str,
    /// All its bytes.
    pub bytes: &'a [u8],
    /// Of the dense layers after pooling, the one whose weights it holds and nothing else.
    pub dense: Option<u32>,
}

impl<'a> File<'a> {
    /// One of the files of the model itself.
    pub const fn new(name: &'a str, bytes: &'a [u8]) -> Self {
        Self { name, bytes, dense: None }
    }
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

impl<'a> Checkpoint<'a> {
    /// Reads the headers of all files and finds every parameter; touches no values.
    ///
    /// # Errors
    /// An [`ImportError`] that names the file and the tensor.
    pub fn open(architecture: &Architecture, files: &[File<'a>], index: Option<&[u8]>) -> Result<Self, ImportError> {
        let (checkpoint, problems) = Self::examine(architecture, files, index)?;
        problems.into_iter().next().map_or(Ok(checkpoint), Err)
    }

    /// As [`Self::open`], but goes on after the first tensor that is wrong: what was found, and all that is wrong with
    /// the others. Only a checkpoint without problems has [`weights`](Self::weights).
    ///
    /// # Errors
    /// An [`ImportError`] for files or an index that cannot be read at all.
    pub fn examine(
        architecture: &Architecture,
        files: &[File<'a>],
        index: Option<&[u8]>,
    ) -> Result<(Self, Vec<ImportError>), ImportError> {
        let (convention, tensors) = read_headers(files)?;
        if let Some(index) = index {
            check_index(index, files, &tensors)?;
        }
        let Found { located, idle, problems } = locate(architecture, files, convention, tensors);
        let is_head = |name: &str| name.strip_suffix(convention.head()).is_some_and(|within| !within.ends_with('_'));
        let gives_logits = matches!(architecture.output, Output::Logits { .. });
        let mut heads = idle.iter().filter(|(name, _)| gives_logits && is_head(name));
        let repeated = heads.next().map(|(_, head)| head.clone());
        let idle = idle.into_keys().collect();
        Ok((Self { architecture: architecture.clone(), located, repeated, idle }, problems))
    }

    /// Reads the values of every tensor that was found and keeps none: all that is wrong with them.
    pub fn faults(&self) -> Vec<ImportError> {
        let mut faults: Vec<ImportError> = self.located.iter().filter_map(|located| located.read().err()).collect();
        faults.extend(self.tie().err());
        faults
    }

    /// Tensors that the model does not compute with: buffers, poolers, heads of its training.
    pub fn idle(&self) -> &[String] {
        &self.idle
    }

    /// Types of the numbers that are read, e.g. `BF16`.
    pub fn dtypes(&self) -> BTreeSet<String> {
        self.located.iter().map(|located| located.tensor.dtype.to_string()).collect()
    }

    /// Reads all values.
    ///
    /// # Errors
    /// [`ImportError::NotFinite`], [`ImportError::Untied`].
    pub fn weights(&self) -> Result<Weights, ImportError> {
        self.tie()?;
        let matrices = self.located.iter().map(Located::read).collect::<Result<BTreeMap<_, _>, _>>()?;
        Ok(Weights::new(&self.architecture, matrices)?)
    }

    /// Checks that output weights beside a tied embedding equal it.
    fn tie(&self) -> Result<(), ImportError> {
        let embedding = self.located.iter().find(|located| located.parameter.name == "embedding.tokens");
        if let (Some(head), Some(embedding)) = (&self.repeated, embedding) {
            let other = &embedding.tensor;
            if head.dtype != other.dtype || head.data != other.data {
                return Err(ImportError::Untied { file: head.file.into(), tensor: head.name.clone() });
            }
        }
        Ok(())
    }
}

/// All tensors by name, and whose names they are: a GGUF file is a model for itself.
fn read_headers<'a>(files: &[File<'a>]) -> Result<(Convention, BTreeMap<String, Tensor<'a>>), ImportError> {
    if let [File { name, bytes, .. }] = files
        && gguf::begins(bytes)
    {
        return Ok((Convention::Gguf, read_gguf(name, bytes)?));
    }
    let mut tensors: BTreeMap<String, Tensor<'a>> = BTreeMap::new();
    for File { name: file, bytes, dense } in files {
        let parsed = SafeTensors::deserialize(bytes)
            .map_err(|error| ImportError::Syntax { file: (*file).into(), message: error.to_string() })?;
        for (name, view) in parsed.tensors() {
            let name = dense.map_or(name.clone(), |number| format!("{DENSE}{number}.{name}"));
            let (shape, dtype) = (view.shape().to_vec(), view.dtype().into());
            let tensor = Tensor { file, name: name.clone(), shape, dtype, data: view.data() };
            if let Some(other) = tensors.insert(name.clone(), tensor) {
                let (first, second) = (other.file.into(), (*file).into());
                return Err(ImportError::Twice { tensor: name, first, second });
            }
        }
    }
    Ok((Convention::HuggingFace, tensors))
}

fn read_gguf<'a>(file: &'a str, bytes: &'a [u8]) -> Result<BTreeMap<String, Tensor<'a>>, ImportError> {
    let parsed = Gguf::parse(bytes).map_err(|source| ImportError::Gguf { file: file.into(), source })?;
    let tensor = |(name, stored): (&str, gguf::Stored<'a>)| {
        let (name, gguf::Stored { shape, dtype, data }) = (name.to_owned(), stored);
        (name.clone(), Tensor { file, name, shape, dtype, data })
    };
    Ok(parsed.tensors.into_iter().map(tensor).collect())
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
