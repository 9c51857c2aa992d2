//! A model folder as Hugging Face has it: `config.json`, safetensors with or without index, `tokenizer.json`. Or as
//! `tensorlink model quantize` makes it of one: with integers instead of safetensors. Or a GGUF file, which says all
//! that a folder says.
//!
//! | module | what lives there |
//! |---|---|
//! | here | opening a folder, its files mapped into memory |
//! | `small` | all its files but the weights |
//! | `gguf` | the same files made of a GGUF file |
//! | [`tokenizer`] | text to tokens and back |
//! | [`sentences`] | texts that vectors are made of, as sentence-transformers reads them |
//! | `modules` | the parts that sentence-transformers puts one after another |
//! | [`pairs`] | pairs of texts that are scored, as its cross encoders read them; what a model's numbers mean |
//! | [`template`] | conversations in the model's own form |
//! | `ends` | the tokens that end a text |
//! | [`integers`], [`distance`] | a quantised model in its folder; how far it is from its floats |
//! | [`comparison`], [`tolerance`] | measuring that; how much of it is too much |
//! | [`texts`] | texts to calibrate a folder's model on, and others to measure it on |
//! | [`survey`] | all that is wrong with a folder |
//! | [`trained`], [`classifier`] | a decoder, or an encoder with classes, that was trained here, as a new folder |
//! | [`tuned`] | a model of a folder that was trained on here, as a new folder; adapters to it |
//! | `vocabulary` | the tokenizer of a folder that lacks its file |
//! | `sentencepiece` | that of SentencePiece's file |
//! | `characters` | its table of characters |
//! | `byte_pairs` | that of lists of tokens and pairs |
//! | `special` | what a folder says of special tokens beside these |
//! | `unfinished` | new folders: whole, or not at all |
//! | `fixture` | tiny folders on disk, for tests (feature `fixture`) |
//!
//! A model of characters becomes a folder, and is read back:
//!
//! ```
//! use tensorlink_folder::{ModelFolder, Trained};
//! use tensorlink_model::random::{Dimensions, llama, weights};
//!
//! let size = Dimensions { vocabulary: 3, width: 16, layers: 1, heads: 2, kv_heads: 1, hidden: 24, context: 8 };
//! let (architecture, characters) = (llama(size), ["a", "b", " "].map(String::from));
//! let weights = weights(&architecture, 1)?;
//! let parent = tempfile::tempdir()?;
//! let out = parent.path().join("model");
//! let texts = ["a b".to_owned()];
//! Trained { architecture: &architecture, weights: &weights, characters: &characters, texts: &texts }.write(&out)?;
//!
//! let folder = ModelFolder::open(&out)?;
//! assert!(folder.architecture() == &architecture && folder.weights()? == weights);
//! assert_eq!(folder.tokenizer().encode("ab a")?, [0, 1, 2, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod byte_pairs;
mod characters;
pub mod classifier;
pub mod comparison;
pub mod distance;
mod ends;
mod error;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod gguf;
pub mod integers;
mod modules;
pub mod pairs;
mod sentencepiece;
pub mod sentences;
mod small;
mod special;
pub mod survey;
pub mod template;
#[cfg(test)]
mod tests;
pub mod texts;
pub mod tokenizer;
pub mod tolerance;
pub mod trained;
pub mod tuned;
mod unfinished;
mod vocabulary;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use tensorlink_model::import::{File, INDEX, indexed_files};
use tensorlink_model::{Architecture, Checkpoint, Description, Weights, describe};

pub use classifier::Classifier;
pub use comparison::{ComparisonError, compare};
pub use distance::Distance;
pub use error::{FolderError, TokenizerError};
pub use gguf::GgufTokenizerError;
pub use integers::Integers;
pub use pairs::Pairs;
pub use sentences::Sentences;
pub use small::{may_be_model, there};
pub use survey::Survey;
pub use template::{ChatTemplate, TemplateError, Variables};
pub use texts::TextsError;
pub use tokenizer::{Spelling, TextTokenizer};
pub use tolerance::{Excess, Tolerance};
pub use trained::Trained;
pub use tuned::{Adapters, Tuned};
pub use unfinished::vacant;

use small::{Small, read};

/// Name of the tokenizer.
const TOKENIZER: &str = "tokenizer.json";
/// Name of the weights where they are one file.
const WEIGHTS: &str = "model.safetensors";
/// Largest JSON file but the tokenizer's, bytes; the parsers have bounds of their own.
const MAX_JSON: u64 = 1 << 25;
/// Largest `tokenizer.json`, bytes.
const MAX_TOKENIZER: u64 = 1 << 28;
/// Largest text file, bytes.
const MAX_TEXT: u64 = 1 << 30;
/// Every file that is read, but the weights; all but the first two may be absent.
const SMALL: [(&str, u64); 13] = [
    ("config.json", MAX_JSON),
    (TOKENIZER, MAX_TOKENIZER),
    ("tokenizer_config.json", MAX_JSON),
    (special::ADDED, MAX_JSON),
    ("chat_template.jinja", MAX_JSON),
    ("generation_config.json", MAX_JSON),
    (modules::MODULES, MAX_JSON),
    (POOLING, MAX_JSON),
    (sentences::PROMPTS, MAX_JSON),
    (sentences::READING[0], MAX_JSON),
    (sentences::READING[1], MAX_JSON),
    (sentences::READING[2], MAX_JSON),
    (CALIBRATION, MAX_JSON),
];
/// How a sentence-transformers model makes one vector of a text.
const POOLING: &str = "1_Pooling/config.json";
/// Texts that a model trained here is calibrated on: those of the world at large may have characters that it does
/// not know.
const CALIBRATION: &str = "calibration.json";

/// An open model folder. Its configuration, the headers of its weights and its tokenizer fit together; values are
/// looked at by [`weights`](Self::weights) or [`Integers::read`].
#[derive(Debug)]
pub struct ModelFolder {
    path: PathBuf,
    small: Small,
    description: Description,
    tokenizer: TextTokenizer,
    stored: Stored,
}

/// How a folder holds its weights.
#[derive(Debug)]
enum Stored {
    Floats(Floats),
    Integers(Box<Integers>),
}

/// Safetensors, and the index that says which holds what.
#[derive(Debug)]
struct Floats {
    files: Vec<Mapped>,
    index: Option<Vec<u8>>,
    /// Those of the dense layers after pooling, in order.
    dense: Vec<Mapped>,
}

#[derive(Clone, Debug)]
struct Mapped {
    name: String,
    bytes: Arc<Mmap>,
}

impl ModelFolder {
    /// Opens a folder, or a GGUF file, and checks everything about it but the values of its weights.
    ///
    /// # Errors
    /// A [`FolderError`] that names the file.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let small = Small::of(path)?;
        let integers = match &small {
            Small::Lying { folder, .. } => Integers::open(folder, &small)?,
            Small::Made { .. } => None,
        };
        let of_file = matches!(small, Small::Made { .. });
        let folder =
            Self::whole(path, small, integers).map_err(|error| if of_file { error.at(path) } else { error })?;
        if let [first, ..] = folder.tokenizer.beyond() {
            let (path, count) = (path.display(), folder.tokenizer.beyond().len());
            tracing::warn!(
                "{path}: the model has no rows for {count} of its tokenizer's tokens, such as {first}: they \
                            are neither read nor written"
            );
        }
        Ok(folder)
    }

    fn whole(path: &Path, mut small: Small, integers: Option<Integers>) -> Result<Self, FolderError> {
        let description = described(&small)?;
        let tokenizer = tokenizer_of(&mut small, &description)?;
        let stored = match integers {
            Some(integers) => Stored::Integers(Box::new(integers.of(&description.architecture)?)),
            None => Stored::Floats(Floats::of(&small)?),
        };
        let folder = Self { path: path.to_owned(), small, description, tokenizer, stored };
        if folder.integers().is_none() {
            folder.checkpoint()?;
        }
        Ok(folder)
    }

    /// Whether it is a GGUF file.
    pub const fn is_file(&self) -> bool {
        matches!(self.small, Small::Made { .. })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its configuration says.
    pub const fn description(&self) -> &Description {
        &self.description
    }

    /// The model.
    pub const fn architecture(&self) -> &Architecture {
        &self.description.architecture
    }

    /// Its tokenizer.
    pub const fn tokenizer(&self) -> &TextTokenizer {
        &self.tokenizer
    }

    /// The model in integers, if that is what the folder holds.
    pub fn integers(&self) -> Option<&Integers> {
        match &self.stored {
            Stored::Floats(_) => None,
            Stored::Integers(integers) => Some(integers),
        }
    }

    /// Bytes of its weight files.
    pub fn file_bytes(&self) -> u64 {
        match &self.stored {
            Stored::Floats(Floats { files, dense, .. }) => {
                files.iter().chain(dense).map(|file| file.bytes.len() as u64).sum()
            }
            Stored::Integers(integers) => integers.bytes(),
        }
    }

    /// Its weights as floats, found but not read.
    ///
    /// # Errors
    /// [`FolderError::Weights`], or [`FolderError::Quantised`] where there are none.
    pub fn checkpoint(&self) -> Result<Checkpoint<'_>, FolderError> {
        match &self.stored {
            Stored::Floats(floats) => {
                Ok(Checkpoint::open(self.architecture(), &floats.given(), floats.index.as_deref())?)
            }
            Stored::Integers(_) => Err(FolderError::Quantised(self.path.clone())),
        }
    }

    /// Texts of its own to calibrate on, if it has any.
    ///
    /// # Errors
    /// [`FolderError::Read`], [`FolderError::Calibration`].
    pub fn calibration(&self) -> Result<Option<Vec<String>>, FolderError> {
        let json = self.small.optional(CALIBRATION, MAX_JSON)?;
        let texts = json.map(|json| serde_json::from_slice(&json)).transpose();
        texts.map_err(|error| FolderError::Calibration(error.to_string()))
    }

    /// Reads its weights: one copy in memory, 4 bytes a parameter.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint), and for values that are not finite.
    pub fn weights(&self) -> Result<Weights, FolderError> {
        Ok(self.checkpoint()?.weights()?)
    }
}

/// Reads a text file.
///
/// # Errors
/// [`FolderError::Read`], or [`FolderError::Utf8`] with the place of the first byte that is no text.
pub fn read_text(path: &Path) -> Result<String, FolderError> {
    let bytes = read(path, MAX_TEXT)?;
    String::from_utf8(bytes).map_err(|error| {
        let position = error.utf8_error().valid_up_to();
        FolderError::Utf8 { file: path.to_owned(), position }
    })
}

/// What the folder's configuration says, that of its sentence-transformers parts included.
fn described(small: &Small) -> Result<Description, FolderError> {
    let config = small.required("config.json", MAX_JSON)?;
    let pooling = small.optional(POOLING, MAX_JSON)?;
    let read = |layer: modules::Dense| Ok((layer.config(), small.required(&layer.config(), MAX_JSON)?));
    let dense = modules::dense(small)?.into_iter().map(read).collect::<Result<Vec<_>, FolderError>>()?;
    Ok(describe(&config, pooling.as_deref())?.with_dense(&dense)?)
}

/// The tokenizer of a folder, which has its file from then on.
fn tokenizer_of(small: &mut Small, description: &Description) -> Result<TextTokenizer, FolderError> {
    let json = vocabulary::tokenizer(small, description)?;
    let tokenizer = TextTokenizer::new(&json, description)?;
    if !small.has(TOKENIZER) {
        small.complete(TOKENIZER, json);
    }
    Ok(tokenizer)
}

impl Floats {
    /// The weights beside small files: a folder's, or the GGUF file itself.
    fn of(small: &Small) -> Result<Self, FolderError> {
        match small {
            Small::Lying { folder, .. } => {
                let dense = modules::dense(small)?.into_iter().map(|layer| map(folder, layer.weights()));
                Ok(Self { dense: dense.collect::<Result<_, _>>()?, ..Self::map(folder)? })
            }
            Small::Made { file, .. } => Ok(Self { files: vec![file.clone()], index: None, dense: Vec::new() }),
        }
    }

    /// Maps the one file of weights, or all that the index names; the one file wins, as in Hugging Face's own loader.
    fn map(folder: &Path) -> Result<Self, FolderError> {
        if folder.join(WEIGHTS).exists() {
            return Ok(Self { files: vec![map(folder, WEIGHTS.into())?], index: None, dense: Vec::new() });
        }
        let Some(index) = small::optional(folder, INDEX, MAX_JSON)? else {
            return Err(FolderError::NoWeights(folder.to_owned()));
        };
        let files = indexed_files(&index)?.into_iter().map(|name| map(folder, name)).collect::<Result<_, _>>()?;
        Ok(Self { files, index: Some(index), dense: Vec::new() })
    }

    /// As the importer takes them.
    fn given(&self) -> Vec<File<'_>> {
        let own = self.files.iter().map(|file| File::new(&file.name, &file.bytes));
        let dense = (0..).zip(&self.dense);
        let dense = dense.map(|(number, file)| File { dense: Some(number), ..File::new(&file.name, &file.bytes) });
        own.chain(dense).collect()
    }
}

fn map(folder: &Path, name: String) -> Result<Mapped, FolderError> {
    let path = folder.join(&name);
    let open = || {
        let file = std::fs::File::open(&path)?;
        // SAFETY: the mapping is read-only and of a file that only its owner's own programs could change while it is
        // open; downloads replace files by renaming, which leaves this one whole.
        unsafe { Mmap::map(&file) }
    };
    match open() {
        Ok(bytes) => Ok(Mapped { name, bytes: Arc::new(bytes) }),
        Err(source) => Err(FolderError::Read { file: path, source }),
    }
}
