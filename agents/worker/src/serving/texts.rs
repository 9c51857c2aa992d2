//! The texts of a lane that are open: the rows received and given so far, bounded in number, bytes, tokens and time.

use std::collections::HashMap;

use tensorlink_node::footprint::{MAX_TEXT_BYTES, MAX_TEXTS};

/// Seconds after which a text that nobody continues is forgotten.
pub const IDLE: u64 = 600;
/// Tokens for which memory is taken at once.
const LEAST_TOKENS: u32 = 64;

/// Bytes of a token's rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Received from the previous stage, or the token's number.
    pub received: usize,
    /// Received as from the next stage: how the token's successor is chosen.
    pub controls: usize,
    /// Given; 0 where a stage gives nothing before the last tokens.
    pub given: usize,
}

/// The next tokens of a text, no more in all than the stage's longest text has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The text.
    pub text: u32,
    /// Tokens sent before.
    pub position: u32,
    /// The tokens' rows.
    pub rows: Vec<u8>,
    /// How their successors are chosen, on a stage that chooses tokens; else empty.
    pub controls: Vec<u8>,
    /// How many they are; none only to end a text.
    pub tokens: u32,
    /// Whether they are the last.
    pub last: bool,
}

/// An open text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Text {
    /// Rows received: canonical bytes without padding.
    pub received: Vec<u8>,
    /// Controls received of the same tokens.
    pub controls: Vec<u8>,
    /// Rows given; empty where a stage gives nothing before the last tokens.
    pub given: Vec<u8>,
    /// Tokens of `received`.
    pub tokens: u32,
    /// Most tokens that it has had: memory that grew does not shrink before the text ends.
    peak: u32,
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
    row: Row,
    /// Texts, bytes and tokens.
    most: (usize, usize, u64),
    /// Tokens of the longest text.
    longest: u32,
    /// Tokens whose rows were given for nothing.
    lost: u64,
}

impl Texts {
    /// No texts yet, of up to `longest` tokens each. There is memory for the keys and values of `most` tokens, or of
    /// any number.
    pub fn new(row: Row, longest: u32, most: Option<u64>) -> Self {
        let most = (MAX_TEXTS, MAX_TEXT_BYTES, most.unwrap_or(u64::MAX));
        Self { texts: HashMap::new(), row, most, longest, lost: 0 }
    }

    /// A text.
    pub fn get(&self, text: u32) -> Option<&Text> {
        self.texts.get(&text)
    }

    /// Tokens of open texts whose rows were given.
    pub fn given(&self) -> u64 {
        if self.row.given == 0 {
            return 0;
        }
        self.texts.values().map(|text| u64::from(text.tokens)).sum()
    }

    /// Tokens whose rows were given, and which then were cut off or whose text was forgotten.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Forgets texts that nobody continued for long; which.
    pub fn sweep(&mut self, now: u64) -> Vec<u32> {
        let idle = |text: &Text| text.touched.saturating_add(IDLE) < now;
        let dropped: Vec<u32> = self.texts.iter().filter(|(_, text)| idle(text)).map(|(number, _)| *number).collect();
        dropped.iter().for_each(|number| self.forget(*number));
        dropped
    }

    /// Forgets a text that has not ended.
    pub fn forget(&mut self, text: u32) {
        if let Some(text) = self.texts.remove(&text) {
            self.lose(text.tokens);
        }
    }

    fn lose(&mut self, tokens: u32) {
        if self.row.given > 0 {
            self.lost = self.lost.saturating_add(tokens.into());
        }
    }

    /// Tokens that memory is taken for in a text that has had `peak`: it doubles as the text grows.
    fn taken(&self, peak: u32) -> u64 {
        peak.saturating_mul(2).max(LEAST_TOKENS).min(self.longest.saturating_mul(2)).into()
    }

    /// Cuts a text back to where the step begins and continues it with the step's rows.
    ///
    /// # Errors
    /// [`Stuck`]; the text is then as it was.
    pub fn extend(&mut self, step: &Step, now: u64) -> Result<(), Stuck> {
        let Step { text, position, tokens, .. } = *step;
        let held = self.get(text).map_or(0, |text| text.tokens);
        if position > held {
            return Err(Stuck::Behind(held));
        }
        let bytes: usize = self.texts.values().map(Text::bytes).fold(0, usize::saturating_add);
        // What this text will hold at most, once its rows are given, too.
        let given = (tokens as usize).saturating_mul(self.row.given);
        let more = step.rows.len().saturating_add(step.controls.len()).saturating_add(given);
        let fresh = !self.texts.contains_key(&text);
        let end = position.saturating_add(tokens);
        let others = self.texts.iter().filter(|(number, _)| **number != text).map(|(_, text)| self.taken(text.peak));
        let own = self.taken(self.get(text).map_or(0, |text| text.peak).max(end));
        let memory = others.fold(own, u64::saturating_add);
        if (fresh && self.texts.len() >= self.most.0)
            || bytes.saturating_add(more) > self.most.1
            || memory > self.most.2
        {
            return Err(Stuck::Full);
        }
        self.lose(held.saturating_sub(position));
        let row = self.row;
        let entry = self.texts.entry(text).or_default();
        entry.cut(position, row);
        entry.received.extend_from_slice(&step.rows);
        entry.controls.extend_from_slice(&step.controls);
        (entry.tokens, entry.peak, entry.touched) = (end, entry.peak.max(end), now);
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
    fn bytes(&self) -> usize {
        self.received.len().saturating_add(self.controls.len()).saturating_add(self.given.len())
    }

    fn cut(&mut self, position: u32, row: Row) {
        let cut = |rows: &mut Vec<u8>, row: usize| rows.truncate((position as usize).saturating_mul(row));
        cut(&mut self.received, row.received);
        cut(&mut self.controls, row.controls);
        cut(&mut self.given, row.given);
        self.tokens = self.tokens.min(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row = Row { received: 2, controls: 1, given: 1 };

    /// The next tokens of a text, two bytes of rows and one of controls each.
    fn step(text: u32, position: u32, rows: &[u8]) -> Step {
        let tokens = rows.len() as u32 / 2;
        let controls = rows.iter().step_by(2).copied().collect();
        Step { text, position, rows: rows.to_vec(), controls, tokens, last: false }
    }

    #[test]
    fn texts_go_on_are_cut_back_and_ask_for_what_is_missing() {
        let mut texts = Texts::new(ROW, 9, None);
        assert_eq!(texts.extend(&step(7, 1, b"aa"), 0), Err(Stuck::Behind(0)));
        texts.extend(&step(7, 0, b"aabb"), 0).unwrap();
        texts.give(7, b"xy");
        texts.extend(&step(7, 2, b"cc"), 1).unwrap();
        texts.give(7, b"z");
        assert_eq!(texts.extend(&step(7, 4, b"dd"), 2), Err(Stuck::Behind(3)));
        let text = texts.get(7).unwrap();
        assert_eq!((text.received.as_slice(), text.controls.as_slice()), (&b"aabbcc"[..], &b"abc"[..]));
        assert_eq!((text.given.as_slice(), text.tokens, texts.given(), texts.lost()), (&b"xyz"[..], 3, 3, 0));
        // Its answer was lost: the second token comes again.
        texts.extend(&step(7, 1, b"BB"), 2).unwrap();
        let text = texts.get(7).unwrap();
        assert_eq!((text.received.as_slice(), text.controls.as_slice()), (&b"aaBB"[..], &b"aB"[..]));
        assert_eq!((text.given.as_slice(), text.tokens, texts.given(), texts.lost()), (&b"x"[..], 2, 2, 2));
        texts.cut(7, 0);
        assert_eq!((texts.get(7), texts.lost()), (None, 2), "nothing is left of it, and nothing was given");
    }

    #[test]
    fn number_bytes_and_time_are_bounded() {
        let mut texts = Texts { most: (2, 12, u64::MAX), ..Texts::new(ROW, 9, None) };
        texts.extend(&step(1, 0, b"aa"), 0).unwrap();
        texts.extend(&step(2, 0, b"aa"), 100).unwrap();
        assert_eq!(texts.extend(&step(3, 0, b"aa"), 100), Err(Stuck::Full), "a third text");
        assert_eq!(texts.extend(&step(2, 1, b"bbccdd"), 100), Err(Stuck::Full), "too many bytes");
        assert_eq!(texts.get(2).unwrap().tokens, 1);
        assert!(texts.sweep(IDLE).is_empty());
        assert_eq!((texts.sweep(IDLE + 1), texts.lost()), (vec![1], 1));
        texts.extend(&step(3, 0, b"aa"), 100).unwrap();
        assert_eq!((texts.remove(3).unwrap().tokens, texts.lost()), (1, 1));
    }

    #[test]
    fn texts_grow_into_the_memory_there_is() {
        let mut texts = Texts::new(ROW, 50, Some(3 * 64));
        let long = |tokens: usize| vec![b'a'; 2 * tokens];
        texts.extend(&step(1, 0, &long(1)), 0).unwrap();
        texts.extend(&step(2, 0, &long(32)), 0).unwrap();
        texts.extend(&step(3, 0, &long(1)), 0).unwrap();
        assert_eq!(texts.extend(&step(4, 0, &long(1)), 0), Err(Stuck::Full), "memory for three");
        assert_eq!(texts.extend(&step(2, 32, &long(1)), 0), Err(Stuck::Full));
        texts.remove(3).unwrap();
        texts.extend(&step(2, 32, &long(18)), 0).unwrap();
        texts.extend(&step(2, 1, &long(1)), 0).unwrap();
        assert_eq!(texts.extend(&step(3, 0, &long(1)), 0), Err(Stuck::Full), "what it took, it keeps");
    }
}
