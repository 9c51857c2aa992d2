//! Why the tokenizer of a GGUF file was refused.

use tensorlink_model::GgufError;
use thiserror::Error;

/// Why the tokenizer of a GGUF file was refused; what to do is in the message.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GgufTokenizerError {
    /// A value that is not of its type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// There is none.
    #[error("it holds no tokenizer (tokenizer.ggml.*): take a file with one, or the model's folder")]
    Absent,
    /// Of a kind that is not read.
    #[error("its tokenizer is of the model `{0}`; gpt2, llama and bert are read: take the model's folder instead")]
    Model(String),
    /// It does not say how texts are cut before byte pairs are joined.
    #[error("its tokenizer has no tokenizer.ggml.pre, as files of before 2024 had none: convert the model again")]
    Uncut,
    /// It cuts texts in a way that is not known.
    #[error("its tokenizer cuts texts as `{name}` does; known are {known}: take the model's folder instead", known = super::byte_pairs::known())]
    Pre {
        /// What `tokenizer.ggml.pre` says.
        name: String,
    },
    /// Lists that belong together are not of one length.
    #[error("`{key}` has {count} entries for {tokens} tokens: the file is damaged; download it again")]
    Lengths {
        /// The list.
        key: &'static str,
        /// Its length.
        count: usize,
        /// Tokens of the vocabulary.
        tokens: usize,
    },
    /// A token that cannot be.
    #[error("token {token} {what}: the file is damaged; download it again")]
    Token {
        /// The token.
        token: usize,
        /// What is wrong with it.
        what: String,
    },
    /// A pair that is none.
    #[error("merge {number} is {pair:?}, not two tokens of the vocabulary; convert the model again")]
    Merge {
        /// Its place in the list.
        number: usize,
        /// What stands there.
        pair: String,
    },
    /// A token that is to be put around texts is not there.
    #[error("its tokenizer puts a token around texts that it lacks (tokenizer.ggml.{0}); convert the model again")]
    Special(&'static str),
}

impl GgufTokenizerError {
    /// What is wrong with a list of tokens, for who says by itself which file it is in, and what to do about that.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Token { token, what } => format!("token {token} {what}"),
            Self::Merge { number, pair } => format!("merge {number} is {pair:?}, not two tokens of the vocabulary"),
            other => other.to_string(),
        }
    }
}
