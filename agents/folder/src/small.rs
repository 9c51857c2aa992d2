//! The small files of a model: they lie in its folder, or are made of what a GGUF file says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use tensorlink_model::gguf::MAGIC;

use super::{FolderError, Mapped, gguf, map};

/// Where small files come from.
#[derive(Debug)]
pub(super) enum Small {
    /// A folder, and files that it lacks and that were made of others of its own.
    Lying { folder: PathBuf, made: BTreeMap<&'static str, Vec<u8>> },
    /// A GGUF file, and the files that would say the same in a folder.
    Made { file: Mapped, files: BTreeMap<&'static str, Vec<u8>> },
}

impl Small {
    /// Those of what lies at a path.
    ///
    /// # Errors
    /// [`FolderError::Nothing`]; for a file also [`FolderError::Read`], `Gguf` and `Tokenizer`.
    pub(super) fn of(path: &Path) -> Result<Self, FolderError> {
        there(path)?;
        if !path.is_file() {
            return Ok(Self::Lying { folder: path.to_owned(), made: BTreeMap::new() });
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = map(path.parent().unwrap_or(Path::new("")), name)?;
        let files = gguf::files(&file.bytes).map_err(|error| error.at(path))?;
        Ok(Self::Made { file, files })
    }

    /// A file, if there is one.
    ///
    /// # Errors
    /// [`FolderError::Read`], [`FolderError::TooLarge`].
    pub(super) fn optional(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, FolderError> {
        match self {
            Self::Lying { folder, made } => {
                made.get(name).map_or_else(|| optional(folder, name, most), |made| Ok(Some(made.clone())))
            }
            Self::Made { files, .. } => Ok(files.get(name).cloned()),
        }
    }

    /// A file that every model has.
    ///
    /// # Errors
    /// [`FolderError::Absent`], and as [`optional`](Self::optional).
    pub(super) fn required(&self, name: &str, most: u64) -> Result<Vec<u8>, FolderError> {
        self.optional(name, most)?.ok_or_else(|| self.absent(name))
    }

    /// That a file is absent.
    pub(super) fn absent(&self, name: &str) -> FolderError {
        let folder = match self {
            Self::Lying { folder, .. } => folder.clone(),
            Self::Made { file, .. } => (&file.name).into(),
        };
        FolderError::Absent { folder, name: name.to_owned() }
    }

    /// The folder, if it is one.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Lying { folder, .. } => Some(folder),
            Self::Made { .. } => None,
        }
    }

    /// Whether there is a file of a folder.
    pub(super) fn has(&self, name: &str) -> bool {
        self.folder().is_some_and(|folder| folder.join(name).exists())
    }

    /// Takes a file that a folder lacks, from now on as if it had it.
    pub(super) fn complete(&mut self, name: &'static str, content: Vec<u8>) {
        match self {
            Self::Lying { made: files, .. } | Self::Made { files, .. } => drop(files.insert(name, content)),
        }
    }
}

/// Where a path leads, links followed.
///
/// # Errors
/// [`FolderError::Nothing`] if nothing is there, [`FolderError::Read`].
pub fn there(path: &Path) -> Result<PathBuf, FolderError> {
    path.canonicalize().map_err(|source| match source.kind() {
        ErrorKind::NotFound => FolderError::Nothing(path.to_owned()),
        _ => FolderError::Read { file: path.to_owned(), source },
    })
}

/// Whether a model may lie at a path: a folder, or a file that begins as GGUF files do.
pub fn may_be_model(path: &Path) -> bool {
    let begins = || {
        let mut beginning = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut beginning));
        read.is_ok() && beginning == MAGIC
    };
    path.is_dir() || begins()
}

/// A file of a folder.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<u8>, FolderError> {
    let failed = |source| FolderError::Read { file: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(FolderError::TooLarge { file: path.to_owned(), most });
    }
    Ok(bytes)
}

pub(super) fn optional(folder: &Path, name: &str, most: u64) -> Result<Option<Vec<u8>>, FolderError> {
    match read(&folder.join(name), most) {
        Err(FolderError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

pub(super) fn required(folder: &Path, name: &str, most: u64) -> Result<Vec<u8>, FolderError> {
    optional(folder, name, most)?
        .ok_or_else(|| FolderError::Absent { folder: folder.to_owned(), name: name.to_owned() })
}
