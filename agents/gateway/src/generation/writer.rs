//! The text of a continuation: tokens spelled in whole characters, ended at stop sequences.

use super::language::Spell;
use super::stops::Stops;
use crate::backend::error::EmbedError;

/// Makes text of tokens.
pub struct Writer<'a> {
    spell: Box<dyn Spell + Send + 'a>,
    stops: Stops,
}

impl<'a> Writer<'a> {
    /// Spells tokens so, until one of the stop sequences.
    pub fn new(spell: Box<dyn Spell + Send + 'a>, stops: Vec<String>) -> Self {
        Self { spell, stops: Stops::new(stops) }
    }

    /// Takes a token; gives the text to show, and whether a stop sequence ended it.
    ///
    /// # Errors
    /// If the tokenizer cannot decode the token.
    pub fn push(&mut self, token: u32) -> Result<(String, bool), EmbedError> {
        let text = self.spell.push(token)?;
        Ok(self.stops.push(&text))
    }

    /// Ends the text; gives what was held back, and whether a stop sequence ended it after all.
    ///
    /// # Errors
    /// If the tokenizer cannot decode what was held back.
    pub fn end(&mut self) -> Result<(String, bool), EmbedError> {
        let rest = self.spell.rest()?;
        let (mut text, stopped) = self.stops.push(&rest);
        if !stopped {
            text.push_str(&self.stops.rest());
        }
        Ok((text, stopped))
    }
}
