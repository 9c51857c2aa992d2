//! What computes a lane's rows, on the lane's thread.

mod cached;
mod whole;

use tensorlink_model::DecodeError;
use tensorlink_model::runner::RunError;
use tensorlink_num::TensorError;
use tensorlink_types::TypeError;
use thiserror::Error;

pub use self::cached::Cached;
pub use self::whole::Whole;

/// Why rows could not be computed.
#[derive(Debug, Error)]
pub enum RunnerError {
    /// The engine failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The engine failed, token by token.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The rows make no tensor of the stage's type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// There is no type for so many rows.
    #[error(transparent)]
    Type(#[from] TypeError),
    /// Fewer rows than tokens; a defect.
    #[error("the rows of some tokens are missing")]
    Missing,
}

/// The next tokens of a text.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The text.
    pub text: u32,
    /// All rows received of it, of which each was given before, except those from `position` on.
    pub received: &'a [u8],
    /// Controls of the same tokens; empty unless the stage chooses tokens.
    pub controls: &'a [u8],
    /// Tokens of `received`.
    pub tokens: u32,
    /// Tokens given before. Less than at the end of the text's turn before if the text was cut back: then whatever is
    /// remembered of later tokens is void.
    pub position: u32,
    /// Whether these are the last.
    pub last: bool,
}

/// Computes texts, several at once if it can. Called from one thread only.
pub trait Runner {
    /// For each turn, of different texts: the rows from `position` on of a stage that gives
    /// [`Gives::Rows`](tensorlink_node::serving::Gives); of any other stage everything at the last turn, and no bytes
    /// before. Canonical bytes without padding.
    fn run(&mut self, turns: &[Turn<'_>]) -> Vec<Result<Vec<u8>, RunnerError>>;

    /// Forgets a text that has ended.
    fn forget(&mut self, text: u32);

    /// Tokens of open texts that memory is there for, counting a text as [`Texts`](super::texts::Texts) does; none for
    /// any number.
    fn most_tokens(&self) -> Option<u64> {
        None
    }
}
