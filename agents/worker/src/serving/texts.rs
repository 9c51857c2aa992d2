//! The texts of a lane that are open: the rows received and given so far, bounded in number, bytes and time.

use std::collections::HashMap;

/// Open texts of a lane.
pub const MAX_TEXTS: usize = 64;
/// Bytes of their rows.
pub const MAX_BYTES: usize = 256 << 20;
/// Seconds after which a text that nobody continues is forgotten.
pub const IDLE: u64 = 600;

/// An open text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Text {
    /// Rows received: canonical bytes without padding.
    pub received: Vec<u8>,
    /// Rows given; empty where a stage gives nothing before the last tokens.
    pub given: Vec<u8>,
    /// Tokens of `received`.
    pub tokens: u32,
    /// When it was last continued, seconds.
    touched: u64,
}

/// Why a text cannot be continued as asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stuck {
    /// Only so many of its tokens are here.
    Behind(u32),
    /// Too much is open.
    Full,
}

/// The open texts of a lane.
#[derive(Debug)]
pub struct Texts {
    texts: HashMap<u32, Text>,
    /// Bytes of a row received, and of a row given.
    row: (usize, usize),
    most: (usize, usize),
}

impl Texts {
    /// No texts yet, whose rows have so many bytes when received and when given.
    pub fn new(row: (usize, usize)) -> Self {
        Self { texts: HashMap::new(), row, most: (MAX_TEXTS, MAX_BYTES) }
    }

    /// A text.
    pub fn get(&self, text: u32) -> Option<&Text> {
        self.texts.get(&text)
    }

    /// Forgets texts that nobody continued for long; which.
    pub fn sweep(&mut self, now: u64) -> Vec<u32> {
        let idle = |text: &Text| text.touched.saturating_add(IDLE) < now;
        let dropped: Vec<u32> = self.texts.iter().filter(|(_, text)| idle(text)).map(|(number, _)| *number).collect();
        dropped.iter().for_each(|number| drop(self.texts.remove(number)));
        dropped
    }

    /// Cuts a text back to `position` tokens and continues it with `rows`, the rows of `tokens` tokens.
    ///
    /// # Errors
    /// [`Stuck`]; the text is then as it was.
    pub fn extend(&mut self, text: u32, position: u32, (rows, tokens): (&[u8], u32), now: u64) -> Result<(), Stuck> {
        let held = self.get(text).map_or(0, |text| text.tokens);
        if position > held {
            return Err(Stuck::Behind(held));
        }
        let bytes: usize = self.texts.values().map(|text| text.received.len().saturating_add(text.given.len())).sum();
        // What this text will hold at most, once its rows are given, too.
        let more = rows.len().saturating_add((tokens as usize).saturating_mul(self.row.1));
        let fresh = !self.texts.contains_key(&text);
        if (fresh && self.texts.len() >= self.most.0) || bytes.saturating_add(more) > self.most.1 {
            return Err(Stuck::Full);
        }
        let row = self.row;
        let entry = self.texts.entry(text).or_default();
        entry.cut(position, row);
        entry.received.extend_from_slice(rows);
        entry.tokens = position.saturating_add(tokens);
        entry.touched = now;
        Ok(())
    }

    /// Cuts a text back: what was to be computed could not be.
    pub fn cut(&mut self, text: u32, position: u32) {
        let row = self.row;
        match self.texts.get_mut(&text) {
            Some(_) if position == 0 => drop(self.texts.remove(&text)),
            Some(text) => text.cut(position, row),
            None => {}
        }
    }

    /// Keeps rows that were given for a text.
    pub fn give(&mut self, text: u32, rows: &[u8]) {
        if let Some(text) = self.texts.get_mut(&text) {
            text.given.extend_from_slice(rows);
        }
    }

    /// Ends a text.
    pub fn remove(&mut self, text: u32) -> Option<Text> {
        self.texts.remove(&text)
    }
}

impl Text {
    fn cut(&mut self, position: u32, (received, given): (usize, usize)) {
        self.received.truncate((position as usize).saturating_mul(received));
        self.given.truncate((position as usize).saturating_mul(given));
        self.tokens = self.tokens.min(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_go_on_are_cut_back_and_ask_for_what_is_missing() {
        let mut texts = Texts::new((2, 1));
        assert_eq!(texts.extend(7, 1, (b"aa", 1), 0), Err(Stuck::Behind(0)));
        texts.extend(7, 0, (b"aabb", 2), 0).unwrap();
        texts.give(7, b"xy");
        texts.extend(7, 2, (b"cc", 1), 1).unwrap();
        texts.give(7, b"z");
        assert_eq!(texts.extend(7, 4, (b"dd", 1), 2), Err(Stuck::Behind(3)));
        let text = texts.get(7).unwrap();
        assert_eq!((text.received.as_slice(), text.given.as_slice(), text.tokens), (&b"aabbcc"[..], &b"xyz"[..], 3));
        // Its answer was lost: the second token comes again.
        texts.extend(7, 1, (b"BB", 1), 2).unwrap();
        let text = texts.get(7).unwrap();
        assert_eq!((text.received.as_slice(), text.given.as_slice(), text.tokens), (&b"aaBB"[..], &b"x"[..], 2));
        texts.cut(7, 0);
        assert_eq!(texts.get(7), None, "nothing is left of it");
    }

    #[test]
    fn number_bytes_and_time_are_bounded() {
        let mut texts = Texts { most: (2, 10), ..Texts::new((2, 1)) };
        texts.extend(1, 0, (b"aa", 1), 0).unwrap();
        texts.extend(2, 0, (b"aa", 1), 100).unwrap();
        assert_eq!(texts.extend(3, 0, (b"aa", 1), 100), Err(Stuck::Full), "a third text");
        assert_eq!(texts.extend(2, 1, (b"bbccdd", 3), 100), Err(Stuck::Full), "too many bytes");
        assert_eq!(texts.get(2).unwrap().tokens, 1);
        assert!(texts.sweep(IDLE).is_empty());
        assert_eq!(texts.sweep(IDLE + 1), [1]);
        texts.extend(3, 0, (b"aa", 1), 100).unwrap();
        assert_eq!(texts.remove(3).unwrap().tokens, 1);
    }
}
