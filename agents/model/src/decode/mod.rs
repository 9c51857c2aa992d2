//! A stage token by token: the bits of its stateless programs, without computing the past again.
//!
//! Integers do not care in which order or company they are computed, so rows of many texts pass through one operator,
//! and keys and values of earlier tokens are kept. What is proven stays [`Plan::program`](super::Plan::program) of the
//! whole text.
//!
//! | module | what lives there |
//! |---|---|
//! | [`engine`] | what a cache needs of an engine: [`CacheEngine`] |
//! | [`session`] | a text's keys and values: [`Session`] |
//! | [`runner`] | [`CachedRunner`]: rows of several sessions through a stage |
//! | `head` | the stage's output; the choice of tokens |
//! | `choices` | what texts' owners say about it |
//! | `piece` | the program's operators for so many rows |
//! | `attention`, `core` | attention of a session; its operators for so many keys |
//! | `reference` | caches of the reference engine |

mod attention;
mod choices;
mod core;
pub mod engine;
mod head;
mod piece;
mod reference;
pub mod runner;
pub mod session;

use tensorlink_program::engine::EngineError;
use tensorlink_program::executor::ExecuteError;
use thiserror::Error;

pub use engine::{CacheEngine, Layout};
pub use runner::{CachedRunner, Turn, bytes_per_token};
pub use session::Session;

use super::plan::PlanError;

/// Most rows of one call: enough for any processor, few enough for its memory.
pub const MAX_ROWS: u32 = 1 << 14;

/// Why tokens could not be computed. Sessions keep what they had.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// Later tokens change earlier ones, or the output is one vector of the whole text.
    #[error("this model reads a text as a whole and cannot go on with one: run its programs")]
    NotADecoder,
    /// A text would become longer than the model's context.
    #[error("{rows} tokens after {position}: this model takes {context} in all")]
    Context {
        /// Tokens computed.
        position: u32,
        /// Tokens to compute.
        rows: u32,
        /// Most tokens.
        context: u32,
    },
    /// Too many rows at once.
    #[error("{0} rows in one call: give at most {MAX_ROWS}, a text may come in parts")]
    Rows(u64),
    /// A session of another runner.
    #[error("session {0} of the call belongs to another runner: make one with this runner")]
    ForeignSession(usize),
    /// A session cannot be cut back to where it has not been.
    #[error("cutting a text of {tokens} tokens back to {position}")]
    Position {
        /// Where to.
        position: u32,
        /// Tokens computed.
        tokens: u32,
    },
    /// There is no program.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The engine failed, or rows are not of the stage's type.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
}

/// An engine that cannot move rows.
fn moving(source: EngineError) -> ExecuteError {
    ExecuteError::Transfer { what: "rows of texts", source }
}
