//! The tensor of each parameter, and the part of it that the parameter is.

use std::collections::BTreeMap;

use super::super::architecture::Architecture;
use super::super::gguf;
use super::super::layout::{Layout, Window};
use super::super::names::{self, Source};
use super::super::parameters::{Matrix, Parameter, parameters};
use super::decode::{self, Dtype};
use super::{File, ImportError};

/// A tensor of a file.
#[derive(Clone, Debug)]
pub(super) struct Tensor<'a> {
    pub(super) file: &'a str,
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: Dtype,
    pub(super) data: &'a [u8],
}

/// Whose names and layouts the files of a model have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Convention {
    HuggingFace,
    Gguf,
}

impl Convention {
    /// The name of the output weights.
    pub(super) const fn head(self) -> &'static str {
        match self {
            Self::HuggingFace => names::HEAD,
            Self::Gguf => gguf::names::HEAD,
        }
    }

    fn source(self, architecture: &Architecture, parameter: &Parameter) -> Option<Source> {
        match self {
            Self::HuggingFace => names::source(architecture.family, parameter),
            Self::Gguf => gguf::names::source(architecture, parameter),
        }
    }

    /// What the files take off a parameter; llama.cpp's converter has added it.
    fn taken_off(self, architecture: &Architecture, parameter: &Parameter) -> f32 {
        match self {
            Self::HuggingFace => names::taken_off(architecture.family, &parameter.name),
            Self::Gguf => 0.0,
        }
    }

    /// What all names begin with.
    fn prefix(
        self,
        architecture: &Architecture,
        embedding: Option<&Source>,
        tensors: &BTreeMap<String, Tensor<'_>>,
    ) -> &'static str {
        match self {
            Self::HuggingFace => prefix(architecture, embedding, tensors),
            Self::Gguf => "",
        }
    }

    fn idle(self, architecture: &Architecture, prefix: &str, tensor: &str) -> bool {
        match self {
            Self::HuggingFace => names::idle(architecture, prefix, tensor),
            Self::Gguf => gguf::names::idle(architecture, tensor),
        }
    }
}

/// A parameter and the part of a tensor that holds it.
#[derive(Debug)]
pub(super) struct Located<'a> {
    pub(super) parameter: Parameter,
    pub(super) tensor: Tensor<'a>,
    window: Window,
    /// What is added to every value.
    added: f32,
}

/// What was found of an architecture's parameters.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    /// Parameters in the order of use.
    pub(super) located: Vec<Located<'a>>,
    /// Tensors known to play no part, by name.
    pub(super) idle: BTreeMap<String, Tensor<'a>>,
    /// Tensors that are missing, wrong or unknown.
    pub(super) problems: Vec<ImportError>,
}

/// Finds every parameter of an architecture among the tensors of some files.
pub(super) fn locate<'a>(
    architecture: &Architecture,
    files: &[File<'_>],
    convention: Convention,
    mut tensors: BTreeMap<String, Tensor<'a>>,
) -> Found<'a> {
    let list = parameters(architecture);
    let sources: Vec<Option<Source>> =
        list.iter().map(|parameter| convention.source(architecture, parameter)).collect();
    let prefix = convention.prefix(architecture, sources.first().and_then(Option::as_ref), &tensors);
    let searched = if files.is_empty() {
        "no file".to_owned()
    } else {
        files.iter().map(|file| file.name).collect::<Vec<_>>().join(", ")
    };
    let mut found = Found::default();
    let mut used = Vec::new();
    for (parameter, source) in list.into_iter().zip(sources) {
        let full = |name: &String| names::full(prefix, name);
        let names = source.as_ref().map_or(&[][..], |source| &source.names);
        let place = names.iter().find_map(|name| tensors.get(&full(name))).zip(source.as_ref());
        let window = match place {
            Some((tensor, source)) => {
                used.push(tensor.name.clone());
                window(tensor, &parameter, source.layout).map(|window| (tensor, window))
            }
            None => {
                let tensor = names.first().map_or_else(|| parameter.name.clone(), full);
                Err(ImportError::Missing { tensor, files: searched.clone() })
            }
        };
        match window {
            Ok((tensor, window)) => {
                let added = convention.taken_off(architecture, &parameter);
                found.located.push(Located { parameter, tensor: tensor.clone(), window, added });
            }
            // Several parameters may share a tensor.
            Err(problem) if found.problems.contains(&problem) => {}
            Err(problem) => found.problems.push(problem),
        }
    }
    for name in used {
        tensors.remove(&name);
    }
    for (name, tensor) in tensors {
        if convention.idle(architecture, prefix, &name) {
            found.idle.insert(name, tensor);
        } else {
            found.problems.push(ImportError::Unknown { file: tensor.file.into(), tensor: name });
        }
    }
    found
}

impl Located<'_> {
    /// Reads the parameter's values.
    pub(super) fn read(&self) -> Result<(String, Matrix), ImportError> {
        let Tensor { file, name, dtype, data, .. } = &self.tensor;
        let values = decode::floats(*dtype, data, &self.window);
        if let Some((index, &value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            let element = self.window.flat(index) as u64;
            return Err(ImportError::NotFinite { file: (*file).into(), tensor: name.clone(), element, value });
        }
        let values = if self.added == 0.0 { values } else { values.into_iter().map(|x| x + self.added).collect() };
        let Parameter { name: ours, rows, columns } = &self.parameter;
        // INVARIANT: the window lies in the tensor, whose length its header fixes, so no value is missing.
        let matrix = Matrix::new(*rows, *columns, values).ok_or_else(|| ImportError::Syntax {
            file: (*file).into(),
            message: format!("`{name}` is shorter than its shape"),
        })?;
        Ok((ours.clone(), matrix))
    }
}

/// The prefix under which the token embedding is found; that of the family if it is not.
fn prefix(
    architecture: &Architecture,
    embedding: Option<&Source>,
    tensors: &BTreeMap<String, Tensor<'_>>,
) -> &'static str {
    let found = |prefix: &&'static str| {
        let has = |name: &String| tensors.contains_key(&names::full(prefix, name));
        embedding.is_some_and(|source| source.names.iter().any(has))
    };
    let mut prefixes = architecture.family.manner().prefixes.iter().copied();
    prefixes.find(found).unwrap_or_else(|| names::prefix(architecture.family))
}

/// Where in its tensor a parameter lies, once type and shape are what they should be.
fn window(tensor: &Tensor<'_>, parameter: &Parameter, layout: Layout) -> Result<Window, ImportError> {
    let Tensor { file, name, shape: has, dtype, .. } = tensor;
    if let Dtype::Other(_) = dtype {
        let dtype = dtype.to_string();
        return Err(ImportError::Dtype { file: (*file).into(), tensor: name.clone(), dtype });
    }
    let (shape, window) = layout.place(parameter.rows, parameter.columns);
    let (fits, expected) = match (layout, has.as_slice(), shape.as_slice()) {
        (Layout::FirstRows, [has, width], [rows, columns]) => {
            (has >= rows && width == columns, format!("[{rows} or more, {columns}]"))
        }
        (_, has, needed) => (has == needed, format!("{needed:?}")),
    };
    if fits {
        return Ok(window);
    }
    Err(ImportError::Shape { file: (*file).into(), tensor: name.clone(), actual: has.clone(), expected })
}
