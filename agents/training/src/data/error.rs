//! Why a data set cannot be read.

use tensorlink_num::TensorError;
use tensorlink_types::TypeError;
use thiserror::Error;

use crate::model::MAX_WIDTH;

/// Why a data set was refused.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum DataError {
    /// More bytes or rows than allowed.
    #[error("the data has {actual} {what}, at most {limit} are allowed; use a part of it")]
    TooLarge {
        /// Bytes or rows.
        what: &'static str,
        /// What it has.
        actual: usize,
        /// What is allowed.
        limit: usize,
    },
    /// Not CSV in UTF-8.
    #[error("the data is not CSV: {0}; save it as comma-separated UTF-8")]
    Syntax(String),
    /// No rows.
    #[error("the data has {0} rows; at least 2 are needed, one to train on and one to hold out")]
    TooFewRows(usize),
    /// A row of another width than the first.
    #[error("row {row} has {actual} columns, the first row has {expected}; complete or remove it")]
    Width {
        /// Row in the file, from 1.
        row: u64,
        /// Columns of the first row.
        expected: usize,
        /// Columns of this one.
        actual: usize,
    },
    /// Not text in UTF-8.
    #[error("byte {0} of the text is not UTF-8; save it as UTF-8")]
    NotUtf8(usize),
    /// A text of one character, or of more than a softmax has places for.
    #[error("the text has {0} different characters, 2 to 65536 can be told apart")]
    Characters(usize),
    /// A token that the model does not know.
    #[error("token {token} is not one of {vocabulary}: the tokenizer belongs to another model")]
    Token {
        /// The token.
        token: u32,
        /// Tokens of the model.
        vocabulary: u32,
    },
    /// A text too short to be cut.
    #[error(
        "the text has {tokens} tokens or characters; two sequences take {needed}: use more text or a shorter context"
    )]
    TooShort {
        /// What it has.
        tokens: usize,
        /// What is needed.
        needed: usize,
    },
    /// Only one column, or more features than a dot product may have inputs.
    #[error("{0} columns: a row needs 1 to {MAX_WIDTH} numbers and its class in the last column")]
    Columns(usize),
    /// A first column that counts the rows, and is not named an index.
    #[error(
        "the first column {name:?} counts the rows, which says nothing of their classes; remove it, or call it `index` in a first row and it is left out"
    )]
    Index {
        /// Its header; empty if it has none.
        name: String,
    },
    /// Two classes that people would take for one.
    #[error(
        "classes `{0}` and `{1}` are written differently and look the same; write them alike, or name one otherwise"
    )]
    AlikeClasses(String, String),
    /// Numbers in the last column that name no classes.
    #[error(
        "the last column has {distinct} different numbers in {rows} rows: it measures something and names no class; put the class there, for instance `low` and `high` in place of numbers"
    )]
    Measurement {
        /// Different numbers.
        distinct: usize,
        /// Rows.
        rows: usize,
    },
    /// Text where a number is needed.
    #[error("row {row}, column {column}: `{text}` is not a number; only the last column may hold text")]
    NotANumber {
        /// Row in the file, from 1.
        row: u64,
        /// Column, from 1.
        column: usize,
        /// What it says.
        text: String,
    },
    /// NaN, an infinity, or a magnitude beyond 2^100.
    #[error("row {row}, column {column}: {value} cannot be scaled; fill in or remove the row")]
    NotFinite {
        /// Row in the file, from 1.
        row: u64,
        /// Column, from 1.
        column: usize,
        /// The value.
        value: f64,
    },
    /// A row of texts of another width.
    #[error(
        "row {row} has {columns} columns; a text and its label are two: put a text that has commas in double quotes"
    )]
    TextColumns {
        /// Row in the file, from 1.
        row: u64,
        /// Its columns.
        columns: usize,
    },
    /// A row without a text.
    #[error("row {row} has no text in its first column; fill it in or remove it")]
    NoText {
        /// Row in the file, from 1.
        row: u64,
    },
    /// A text of which a tokenizer makes nothing.
    #[error("text {text} has no tokens in the model's tokenizer; remove it")]
    NoTokens {
        /// Which one, from 1; a header is none.
        text: usize,
    },
    /// A class that the head of a trained model does not know.
    #[error(
        "class `{class}` is none of those that the folder's head tells apart ({known}); label texts as it does, or begin from a folder without such a head"
    )]
    UnknownClass {
        /// The class.
        class: String,
        /// Those it knows.
        known: String,
    },
    /// A row without a class.
    #[error("row {row} has no class in its last column")]
    NoClass {
        /// Row in the file, from 1.
        row: u64,
    },
    /// All rows of one class.
    #[error("every row is of class `{0}`; there is nothing to learn")]
    OneClass(String),
    /// More classes than a row sum may have terms.
    #[error("{0} classes, at most {MAX_WIDTH}; the class belongs in the last column, is it a measurement?")]
    TooManyClasses(usize),
    /// Types out of range; excluded by the bounds above.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// Values out of range; excluded by clamping.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}
