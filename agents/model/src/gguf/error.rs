//! Why a GGUF file was refused.

use thiserror::Error;

/// Why a GGUF file was refused; what to do is in the message.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GgufError {
    /// It does not begin as GGUF files do.
    #[error("it is no GGUF file; name a folder as Hugging Face publishes it, or a .gguf file")]
    Magic,
    /// A version that is not read.
    #[error("it is GGUF of version {0}; versions 2 and 3 are read: convert the model again with a newer llama.cpp")]
    Version(u32),
    /// Numbers with their highest byte first.
    #[error("it is big-endian; take the model's little-endian file")]
    BigEndian,
    /// It ends within something.
    #[error("it ends within {within}; download it again")]
    Truncated {
        /// What was being read.
        within: String,
    },
    /// More of something than any model has.
    #[error("it claims {count} {of}, more than {most}: it is damaged; download it again")]
    Count {
        /// Of what.
        of: &'static str,
        /// How many.
        count: u64,
        /// Most.
        most: u64,
    },
    /// A name or a text that is no text.
    #[error("{within} is not UTF-8: the file is damaged; download it again")]
    Utf8 {
        /// What was being read.
        within: String,
    },
    /// Something stands twice.
    #[error("it has `{0}` twice: it is damaged; download it again")]
    Twice(String),
    /// A value of a type that does not exist, or a list of lists.
    #[error("`{key}` is of type {kind}, which is not read; convert the model again with llama.cpp")]
    Kind {
        /// The key.
        key: String,
        /// The type's number.
        kind: u32,
    },
    /// A padding that is not one.
    #[error("general.alignment is {0}, supported is a multiple of 8 up to 65536; convert the model again")]
    Alignment(u64),
    /// A part of a model.
    #[error("it is one of {0} parts; join them with `llama-gguf-split --merge`")]
    Split(u64),
    /// A shape that no tensor has.
    #[error("`{tensor}` has the shape {shape:?}, which no tensor has: the file is damaged; download it again")]
    Shape {
        /// The tensor.
        tensor: String,
        /// Its dimensions, as the file has them.
        shape: Vec<u64>,
    },
    /// A type of numbers that is not read.
    #[error("`{tensor}` is of type {kind}, which is not read; take a file of {supported}", supported = super::SUPPORTED)]
    Quantisation {
        /// The tensor.
        tensor: String,
        /// Its type, by name if it is known.
        kind: String,
    },
    /// Rows that are no whole number of blocks.
    #[error(
        "`{tensor}` has rows of {width} numbers, no whole number of {kind}'s blocks of {block}: the file is damaged; download it again"
    )]
    Width {
        /// The tensor.
        tensor: String,
        /// Numbers of a row.
        width: u64,
        /// Its type.
        kind: &'static str,
        /// Numbers of a block.
        block: usize,
    },
    /// A tensor that does not begin where tensors do.
    #[error("`{tensor}` begins at {offset}, no multiple of {alignment}: the file is damaged; download it again")]
    Offset {
        /// The tensor.
        tensor: String,
        /// Where it begins, from the first.
        offset: u64,
        /// The file's padding.
        alignment: u64,
    },
    /// A tensor that is not all in the file.
    #[error("`{tensor}` lies beyond the end of the file; download it again")]
    Outside {
        /// The tensor.
        tensor: String,
    },
    /// Two tensors of the same bytes.
    #[error("`{first}` and `{second}` overlap: the file is damaged; download it again")]
    Overlap {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// A value that every model of this architecture has is absent.
    #[error("it lacks `{0}`; convert the model again with llama.cpp")]
    Missing(String),
    /// A value of another type.
    #[error("`{key}` is not {expected}; convert the model again with llama.cpp")]
    Type {
        /// The key.
        key: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A model that is not computed.
    #[error("its architecture is `{0}`; supported are {supported}", supported = crate::family::in_gguf())]
    Architecture(String),
    /// A value that may change what the model computes, and that nothing here knows.
    #[error("it says `{0}`, which this program does not know and which may change what the model computes")]
    Unknown(String),
    /// A value that changes what the model computes.
    #[error("`{key}` is {value}, supported is {supported}; choose another model")]
    Unsupported {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What is supported.
        supported: String,
    },
    /// Factors of rotary frequencies that are not of a known rule.
    #[error("rope_freqs.weight holds factors that are not those of Llama 3's rule; take the model's folder instead")]
    Factors,
}
