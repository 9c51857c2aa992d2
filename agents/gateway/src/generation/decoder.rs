//! The port to a decoder in this process: many texts side by side.

use super::sequence::Step;
use crate::backend::error::EmbedError;

/// A decoder. Called from one thread only, and may block it.
pub trait Decoder {
    /// What is kept of a text that has been computed so far, as its keys and values. Dropping it abandons the text.
    type Text;

    /// A text of which nothing has been computed.
    ///
    /// # Errors
    /// If there is no memory for another.
    fn begin(&mut self) -> Result<Self::Text, EmbedError>;

    /// Computes the next tokens of some texts, each its own; gives the token chosen after each, in order. A text that
    /// failed is not used again, the others are.
    fn advance(&mut self, batch: &mut [Turn<'_, Self::Text>]) -> Vec<Result<u32, EmbedError>>;
}

/// A text's part of a batch.
pub struct Turn<'a, T> {
    /// What is kept of the text.
    pub text: &'a mut T,
    /// What to compute: at least one token; together with those before no more than the context.
    pub step: Step,
}
