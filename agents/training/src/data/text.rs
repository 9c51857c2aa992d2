//! Text, in tokens or character by character: what a language model learns from.
//!
//! Characters are numbered in the order of their code points. A text is cut into sequences of equal length; the last
//! tenth of them is held out, whole, so that nothing of it is seen in training.

use tensorlink_num::Tensor;
use tensorlink_types::TensorType;

use super::{DataError, Dataset, MAX_CSV, MAX_ROWS};
use crate::compile::TrainingSet;
use crate::step::build::ceil_log2;

/// Most different characters: as many as a plane of Unicode has code points.
pub const MAX_CHARACTERS: usize = 1 << 16;

/// A text in tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tokens {
    /// The tokens in order.
    pub ids: Vec<u32>,
    /// How many different ones there can be.
    pub vocabulary: u32,
}

/// A text in characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// Its characters in order.
    pub characters: Vec<char>,
    /// The text, as places among them.
    pub ids: Vec<u32>,
}

impl Text {
    /// Reads UTF-8.
    ///
    /// # Errors
    /// [`DataError`] for other bytes, more than are allowed, fewer than two different characters or too many of them.
    pub fn parse(bytes: &[u8]) -> Result<Self, DataError> {
        if bytes.len() > MAX_CSV {
            return Err(DataError::TooLarge { what: "bytes", actual: bytes.len(), limit: MAX_CSV });
        }
        let text = std::str::from_utf8(bytes).map_err(|error| DataError::NotUtf8(error.valid_up_to()))?;
        let mut characters: Vec<char> = text.chars().collect();
        characters.sort_unstable();
        characters.dedup();
        if !(2..=MAX_CHARACTERS).contains(&characters.len()) {
            return Err(DataError::Characters(characters.len()));
        }
        // SAFETY of the cast: fewer than 2^16.
        let id = |character: char| characters.binary_search(&character).unwrap_or_default() as u32;
        let ids = text.chars().map(id).collect();
        Ok(Self { characters, ids })
    }

    /// Cuts the text into sequences of so many characters, each with those that follow its own.
    ///
    /// # Errors
    /// As [`Tokens::split`].
    pub fn split(self, length: u32) -> Result<Dataset, DataError> {
        let classes = self.characters.iter().map(char::to_string).collect();
        // SAFETY of the cast: at most 2^16 characters.
        let tokens = Tokens { ids: self.ids, vocabulary: self.characters.len() as u32 };
        Ok(Dataset { classes, ..tokens.split(length)? })
    }
}

impl Tokens {
    /// Cuts the text into sequences of so many tokens, each with those that follow its own.
    ///
    /// # Errors
    /// [`DataError::TooShort`] for fewer than two sequences, [`DataError::TooLarge`] for more than a data set has rows,
    /// [`DataError::Token`].
    pub fn split(&self, length: u32) -> Result<Dataset, DataError> {
        let vocabulary = self.vocabulary;
        if let Some(&token) = self.ids.iter().find(|id| **id >= vocabulary) {
            return Err(DataError::Token { token, vocabulary });
        }
        let tokens = length;
        let length = tokens.max(1) as usize;
        let rows = self.ids.len().saturating_sub(1).checked_div(length).unwrap_or_default();
        if rows < 2 {
            return Err(DataError::TooShort { tokens: self.ids.len(), needed: 2 * length + 1 });
        }
        if rows > MAX_ROWS {
            return Err(DataError::TooLarge { what: "sequences", actual: rows, limit: MAX_ROWS });
        }
        let first_held_out = rows.saturating_sub(rows.div_ceil(10).min(rows - 1));
        let bits = ceil_log2(vocabulary).saturating_add(1).max(2);
        let sequences = |range: std::ops::Range<usize>, ahead: usize| {
            // SAFETY of the cast: bounded above.
            let ty = TensorType::new(bits, 0, &[range.len() as u32, tokens])?;
            let ids = self.ids.iter().skip(range.start.saturating_mul(length).saturating_add(ahead));
            let ids: Vec<i64> = ids.take(range.len().saturating_mul(length)).map(|id| i64::from(*id)).collect();
            Ok::<_, DataError>(Tensor::from_wide(ty, &ids)?)
        };
        let set = |range: std::ops::Range<usize>| {
            Ok::<_, DataError>(TrainingSet { features: sequences(range.clone(), 0)?, labels: sequences(range, 1)? })
        };
        Ok(Dataset {
            training: set(0..first_held_out)?,
            held_out: set(first_held_out..rows)?,
            classes: Vec::new(),
            scales: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_follows() {
        let text = Text::parse("abcabcabcabd".as_bytes()).unwrap();
        assert_eq!(text.characters, ['a', 'b', 'c', 'd']);
        let data = text.split(3).unwrap();
        // Eleven characters have one after them: three sequences, of which one is held out.
        let values = |tensor: &Tensor| tensor.mantissas().to_vec();
        assert_eq!(values(&data.training.features), [0, 1, 2, 0, 1, 2]);
        assert_eq!(values(&data.training.labels), [1, 2, 0, 1, 2, 0]);
        assert_eq!(values(&data.held_out.features), [0, 1, 2]);
        assert_eq!(values(&data.held_out.labels), [1, 2, 0]);
        assert_eq!(data.training.features.ty().bits(), 3);
        assert_eq!(data.classes, ["a", "b", "c", "d"]);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert_eq!(Text::parse(b"ab\xff"), Err(DataError::NotUtf8(2)));
        assert_eq!(Text::parse(b""), Err(DataError::Characters(0)));
        assert_eq!(Text::parse(b"aaaa"), Err(DataError::Characters(1)));
        let many: String = (0..MAX_CHARACTERS as u32 + 2048 + 1).filter_map(char::from_u32).collect();
        assert_eq!(Text::parse(many.as_bytes()), Err(DataError::Characters(MAX_CHARACTERS + 1)));
        let short = Text::parse(b"abcdefg").unwrap();
        assert_eq!(short.clone().split(4), Err(DataError::TooShort { tokens: 7, needed: 9 }));
        assert!(short.split(3).is_ok());
        let foreign = Tokens { ids: vec![0, 1, 2, 3, 4, 5, 6], vocabulary: 6 };
        assert_eq!(foreign.split(3), Err(DataError::Token { token: 6, vocabulary: 6 }));
    }
}
