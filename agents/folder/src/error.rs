//! Why a model folder or a text was refused.

use std::path::{Path, PathBuf};

use tensorlink_model::lora::peft::PeftError;
use tensorlink_model::{ConfigError, ExportError, GgufError, ImportError, PlanError};
use thiserror::Error;

use super::{GgufTokenizerError, TemplateError};

/// Why a model folder was refused.
#[derive(Debug, Error)]
pub enum FolderError {
    /// There is nothing of this name; it may be that of a repository.
    #[error(
        "there is no {}: models are folders, as Hugging Face publishes them, or .gguf files, on this machine{}", .0.display(), fetched(.0)
    )]
    Nothing(PathBuf),
    /// A file that every folder has is absent.
    #[error("{} has no {name}; give the folder of a model as Hugging Face publishes it, or a .gguf file", folder.display())]
    Absent {
        /// The folder.
        folder: PathBuf,
        /// The file.
        name: String,
    },
    /// There is another tokenizer than the one that is read.
    #[error(
        "{folder} has no tokenizer.json, and {instead} is not read: make one with transformers, \
         python -c \"from transformers import AutoTokenizer as A; A.from_pretrained('{folder}').save_pretrained('{folder}')\"", folder = folder.display()
    )]
    NoTokenizer {
        /// The folder.
        folder: PathBuf,
        /// What there is.
        instead: &'static str,
    },
    /// There are no weights that can be read safely.
    #[error(
        "{} has neither model.safetensors nor model.safetensors.index.json; pytorch_model.bin is a program as much as data and is never read: convert it with save_pretrained(safe_serialization=True)", .0.display()
    )]
    NoWeights(PathBuf),
    /// A GGUF file that cannot be read.
    #[error(transparent)]
    Gguf(#[from] GgufError),
    /// What is wrong with the model in a file.
    #[error("{}{}: {reason}", file.display(), reason.read_as())]
    Within {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: Box<Self>,
    },
    /// A file cannot be read.
    #[error("cannot read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is larger than any of its kind.
    #[error("{} has more than {most} bytes; this is not what its name says", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// Largest size.
        most: u64,
    },
    /// A text file is not UTF-8.
    #[error("{} is not UTF-8 text: byte {position} belongs to no character; convert the file", file.display())]
    Utf8 {
        /// The file.
        file: PathBuf,
        /// Offset of the first byte that is none.
        position: usize,
    },
    /// `modules.json` is not a list of modules.
    #[error("modules.json cannot be read ({0}); download the folder again")]
    Modules(String),
    /// A sentence-transformers model with a further part.
    #[error(
        "modules.json has a `{0}`, which this program does not compute; supported are Transformer, Pooling, Dense and \
         Normalize, in this order"
    )]
    Module(String),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The weights.
    #[error(transparent)]
    Weights(#[from] ImportError),
    /// The tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The chat template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// What a folder says of how texts are read that vectors are made of.
    #[error("{file} cannot be used ({reason})")]
    Sentences {
        /// The file.
        file: &'static str,
        /// Why.
        reason: String,
    },
    /// `generation_config.json` does not say how texts end.
    #[error("generation_config.json cannot be used ({0}); download the folder again")]
    Generation(String),
    /// `calibration.json` is not a list of texts.
    #[error(
        "calibration.json cannot be used ({0}): it is a list of texts; remove it, or name others with --calibration"
    )]
    Calibration(String),
    /// The model cannot be written as Hugging Face has it.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// Adapters that do not belong to the model.
    #[error(transparent)]
    Adapters(#[from] PeftError),
    /// Floats were asked for where there are none.
    #[error("{} holds a quantised model; name the folder with the floats that it was made of", .0.display())]
    Quantised(PathBuf),
    /// `quantized.json` is not what `tensorlink model quantize` writes.
    #[error("quantized.json cannot be used ({0}); quantise the model again")]
    Manifest(String),
    /// A file is absent from a quantised folder, or is not the one that was written there.
    #[error("{} is not the file that quantized.json names: it was damaged or changed; copy or quantise the model again", .0.display())]
    Changed(PathBuf),
    /// A constant is not the one that was written.
    #[error("{}: constant {name} is not what was quantised ({reason}): the file was damaged or changed; copy or quantise the model again", file.display())]
    Constant {
        /// The file.
        file: PathBuf,
        /// The constant.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// The plan of a quantised folder cannot be used.
    #[error("plan.bin is of another version of this program ({0}); quantise the model again")]
    Version(String),
    /// A model in integers has no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A folder that is to be made exists.
    #[error("{} exists already; name another folder with --out, or remove it", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}; check that the disk has space and that the folder may be written", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// How the repository that a name may be is made a folder; nothing for what can be no repository's name.
fn fetched(name: &Path) -> String {
    let part = |part: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(known)
    };
    let two = name.to_str().and_then(|name| name.split_once('/'));
    match two.filter(|(owner, model)| part(owner) && part(model)) {
        Some((owner, model)) => {
            format!(". If it is a repository's name, fetch that first: hf download {owner}/{model} --local-dir {model}")
        }
        None => String::new(),
    }
}

impl FolderError {
    /// What is said between a file's name and what is wrong with it, which may name files of a folder.
    const fn read_as(&self) -> &'static str {
        match self {
            Self::Gguf(_) | Self::Tokenizer(TokenizerError::Gguf(_)) => "",
            _ => ", read as a model folder",
        }
    }

    /// The same, with the file whose model it is about; files of a folder have names of their own.
    pub(super) fn at(self, file: &Path) -> Self {
        match self {
            Self::Read { .. } | Self::Within { .. } => self,
            reason => Self::Within { file: file.to_owned(), reason: Box::new(reason) },
        }
    }
}

/// Why a tokenizer, or a text, was refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TokenizerError {
    /// Not a tokenizer.
    #[error("tokenizer.json cannot be read ({0}); download it again")]
    Syntax(String),
    /// What a folder has in its place.
    #[error("{file} cannot be used: {reason}; download it again")]
    Instead {
        /// The file.
        file: &'static str,
        /// Why.
        reason: String,
    },
    /// That of a GGUF file.
    #[error(transparent)]
    Gguf(#[from] GgufTokenizerError),
    /// It has tokens that the model has no vector for.
    #[error(
        "tokenizer.json has token {token}, the model of config.json only tokens below {vocabulary}; they do not belong together"
    )]
    Vocabulary {
        /// Largest token of the tokenizer.
        token: u32,
        /// Tokens of the model.
        vocabulary: u32,
    },
    /// It lacks a token that the model begins or ends a text with.
    #[error(
        "config.json begins or ends texts with token {token}, which tokenizer.json lacks; they do not belong together"
    )]
    Special {
        /// The token.
        token: u32,
    },
    /// A text without tokens.
    #[error("the text is empty; a model needs at least one token")]
    Empty,
    /// More tokens than the model takes. Nothing is cut off silently.
    #[error("the text has {tokens} tokens, the model takes at most {context}; shorten the text")]
    Context {
        /// Tokens of the text, special tokens included.
        tokens: usize,
        /// Most tokens.
        context: u32,
    },
    /// More bytes than any text that fits.
    #[error("the text has {bytes} bytes, more than {most}; the model takes at most {context} tokens: shorten the text")]
    Bytes {
        /// Bytes of the text.
        bytes: usize,
        /// Most bytes.
        most: usize,
        /// Most tokens.
        context: u32,
    },
    /// A token that does not exist.
    #[error("{token} is no token of a model with {vocabulary}")]
    Token {
        /// What was given.
        token: u32,
        /// Tokens of the model.
        vocabulary: u32,
    },
    /// A name of no prompt.
    #[error("the model has no such prompt, but {}", if .0.is_empty() { "none".to_owned() } else { .0.join(", ") })]
    Prompt(Vec<String>),
    /// A character that the model was not trained on.
    #[error("the model does not know the character {0:?}: leave it out")]
    Character(char),
    /// The tokenizer gave up on a text.
    #[error("the tokenizer refuses the text: {0}")]
    Text(String),
}
