//! What computes a lane's rows, on the lane's thread.

use std::sync::Arc;

use tensorlink_graph::engine::Engine;
use tensorlink_graph::executor::ExecuteError;
use tensorlink_graph::transformer::StageRunner;
use tensorlink_graph::transformer::runner::RunError;
use tensorlink_node::serving::{Gives, ServingShard};
use tensorlink_num::{Tensor, TensorError};
use tensorlink_types::TypeError;
use thiserror::Error;

/// Why rows could not be computed.
#[derive(Debug, Error)]
pub enum RunnerError {
    /// The engine failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The rows make no tensor of the stage's type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// There is no type for so many rows.
    #[error(transparent)]
    Type(#[from] TypeError),
}

/// The next tokens of a text.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The text.
    pub text: u32,
    /// All rows received of it, of which each was given before, except those from `position` on.
    pub received: &'a [u8],
    /// Tokens of `received`.
    pub tokens: u32,
    /// Tokens given before. Less than at the end of the text's turn before if the text was cut back: then whatever is remembered of
    /// later tokens is void.
    pub position: u32,
    /// Whether these are the last.
    pub last: bool,
}

/// Computes texts, several at once if it can. Called from one thread only.
pub trait Runner {
    /// For each turn, of different texts: the rows from `position` on of a stage that gives [`Gives::Rows`]; of any other stage everything
    /// at the last turn, and no bytes before. Canonical bytes without padding.
    fn run(&mut self, turns: &[Turn<'_>]) -> Vec<Result<Vec<u8>, RunnerError>>;

    /// Forgets a text that has ended.
    fn forget(&mut self, text: u32);
}

/// Computes every text from its beginning, by the very program that its receipt stands for.
pub struct Whole<E: Engine> {
    runner: StageRunner<E>,
    shard: Arc<ServingShard>,
}

impl<E: Engine> Whole<E> {
    /// Moves the stage's constants to the engine's device.
    ///
    /// # Errors
    /// When the device fails.
    pub fn new(engine: E, shard: Arc<ServingShard>) -> Result<Self, ExecuteError> {
        let runner = StageRunner::new(engine, shard.plan.as_ref().clone(), &shard.constants)?;
        Ok(Self { runner, shard })
    }

    fn one(&self, turn: &Turn<'_>) -> Result<Vec<u8>, RunnerError> {
        let rows = self.shard.gives() == Gives::Rows;
        if if rows { turn.position == turn.tokens } else { !turn.last } {
            return Ok(Vec::new());
        }
        let input = Tensor::from_bytes(self.shard.received(turn.tokens)?, turn.received)?;
        let mut output = self.runner.run(&input)?.to_bytes();
        if rows && turn.position > 0 {
            let before = self.shard.given(turn.position)?.byte_len();
            output.drain(..usize::try_from(before).unwrap_or(usize::MAX).min(output.len()));
        }
        Ok(output)
    }
}

impl<E: Engine> Runner for Whole<E> {
    fn run(&mut self, turns: &[Turn<'_>]) -> Vec<Result<Vec<u8>, RunnerError>> {
        turns.iter().map(|turn| self.one(turn)).collect()
    }

    fn forget(&mut self, _: u32) {}
}
