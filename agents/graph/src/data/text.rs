//! Text, character by character: what a language model learns from.
//!
//! Characters are numbered in the order of their code points. The text is cut into sequences of equal length; the last tenth
//! of them is held out, whole, so that nothing of it is seen in training.

use tensorlink_num::Tensor;
use tensorlink_types::TensorType;

use super::{DataError, Dataset, MAX_CSV, MAX_ROWS};
use crate::compile::TrainingSet;
use crate::step::build::ceil_log2;

/// Most different characters: as many as one operator of the softmax sums up (rule N-6).
pub const MAX_CHARACTERS: usize = 4096;

/// A text as numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text {
    /// Its characters in order.
    pub characters: Vec<char>,
    /// The text, as places among them.
    pub ids: Vec<u16>,
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
        // SAFETY of the cast: fewer than 4096.
        let id = |character: char| characters.binary_search(&character).unwrap_or_default() as u16;
        let ids = text.chars().map(id).collect();
        Ok(Self { characters, ids })
    }

    /// Cuts the text into sequences of so many characters, each with those that follow its own.
    ///
    /// # Errors
    /// [`DataError::TooShort`] for fewer than two sequences, [`DataError::TooLarge`] for more than a data set has rows.
    pub fn split(&self, tokens: u32) -> Result<Dataset, DataError> {
        let length = tokens.max(1) as usize;
        let rows = self.ids.len().saturating_sub(1).checked_div(length).unwrap_or_default();
        if rows < 2 {
            return Err(DataError::TooShort { characters: self.ids.len(), needed: 2 * length + 1 });
        }
        if rows > MAX_ROWS {
            return Err(DataError::TooLarge { what: "sequences", actual: rows, limit: MAX_ROWS });
        }
        let first_held_out = rows.saturating_sub(rows.div_ceil(10).min(rows - 1));
        // SAFETY of the cast: at most 4096 characters.
        let bits = ceil_log2(self.characters.len() as u32).saturating_add(1).max(2);
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
            classes: self.characters.iter().map(char::to_string).collect(),
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
        let many: String = (0x4e00..0x4e00 + 4097).filter_map(char::from_u32).collect();
        assert_eq!(Text::parse(many.as_bytes()), Err(DataError::Characters(4097)));
        let short = Text::parse(b"abcdefg").unwrap();
        assert_eq!(short.split(4), Err(DataError::TooShort { characters: 7, needed: 9 }));
        assert!(short.split(3).is_ok());
    }
}
