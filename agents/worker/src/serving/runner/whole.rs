//! Texts from their beginning, every time.

use std::sync::Arc;

use tensorlink_model::StageRunner;
use tensorlink_node::serving::{Gives, ServingShard};
use tensorlink_num::Tensor;
use tensorlink_program::engine::Engine;
use tensorlink_program::executor::ExecuteError;

use super::{Runner, RunnerError, Turn};

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
        let output = match self.shard.controls(turn.tokens)? {
            Some(controls) => self.runner.choose(&input, &Tensor::from_bytes(controls, turn.controls)?)?,
            None => self.runner.run(&input)?,
        };
        let mut output = output.to_bytes();
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
